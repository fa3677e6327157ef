"""Fuzzers: a file for each kind of input, with a `check` that returns what is wrong with the input of a number."""
