"""Partial evaluation: the core language run on values of which some are known to the graph alone."""
