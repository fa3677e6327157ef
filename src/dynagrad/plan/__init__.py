"""How to run checked rules: what is stored where, in which order items become final, how each rule is joined.

The data goes one way: `model.py` says what a plan is; `layout.py` settles domains and storage from the rules and a
summary of the facts; `order.py` finds stages and levels; `joins.py` orders each rule's antecedents; `planner.py` puts
the plan together; `codegen/rules/statements.py` and `codegen/rules/program.py` write its C++,
`codegen/rules/compiled.py` builds it; `explain.py` says the plan in words. Nothing here reads facts or runs anything.
"""
