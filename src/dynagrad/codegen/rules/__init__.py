"""Code generation for programs of rules: a plan as a C++ class, and its library.

- `context.py`: what the writers of a class share; `scope.py`: names, slots of constants, and terms in C++.
- `tables.py`: facts and items as structs, with the members that `members.py` lists; `traits.py`: what tables, stages
  and programs are, as constants that templates read.
- `nests.py`: nests as nested loops, for a visitor; `right_sides.py`: what a visitor has to know of a rule's value, and
  `values.py`: values as expressions. `shapes.py` shares one function among joins of the same shape; `functions.py` has
  functions of values.
- `rows/`: joins of a whole row of items at once.
- `running/`: the run, as far as it depends on the program: items, pops and stages; priorities, pruning, beams.
- `solving/`: stages that find the components of their ground program at run time.
- `incremental/`: incremental updates of a finished chart.
- `backward/`: the backward pass; `forest/`: the class that collects derivations.
- `access.py`: facts in, items and values out, by number; `header/`: the interface for C++ users.
- `program.py`: the class put together from all of these.
- `compiled.py`: the class compiled to a library, by its size; `linked.py`: objects that all are linked with;
  `planned.py`: plans and sources kept on disk.
"""
