"""Models and checkpoints in files.

`models.py`: models as folders, of `tables.py`, which are relations and numbers as Arrow files; `checkpoint.py`: the
state of a training run. `whole.py` replaces files and folders, so that each is whole and new, or as it was before.
"""
