"""Network, cluster, node pools and drivers on Google Kubernetes Engine."""
