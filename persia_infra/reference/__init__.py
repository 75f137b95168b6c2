"""What the fields of a description mean: for `explain`, for editors, and for the reference pages."""
