"""Optimisation passes, from graph to graph, and the analyses that code generation reads. No C++ is written here.

For every graph:

- `simplify.py`: constant folding and algebraic simplification of single operations;
- `optimise.py`: the driver: simplification, dead states and results, invariant inputs and inlining, in subgraphs too.

For native code only, run in the order that `prepare.py` lists:

- `decompose.py`: expands compound operations such as `logsumexp` into those that loops are written for;
- `in_place_sums.py`: turns sums of mostly zero arrays into updates in place;
- `loops/`: hoisting of invariant reads, unroll and jam, and recurrences;
- `code_sinking.py`: code sinking: moves values into the only branch that uses them.

Analyses of the result:

- `linear_forms.py`: whole numbers as affine forms of loop counters, and their bounds;
- `index_forms.py`: indices of arrays as such forms, linearised to offsets and back;
- `views.py`: index maps of views (`reshape`, `transpose`, slices, ...);
- `classify.py`: how native code computes each operation: element by element, as a reduction, as a view, as an update;
- `schedule.py`: loop fusion and the order of steps, and where long basic blocks are cut;
- `bounds.py`: bounds of whole numbers, and of the operations that a graph runs.
"""
