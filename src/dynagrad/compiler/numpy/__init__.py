"""numpy's functions while a function is specialised."""
