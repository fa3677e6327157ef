"""Containers, classes, and methods of arrays while a function is specialised."""
