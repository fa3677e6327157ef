"""What a program may not mean, a kind of check a file; `rules/check.py` runs them."""
