"""When a run may say that it has converged: little is left to gain, and where it is is no saddle.

A small step alone says neither. Near a saddle, as where all hidden states are alike, steps of EM get small and then
large again; and a method may step shorter and shorter towards a kink. So what is left to gain is estimated, by the
method from the curvature that it knows, or from the last steps of the objective (`gain.py`); before a run may say so,
it is asked of the curvature where steps did not go (`newton.py`), and directions of growth are looked for
(`saddles.py`); and where there are kinks is told by `kinks.py`.

When a run ends for other reasons is for `training/fit.py`.
"""
