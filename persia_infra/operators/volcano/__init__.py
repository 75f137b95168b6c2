"""Volcano: its scheduler, which starts all pods of a gang or none, its controllers and its webhooks."""
