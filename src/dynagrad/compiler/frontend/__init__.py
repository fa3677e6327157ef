"""The front end: from the text of a Python function to the core language, a small lambda calculus in let form.

In the order in which a function passes through:

- `core.py`: the core language, and its text.
- `source.py`: the text and syntax tree of a function, and errors that point into it.
- `desugar.py`: the syntax tree without `with`, `try`, `:=` in conditions and private names.
- `scopes.py`: what names mean: assigned, free and captured variables, binding groups, liveness.
- `operators.py`: the table of Python's operators, which later stages read too.
- `expressions.py`, `statements.py`: lowers expressions, then statements and functions.
"""
