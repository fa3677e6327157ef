"""The parser's tables, cached between processes: the same parser, whatever the state of the cache (a second)."""

from __future__ import annotations

import marshal
from pathlib import Path

import pytest
from lark import Lark, Transformer

from dynagrad.rules import parser_tables
from dynagrad.runtime.disk.records import remember

TEXT = 'a(X,f([Y|Z]),"q") += b(X,_) * exp(c(Y))**2 for X < Y + 1, Z != Y.  :- solve iterate.'


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for what is kept."""
    monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The grammars that tables were worked out of, from now on."""
    grammars: list[str] = []
    real = parser_tables._made
    monkeypatch.setattr(parser_tables, "_made", lambda grammar: (grammars.append(grammar), real(grammar))[1])
    return grammars


def read() -> str:
    """The tree of a text, by a parser that is made anew."""
    return parser_tables.parser(Transformer()).parse(TEXT, start="start").pretty()


def test_tables_are_worked_out_once(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, made = read(), worked_out(monkeypatch)
    (kept,) = empty.glob("*.tables")
    assert [read(), read()] == [expected, expected] and not made
    kept.write_bytes(kept.read_bytes()[:-9])  # a damaged one is none
    assert read() == expected and len(made) == 1
    assert read() == expected and len(made) == 1


OTHERS = [b"", b"no tables", marshal.dumps({}), marshal.dumps([1]), marshal.dumps({"data": {}, "memo": {1: 2}})]


@pytest.mark.parametrize("other", OTHERS, ids=["nothing", "text", "empty", "a list", "other keys"])
def test_what_is_no_tables_is_worked_out_anew(other: bytes, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, made = read(), worked_out(monkeypatch)
    (kept,) = empty.glob("*.tables")
    remember(kept.name, other)  # under a right seal
    assert [read(), read()] == [expected, expected] and len(made) == 1


def test_where_nothing_can_be_kept_they_are_worked_out(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = worked_out(monkeypatch)
    empty.write_text("no folder")
    assert read() == read() and len(made) == 2


def test_each_version_of_lark_has_its_own(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read()
    monkeypatch.setattr("lark.__version__", "0.0.1")
    read()
    assert len(list(empty.glob("*.tables"))) == 2


def test_another_version_of_the_file_has_its_own(empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have other starts, or keep other things, for the same grammar."""
    read()
    for name in ("parser_tables.py", "grammar.lark"):
        (tmp_path / name).write_bytes(Path(parser_tables.__file__).with_name(name).read_bytes())
    changed = (tmp_path / "parser_tables.py").read_text() + "# changed\n"
    (tmp_path / "parser_tables.py").write_text(changed)
    monkeypatch.setattr(parser_tables, "__file__", str(tmp_path / "parser_tables.py"))
    read()
    assert len(list(empty.glob("*.tables"))) == 2


def test_kept_tables_are_those_of_lark(empty: Path) -> None:
    grammar = Path(parser_tables.__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    plain = Lark(grammar, parser="lalr", maybe_placeholders=False, start=["start", "query", "argument"])
    assert plain.parse(TEXT, start="start").pretty() == read() == read()
