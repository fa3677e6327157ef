"""Fuzzers: a file for each kind of input, with a `check` that says what is wrong with the one of a number."""
