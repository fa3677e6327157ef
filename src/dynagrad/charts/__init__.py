"""Programs of rules, and charts: what users run, change, look into and differentiate.

`program.py` is a program, `chart.py` a chart; `binding/` is where facts meet a program, `run.py` the run, `changes.py`
a finished chart brought up to date, `lookup.py` looking into one, `derivatives/` all that derivatives answer,
`batch.py` many examples at once.
"""
