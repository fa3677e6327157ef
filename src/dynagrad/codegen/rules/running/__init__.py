"""The run of a generated class, as far as it depends on the program; the rest is in `dynagrad/running`.

- `items.py`: what only the program knows of an item: its level, its keys in indexes; `policies.py`: with which priority
  it waits, and what pruning and beams hold back.
- `pops.py`: the joins of a stage, and which of them an item drives.
- `stages.py`: what each stage is, and what it has in the class.
"""
