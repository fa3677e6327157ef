"""Derivatives inside of compiled functions: the verbs, and functions with derivatives of their own."""
