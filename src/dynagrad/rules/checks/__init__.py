"""Static checks of programs, which `rules/check.py` runs in this order.

- `declarations.py`: semiring, kinds of predicates, agendas, types, functions.
- `each_rule.py`: rules one by one: aggregators, products, range restriction.
- `joining.py`: how rows of one fact join, by the rules that read them.
- `recursion.py`: strongly connected components, stratified negation, monotone cycles.
- `suspicious_rules.py`: warnings about what is allowed and probably not meant.
- `report.py`: what they share: errors with a place in the text.
"""
