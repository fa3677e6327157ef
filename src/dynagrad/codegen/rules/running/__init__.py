"""The run of a generated class: how items are reached, wait and are popped, and the loop of each stage.

- `contributions.py`: contributions to items, and items that are pushed on the agenda; `policies.py`: with which
  priority, and what pruning and beams hold back.
- `pops.py`: the joins of a stage, and pops of its items, which drive them.
- `stages.py`: how a stage begins, is swept over or popped from, and ends.
"""
