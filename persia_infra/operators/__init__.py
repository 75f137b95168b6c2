"""The operators that an environment installs."""
