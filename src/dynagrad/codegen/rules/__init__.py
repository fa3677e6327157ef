"""The C++ of a program of rules: the class of a plan, and the library that is made of it.

`program.py` puts the class together, `context.py` is what its writers share, `tables.py`, `stages.py` and
`statements.py` are its members, its run and its joins. `solving/` has stages that find their ground program as they
run, `incremental/` what brings a chart up to date, `backward/` the backward pass, `header/` the face for C++.
"""
