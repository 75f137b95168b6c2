"""PERSIA jobs."""
