"""The project's own components: the folder's name does not collide with persia_components."""
