"""Kubernetes' own types, pods, security, storage and API access."""
