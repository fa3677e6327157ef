"""Fuzzes what is asked of charts: random programs whose facts come in all forms, are changed, and asked for everything.

What is drawn and compared is in `random_charts.py`; here it is an input of the fuzzers.
"""

from __future__ import annotations

from random_charts import tried


def check(seed: int) -> str | None:
    """What is wrong, or nothing."""
    given = tried(seed, count=4)
    return None if given is None or not given.wrong else " || ".join(given.wrong)
