"""The steps of the parser, which `rules/parse.py` puts together.

`driver.py` is the LALR parser, `raw.py` makes raw trees of a text, `resolve.py` resolves names and makes the syntax of
`rules/syntax.py`, and `mistakes.py` writes the messages of syntax errors.
"""
