"""Models and checkpoints in files.

`models.py`: models as folders, of `tables.py`, which are relations and numbers as Arrow files; `checkpoint.py`: the
state of a training run, `seal.py` what run that is, and `described.py` how settings and functions are told apart. Both
are replaced as a whole, by `runtime/disk/whole.py`.
"""
