"""Text to syntax, in steps that `rules/parse.py` puts together.

`raw.py` makes raw shapes of a text, `resolve.py` syntax of these, and `mistakes.py` says what is wrong with a text that
is none of the language.
"""
