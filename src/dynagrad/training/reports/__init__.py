"""What a training run tells: `records.py` of its steps, `logs.py` in files, `progress.py` on a terminal.

When a run ends, and what it keeps, is for `training/fit.py`.
"""
