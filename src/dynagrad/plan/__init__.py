"""How to run checked rules: what is stored where, in which order items become final, how each rule is joined.

The data goes one way, from rules and a summary of the facts to a `Plan` (`model.py`). `options.py` is what is asked
for, and `recognise.py` finds the semiring that a program without one computes in. `demand.py` leaves out what nobody
asks for; `layout.py` settles domains and storage; `order.py` finds levels; `strategy.py` says how each component runs,
with `polynomials.py` and `stable.py` for what is solved; `joins.py` orders each rule's antecedents; `planner.py` puts
the plan together. `assume.py` makes plans without facts, `right_sides.py` has values of rules as graphs,
`aggregators.py` how contributions make values, and `explain.py` says a plan in words. Nothing here writes C++, reads
facts or runs anything.
"""
