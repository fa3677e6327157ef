"""What a training run tells: `records.py` of its steps, `logs.py` in files, `progress.py` on a terminal."""
