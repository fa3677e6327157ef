"""Python's own functions and those of its libraries while a function is specialised."""
