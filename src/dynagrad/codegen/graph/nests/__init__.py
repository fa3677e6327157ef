"""Loop nests over arrays: fused loops over one domain that compute several values, element by element.

- `model.py`: a nest as data: loops, what is computed in which of them, stores and reductions;
- `build.py`: from nodes of a graph to a nest with a loop for each axis;
- `collapse.py`: loops made one where all arrays are contiguous along both;
- `distribute.py`: a short nest as several, with calls of functions for whole arrays between them;
- `chunks.py`: the outermost loop split among threads;
- `write.py`: a nest as C++, which decides nothing;
- `outlines.py`: nests of long graphs as functions, equal ones once.
"""
