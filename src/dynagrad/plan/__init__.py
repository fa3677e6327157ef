"""How to run checked rules: what is stored where, in which order items become final, how each rule is joined.

The data goes one way. `model.py` says what a plan is. `demand.py` leaves out what nobody asks for; `layout.py` settles
domains and storage from the rules and a summary of the facts; `order.py` finds stages and levels; `joins.py` orders
each rule's antecedents; `planner.py` puts the plan together, with `stable.py` and `polynomials.py` for what is solved;
`assume.py` makes plans without facts. `right_sides.py` has values of rules as graphs, `aggregators.py` what aggregators
do to values; `explain.py` says a plan in words. Nothing here writes C++, reads facts or runs anything.
"""
