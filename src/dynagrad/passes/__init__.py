"""From graphs to graphs: fewer operations, other loops, other places. No C++ is written here.

`simplify.py` works value by value, `optimise.py` on whole graphs; what is done for machine code alone is in
`decompose.py`, `in_place_sums.py`, `sink.py` and `loops/`. `views.py` and `roles.py` say what an operation is to the
code that is written for it, `schedule.py` in which order values are computed and which share a loop.
"""
