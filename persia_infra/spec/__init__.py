"""The base of every spec, field types, errors, quantities and YAML files."""
