"""The project's own components; the folder's name does not conflict with persia_components."""
