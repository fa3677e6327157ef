"""A program as a function of arrays, over charts; what charts answer by derivatives themselves is in `derivatives/`.

- `jets.py`: a program run over jets, in and back, for derivatives of any order.
- `function.py`: `Function`, which users call; its derivatives are such functions again.
"""
