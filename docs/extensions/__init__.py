"""What the documents need of Sphinx beyond what it brings: a lexer, docstrings read as Markdown-like text, the command
line's options as a page."""
