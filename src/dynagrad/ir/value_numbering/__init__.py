"""Global value numbering beyond hash-consing: equal values that different expressions compute.

- `congruent_states.py`: states of one loop that are equal in every round;
- `subsumed_loops.py`: loops whose states are all computed by another loop;
- `reciprocal_roots.py`: divisions by the same square root.
"""
