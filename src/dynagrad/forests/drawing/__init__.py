"""Derivations as people look at them: what is drawn (`boxes.py`), as pictures and lines of text (`pictures.py`), and as
trees in the notations of other programs (`trees.py`)."""
