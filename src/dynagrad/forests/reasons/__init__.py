"""Why an item is there: the instances that make it (`why.py`), and facts that suffice for it (`sets.py`)."""
