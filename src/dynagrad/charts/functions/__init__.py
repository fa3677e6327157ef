"""A program as a function of arrays, over charts; what charts answer by derivatives themselves is in `derivatives/`.

- `jets.py`: a program run over jets, in and back, for derivatives of any order.
- `probabilities.py`: arguments that are probabilities: their jets on the semiring's scale, and derivatives by them.
- `function.py`: `Function`, which users call; its derivatives are such functions again.
"""
