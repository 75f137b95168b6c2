"""Types of the Kubernetes API, generated from its own OpenAPI documents; the rules for them are in `kube`."""
