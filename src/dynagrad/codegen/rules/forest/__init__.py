"""The class that collects the derivations of items of a finished chart; `collecting.py` writes it."""
