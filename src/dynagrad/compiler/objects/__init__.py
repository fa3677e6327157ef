"""Python's objects while a function is specialised: containers, classes, and what arrays have as objects.

- `methods.py`: attributes and methods of arrays.
- `containers.py`: tuples, lists, dicts and objects: making, indexing, attributes, methods.
- `classes.py`: construction, `super()`, methods, partial application and other callables.
- `sorting.py`: `sorted` and `list.sort`.
"""
