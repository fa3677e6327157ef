"""Colours: a lexer of Pygments for the rule language, in blocks marked `dyna`; DVL, in `dvl`, has that of Scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.lexers.lisp import SchemeLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

if TYPE_CHECKING:
    from sphinx.application import Sphinx

AGGREGATORS = ("log+=", "max=", "min=", "+=", "*=", "|=", "&=")
WORDS = ("for", "not", "if", "then", "else", "mod", "by", "keep", "given", "as", "SIDE")


class DynaLexer(RegexLexer):
    """Programs of rules: declarations, aggregators, variables, numbers, symbols."""

    name = "Dyna"
    aliases: ClassVar[list[str]] = ["dyna"]
    filenames: ClassVar[list[str]] = ["*.dyna"]
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"%.*", Comment.Single),
            (r"(:-)(\s+)([a-z]\w*)", bygroups(Operator, Whitespace, Keyword.Declaration)),
            (r"'[^']*'|\"[^\"]*\"", String),
            (words(AGGREGATORS), Operator.Word),
            (words(WORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (r"(\d+\.\d+|\.\d+|\d+)([eE][+-]?\d+)?", Number),
            (r"[A-Z_]\w*", Name.Variable),
            (r"[a-z]\w*(?=\()", Name.Function),
            (r"[a-z]\w*", Name),
            (r"[-+*/^<>=!|:]+", Operator),
            (r"[()\[\],.]", Punctuation),
        ]
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes the lexer known to Sphinx."""
    app.add_lexer("dyna", DynaLexer)
    app.add_lexer("dvl", SchemeLexer)  # `===>` is a symbol there
    return {"parallel_read_safe": True, "parallel_write_safe": True}
