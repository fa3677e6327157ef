"""The primitive operations, one kind a file, each declared with its value, derivatives and C++.

- `scalars.py`: elementwise operations on reals, and comparisons; `integers.py`: operations on integers;
- `families.py`: elementwise operations with a parameter, such as the n-th derivative of sinc;
- `ieee.py`: elementary functions on floats that never raise; `series.py`: rules for truncated power series;
- `arrays.py`: shapes, constant indices, products; `places.py`: reads and writes at indices known at run time;
- `reductions.py`: sums, products and extrema along axes; `windows.py`: sliding windows and convolutions;
- `matrices.py`: inverses and decompositions; `determinants.py`: determinants and cofactors;
- `cells.py`: values of a heap, whose kind is known only as a graph runs;
- `ravelling.py`: several values as one vector; `spelling.py`: how an operation is spelt in C++.
"""
