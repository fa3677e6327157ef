"""The planner: from checked rules and statistics of facts to storage, evaluation order and join order.

Nothing here writes C++, reads facts or runs anything.

- `model.py`: what a plan is, as data; `options.py`: what it depends on besides rules and facts.
- `recognise.py`: the semiring that a program without a declared one computes in.
- `demand.py`: demand analysis: predicates and items that the outputs do not need are left out.
- `storage/`: where items are stored, dense arrays or hash tables, from the ranges of arguments.
- `order.py`: levels in which items become final, from bounds on differences of arguments.
- `strategy.py`: how each component runs, with `polynomials.py` for cycles that are solved as equations, and
  `stable.py` for arguments for all of whose values one system is solved.
- `joins.py`: the order of each rule's antecedents, by estimated cost.
- `access.py`: the access path of each scan: a row, all items, or an index.
- `planner.py`: all of these put together to a plan; `assume.py`: plans made without facts.
- `right_sides.py`: right sides, priorities and users' semirings as op graphs; `aggregators.py`: how contributions make
  the values of a plan's items.
- `explain.py`: a plan as text.
"""
