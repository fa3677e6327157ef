"""DVL programs as machine code, by the compiler that Python functions have.

`program.py` hands a program, or a procedure that Python holds, to the specialiser; `loops.py` has written its tail
recursion as loops. The specialiser asks `builtins.py` what builtins do: with numbers and vectors (`values.py`), with
tags (`bundles.py`; those that a program makes itself are in `tags.py`), with values of which the run decides what they
are (`unions.py`), and what their derivatives are (`derivatives.py`), and where a procedure has its fixed point
(`fixed_points.py`).
"""
