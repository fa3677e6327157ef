"""Facts meet a program: they are encoded and summarised, a plan is made for them, and charts are set up over them.

- `context.py`: what a program is to its runs (rules, domains, scale, options); facts read and checked against it.
- `encoding.py`: dictionary encoding of arguments, domain by domain; `decoding.py` is the way back.
- `summary.py`: what a plan may know of facts, and whether a plan made for others fits; `rounding.py`: what it may know
  of those of a run, so that runs of about one size share a plan.
- `suspicious_facts.py`: warnings about facts that are probably not meant; `unknown_arguments.py`: about arguments of
  lookups that are nowhere.
- `loading.py`: encoded facts loaded into native code, and charts set up over them.
- `copies.py`: facts that are given twice though their rows do not join.
- `binding.py`: all of these in order, and what is kept for later runs; `background.py` compiles in other threads.
- `example_cache.py`: examples whose facts stay loaded; `groups.py`: those that native code runs in one call;
  `linear_examples.py`: those that need no run.
- `database.py`: the facts of one chart, which can be added, retracted and replaced.
"""
