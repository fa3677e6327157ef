"""Static analyses of rules, which the strategies and the planner read. Nothing is decided here.

- `recognise.py`: the semiring that a program without a declared one computes in.
- `demand.py`: predicates and items that the outputs do not need.
- `intervals.py`: the ranges of integer arguments.
- `ranks.py`: the columns of facts that may order a domain.
- `polynomials.py`: right sides as polynomials, for cycles that are solved as equations.
- `stable.py`: arguments that recursion passes on unchanged, so that one system is solved for all their values.
"""
