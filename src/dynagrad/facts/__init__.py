"""Facts in and tables out: every form of table becomes a columnar relation, and a relation a table. No rules here.

- `terms.py`: terms as Python values, and their flat encoding.
- `relation.py`: `Relation`, the facts of a predicate in columns; concatenation, selection, matching.
- `columns.py`, `values.py`: columns of arguments and of values, checked.
- `readers.py`: every form of table in memory; `files.py`: files, and `headers.py` their first lines.
- `table.py`: `Table`, what lookups, queries and gradients return.
"""
