"""Tagged unions and tags that only the run knows: `unions.py` has values of several kinds, `tags.py` derivatives whose
number the run decides.

Both are on a heap of cells (`ir/ops/cells.py`), and only where a front end allows it.
"""
