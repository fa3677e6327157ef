"""What numpy's functions do with numbers that carry derivatives: `protocol.py` is how numpy gets here, `functions.py`
the table of handlers, and the handlers are in files of their kinds.
"""
