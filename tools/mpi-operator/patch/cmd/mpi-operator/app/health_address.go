package app

import "flag"

// Upstream listens for health checks on port 8080 of all addresses. A rehearsal needs an address of its own.
var healthAddressFlag = flag.String("health-address", "",
	"address and port for health checks; port 8080 of all addresses by default")

func healthAddress(upstream string) string {
	if *healthAddressFlag == "" {
		return upstream
	}
	return *healthAddressFlag
}
