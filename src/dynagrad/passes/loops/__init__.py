"""Loops: what is known of their rounds and indices, and loops that become others."""
