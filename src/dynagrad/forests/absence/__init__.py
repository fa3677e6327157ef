"""Why an item is not there: what is missing (`attempts.py`), how it is found (`searching.py`, over `logic.py`)."""
