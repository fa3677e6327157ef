"""The tables of the parser are those that lark makes of the grammar (half a second)."""

from __future__ import annotations

from pathlib import Path

from dynagrad.rules import parser_tables


def test_the_file_is_that_of_the_grammar() -> None:
    kept = Path(parser_tables.__file__).with_name("grammar.json").read_text(encoding="utf-8")
    assert kept == parser_tables.made(), "write it anew: dynagrad.rules.parser_tables.write()"
