"""Network, cluster, node pools, machines and drivers on Google Kubernetes Engine."""
