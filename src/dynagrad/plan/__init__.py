"""The planner: from checked rules and statistics of facts to storage, evaluation order and join order.

Nothing here writes C++, reads facts or runs anything.

- `model.py`: what a plan is, as data; `options.py`: what it depends on besides rules and facts.
- `analyses/`: what is read off rules: semiring, demand, ranges of arguments, polynomials, stable arguments.
- `storage/`: where items are stored, dense arrays or hash tables; `rows/`: joins of whole rows of drivers.
- `order.py`: levels in which items become final, from bounds on differences of arguments.
- `strategy.py`: how each component runs.
- `joins.py`: the order of each rule's antecedents, by estimated cost.
- `access.py`: the access path of each scan: a row, all items, or an index.
- `planner.py`: all of these put together to a plan; `assume.py`: plans made without facts.
- `right_sides.py`: right sides, priorities and users' semirings as op graphs.
- `nest.py`: how the instances of a rule are found, as data; `lower.py`: joins become nests.
- `interpreter/`: a plan is run from Python, by its nests.
- `traits.py`: every question that others ask about the tables and stages of a plan.
- `size.py`: how large the class of a plan will be; `explain.py`: a plan as text.
"""
