"""From the text of a function to the core language: its text, the same with less of Python in it, what names mean,
statements and expressions.
"""
