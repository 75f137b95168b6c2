"""Reads the manifests that users already have."""
