"""The best derivations: natively ranked (`k_best.py`), in a semiring of one's own (`user.py`), and in plain arithmetic,
where one makes the value (`winner.py`)."""
