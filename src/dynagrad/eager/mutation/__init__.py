"""Arrays that a function may write to while it is differentiated."""
