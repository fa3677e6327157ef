"""Files of facts, by suffix: `.tsv`, `.csv`, `.parquet`, `.arrow` and `.feather`.

In a text file every row is a fact, but for a header (`headers.py`): there is no comment, and in `.tsv` no quoting. A
column after the arguments holds values. The types of texts depend on the program: argument columns are `TextColumn`s,
which the functions at the end convert to symbols, integers, floats or terms.
"""

from __future__ import annotations

import csv
import io
import math
import re
import stat
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import yes_or_no
from ..calls import public
from ..errors import Error, FactError, Place, RowPlaces, counted, cut, raised, shown, shown_path
from ..forks import renewed
from ..packages import optional
from .columns import Raw, finish
from .headers import check_header
from .readers import column_names, from_arrow
from .relation import (
    AtomColumn,
    Column,
    IntColumn,
    Relation,
    RowSymbol,
    TermColumn,
    TextColumn,
    ValueShape,
    atom_key,
    encode,
    parse_key,
)
from .terms import INTEGER_MAX, INTEGER_MIN, Term, canonical
from .values import FORBIDDEN

_SHAPES = ("float", "count", "boolean", "expectation")


def _path(path: Any, kinds: Any, value_shape: Any, finite: Any) -> Path:
    """The path of a file. Raises where an option of `read_file` is wrong."""
    if not isinstance(path, str | Path):
        raise Error(f"a file of facts must be a str or a Path, not {shown(path)}")
    if kinds is not None and not (isinstance(kinds, list | tuple) and all(map(_is_type, kinds))):
        raise Error(f"kinds must be a list of {', '.join(_TYPES)} and None, not {shown(kinds)}")
    vector = isinstance(value_shape, tuple) and len(value_shape) == 2 and shown(value_shape[0]) == "'vector'"
    if not vector and not (isinstance(value_shape, str) and value_shape in _SHAPES):
        shapes = ", ".join(_SHAPES)
        raise Error(f'value_shape must be one of {shapes}, or ("vector", length), not {shown(value_shape)}')
    if not isinstance(finite, str) or finite not in FORBIDDEN:
        raise Error(f"finite must be one of {', '.join(map(repr, FORBIDDEN))}, not {shown(finite)}")
    if "\0" in str(path):
        raise Error(f"{shown_path(path)} is not a name of a file: it has a zero character")
    return Path(path)


_TYPES = ("int", "symbol", "float")


def _is_type(kind: Any) -> bool:
    return kind is None or (isinstance(kind, str) and kind in _TYPES)


@public
def read_file(
    path: str | Path,
    key: str,
    kinds: Sequence[str | None] | None = None,
    *,
    value_shape: ValueShape = "float",
    finite: str = "no_nan",
    header: bool | None = None,
) -> Relation:
    """The facts of predicate `key` in a file: `.tsv`, `.csv`, `.parquet`, `.arrow` or `.feather`, by its suffix.

    The result can be given to `bind`, `run` or `add`. A column after the arguments holds values, which may be infinite
    (`-inf`) where those of the program may. Raises `FactError` with the file and the line.

    `header` says whether the first line of a text file is one, which has the names of columns and is no fact. Without
    it every line is a fact; but a first line that seems to be a header is told of: with a warning, or, where it alone
    keeps a column from being numbers, an error.

    `kinds` may have the types of arguments: `"int"`, `"symbol"` or `"float"`; None leaves the type of a text column to
    the program.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "grammar.tsv"
    >>> _ = path.write_text("np\\tdet\\t0.5\\nnp\\tn\\t0.5\\n")
    >>> relation = read_file(path, "rewrite/2")
    >>> relation.columns[1].to_list(), relation.values.tolist()
    (['det', 'n'], [0.5, 0.5])
    >>> _ = path.write_text("head\\tchild\\tp\\nnp\\tdet\\t0.5\\n")
    >>> read_file(path, "rewrite/2", header=True).names
    ('head', 'child', 'p')
    """
    if header is not None:
        header = yes_or_no("header", header)
    path = _path(path, kinds, value_shape, finite)
    name, arity = parse_key(key)
    place = Place(f"{name}/{arity}", arity, path.name)
    if kinds is not None and len(kinds) != arity:
        raise place.error(f"{counted(len(kinds), 'type')} given for {counted(arity, 'argument')}")
    reader = _FORMATS.get(path.suffix.lower())
    if reader is None:
        raise place.error(f"no format has the suffix {path.suffix!r}; files of facts end in {', '.join(_FORMATS)}")
    with place.reading():
        try:
            if stat.S_ISCHR(mode := path.stat().st_mode) or stat.S_ISBLK(mode):
                raise place.error(f"{cut(str(path))!r} is a device, which has no end; give a file or a pipe")
            if header and reader in (_read_parquet, _read_arrow):
                raise place.error("a file of this format has names of columns apart from its rows, and no header")
            options = TextOptions(header, frozenset(n for n, kind in enumerate(kinds or ()) if kind == "symbol"))
            place, raw = reader(place, path, value_shape, options)
        except OSError as error:
            raise place.error(f"the file {str(path)!r} cannot be read: {error.strerror or error}") from None
        except UnicodeEncodeError:
            raise place.error(f"the file {str(path)!a} cannot be read: its name is not text") from None
    floats = {index for index, kind in enumerate(kinds or ()) if kind == "float"}
    with place.reading():
        relation = finish(place, raw, value_shape=value_shape, finite=finite, float_columns=floats)
    columns = relation.columns
    if kinds is not None:
        named = enumerate(zip(kinds, columns, strict=True))
        columns = tuple(_as_kind(column, kind, place, index) for index, (kind, column) in named)
    return replace(relation, columns=columns, files=((0, place),))


def _as_kind(column: Column, kind: str | None, place: Place, index: int) -> Column:
    convert = _CONVERTERS.get(kind)
    return column if convert is None or not isinstance(column, TextColumn) else convert(column, place, index)


@dataclass(frozen=True)
class TextOptions:
    """What is known of the lines of a text file: whether the first is a header, and which columns are symbols."""

    header: bool | None
    symbols: frozenset[int]


# -- text files ------------------------------------------------------------------------------------------------------


def _text(place: Place, path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        raise place.error(
            f"the byte 0x{data[error.start]:02x} is not UTF-8; convert the file, for instance with "
            "iconv -f latin1 -t utf-8",
            line,
        ) from None


def _read_tsv(place: Place, path: Path, value_shape: ValueShape, options: TextOptions) -> tuple[Place, Raw]:
    return _split(place, _text(place, path), "\t", value_shape, options)


def _read_csv(place: Place, path: Path, value_shape: ValueShape, options: TextOptions) -> tuple[Place, Raw]:
    text = _text(place, path)
    if '"' in text:
        return _quoted(place, text, value_shape, options)
    return _split(place, text, ",", value_shape, options)


def _split(place: Place, text: str, separator: str, value_shape: ValueShape, options: TextOptions) -> tuple[Place, Raw]:
    """Rows that are lines without quotes. Blank lines are skipped."""
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    if "" in lines:
        place = Place(place.key, place.arity, place.file, [i for i, line in enumerate(lines, 1) if line])
        lines = [line for line in lines if line]
    counts = {line.count(separator) for line in lines}
    width = min(counts, default=-1) + 1
    if len(counts) > 1 or (counts and width not in (place.arity, place.arity + 1)):
        _wrong_width(place, [line.count(separator) + 1 for line in lines], "tabs" if separator == "\t" else "commas")
    cells = separator.join(lines).split(separator) if lines else []
    return _raw(place, len(lines), [cells[i::width] for i in range(width)], value_shape, options)


_csv_limit = renewed(threading.RLock())  # the csv module's limit is global


def _quoted(place: Place, text: str, value_shape: ValueShape, options: TextOptions) -> tuple[Place, Raw]:
    """CSV of RFC 4180: a quoted cell may contain commas, line ends, and quotes written twice."""
    rows, starts = _csv_rows(place, text, False)
    if [] in rows or len(rows) != len(text.splitlines()):  # rows are not lines
        rows, starts = _csv_rows(place, text, True)
    place = Place(place.key, place.arity, place.file, starts)
    counts = set(map(len, rows))
    if len(counts) > 1 or not counts <= {place.arity, place.arity + 1}:
        _wrong_width(place, list(map(len, rows)), "commas")
    cells = [list(map(itemgetter(i), rows)) for i in range(max(counts, default=0))]
    return _raw(place, len(rows), cells, value_shape, options)


def _csv_rows(place: Place, text: str, numbered: bool) -> tuple[list[list[str]], list[int] | None]:
    """The rows; if `numbered`, without blank ones, and with the line in which each starts."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[str]] = []
    starts: list[int] = []
    line = 1
    with _csv_limit:
        limit = csv.field_size_limit(len(text) + 1)
        try:
            if not numbered:
                return list(reader), None
            for row in reader:
                if row:
                    rows.append(row)
                    starts.append(line)
                line = reader.line_num + 1
        except csv.Error as error:
            raise place.error(
                f"this is no CSV: {error}; a quote inside a quoted cell is written twice", max(0, reader.line_num - 1)
            ) from None
        finally:
            csv.field_size_limit(limit)
    return rows, starts


def _wrong_width(place: Place, widths: Sequence[int], separators: str) -> None:
    """Raises for the first row with too few or too many columns, else for the first one unlike row 1."""
    allowed = place.arity, place.arity + 1
    for row, width in enumerate(widths):
        if width not in allowed:
            raise place.error(
                f"{counted(width, 'column')} between {separators}, but a row is "
                f"{counted(place.arity, 'argument')} and maybe a value",
                row,
            )
        if width != widths[0]:
            have, lack = ("a", "none") if width > widths[0] else ("no", "one")
            raise place.error(f"the row has {have} value, but the first has {lack}; give all rows a value or none", row)


def _raw(
    place: Place, count: int, cells: Sequence[Sequence[str]], value_shape: ValueShape, options: TextOptions
) -> tuple[Place, Raw]:
    names = None
    if options.header and count:
        lines = range(1, count + 1) if place.lines is None else place.lines
        names, place = column_names(column[0] for column in cells), replace(place, lines=lines[1:])
        cells, count = [column[1:] for column in cells], count - 1
    elif options.header is None:
        check_header(place, cells, options.symbols)
    columns = [_text_column(column) for column in cells[: place.arity]] if count else [_text_column(())] * place.arity
    values = list(cells[place.arity]) if len(cells) > place.arity else None
    read = None if values is None else _values(place, values, value_shape)
    return place, Raw(count, columns, read, names=names)


def _text_column(column: Sequence[str]) -> TextColumn:
    return TextColumn(*encode(column))


_NUMBER = re.compile(r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)\s*\Z", re.I | re.A)
_PYTHON_ONLY = re.compile(r"[^ -~]|_")  # Python's float() would take 1_000
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*\Z")
_WORDS = {"true": True, "false": False}


def _values(place: Place, texts: Sequence[str], value_shape: ValueShape) -> list[Any]:
    """Values as Python objects: numbers, true and false, and for vectors numbers separated by blanks or commas."""
    if value_shape == "float" and not any(map(_PYTHON_ONLY.search, texts)):
        try:
            return list(map(float, texts))
        except ValueError:
            pass  # read one by one below, in more forms, with errors that name the row
    return [place.checked(row, place.arity, text, _value) for row, text in enumerate(texts)]


def _value(text: Any) -> Any:
    if _INTEGER.match(text):
        return float(text) if len(text) > 4000 else int(text)
    if _NUMBER.match(text):
        return float(text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    parts = text.strip().strip("()[]").replace(",", " ").split()
    if len(parts) > 1 and all(map(_NUMBER.match, parts)):
        return tuple(map(float, parts))
    if not text.strip():
        raise FactError("the value is empty; leave the column out where there are no values")
    raise FactError(f"the value {shown(text)} is not a number; the column after the arguments is the value")


# -- Arrow files -----------------------------------------------------------------------------------------------------


def _read_parquet(place: Place, path: Path, value_shape: ValueShape, options: TextOptions) -> tuple[Place, Raw]:
    parquet = optional("pyarrow.parquet", "a .parquet file")
    return _arrow(place, path, lambda: parquet.ParquetFile(path).read())


def _read_arrow(place: Place, path: Path, value_shape: ValueShape, options: TextOptions) -> tuple[Place, Raw]:
    pa = optional("pyarrow", f"a {path.suffix} file")

    def table() -> Any:
        with pa.OSFile(str(path)) as file:
            try:
                return pa.ipc.open_file(file).read_all()
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_stream(file).read_all()

    return _arrow(place, path, table)


def _arrow(place: Place, path: Path, read_table: Callable[[], Any]) -> tuple[Place, Raw]:
    with path.open("rb"):
        pass  # raises the usual OSError where the file cannot be read
    try:
        table = read_table()
    except Exception as error:  # pyarrow raises errors of many kinds for invalid files
        raise place.error(f"this is no {path.suffix} file: {raised(error)}") from error
    place = Place(place.key, place.arity, place.file, columnar=True)
    return place, from_arrow(place, table)


_FORMATS: dict[str, Callable[[Place, Path, ValueShape, TextOptions], tuple[Place, Raw]]] = {
    ".tsv": _read_tsv,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}


_OF_LINES = (".tsv", ".csv")
"""The suffixes of those that have lines."""


def header_for(path: Path, header: bool | None) -> bool | None:
    """What is said of the first line of some files, for one of them: nothing, where a format has no lines."""
    return header if path.suffix.lower() in _OF_LINES else None


Where = Place | RowPlaces | None
"""The places of the rows of a column, for messages."""

# -- types of texts --------------------------------------------------------------------------------------------------

_SHORT_INTEGER = re.compile(r"-?[0-9]{1,9}\Z", re.A)
_PLAIN_INTEGER = re.compile(r"(?:0|-?[1-9][0-9]*)\Z")


def all_integers(column: TextColumn) -> bool:
    """Whether every text is an integer as it is printed: `007` is a symbol.

    >>> all_integers(_text_column(["0", "-12"])), all_integers(_text_column(["7", "007"]))
    (True, False)
    """
    return all(_PLAIN_INTEGER.match(a) if type(a) is str else type(a) is int for a in column.atoms)


def integers_if_all(columns: Sequence[Column], places: Sequence[tuple[Where, int]] | None = None) -> list[Column]:
    """Columns of one domain: its text columns become integers if all its columns have only integers, else symbols.

    >>> [c.to_list() for c in integers_if_all([_text_column(["1", "2"]), _text_column(["3"])])]
    [[1, 2], [3]]
    >>> [c.to_list() for c in integers_if_all([_text_column(["1", "2"]), _text_column(["x"])])]
    [['1', '2'], ['x']]
    """
    filled = [c for c in columns if len(c)]
    decided = all(all_integers(c) if isinstance(c, TextColumn) else isinstance(c, IntColumn) for c in filled)
    convert: Callable[[TextColumn, Where, int], Column] = as_integers if decided else as_symbols
    named = [(None, 0)] * len(columns) if places is None else places
    pairs = zip(columns, named, strict=True)
    return [convert(column, *place) if isinstance(column, TextColumn) else column for column, place in pairs]


def as_symbols(column: TextColumn, place: Where = None, index: int = 0) -> Column:
    """The texts as symbols."""
    if set(map(type, column.atoms)) <= {str}:
        return AtomColumn(column.codes, column.atoms)
    return _typed(column, lambda text: text, place, index)


def as_integers(column: TextColumn, place: Where = None, index: int = 0) -> Column:
    """The texts as integers. Raises `FactError` for the first that is not one."""

    if all(type(a) is str and _SHORT_INTEGER.match(a) for a in column.atoms):
        return IntColumn(np.array(list(map(int, column.atoms)), np.int64)[column.codes])
    return _typed(column, integer, place, index)


def integer(text: str) -> int:
    """The integer that a text is. Raises `FactError` where it is none, or out of range."""
    if not _INTEGER.match(text):
        raise FactError(f"{shown(text)} is not an integer, as the argument's type says")
    if len(text) > 4000 or not INTEGER_MIN <= int(text) <= INTEGER_MAX:
        raise FactError(
            f"the integer {cut(text)} is beyond the range of arguments, {INTEGER_MIN} to {INTEGER_MAX}; "
            "declare the argument's type as symbol if it is only a name"
        )
    return int(text)


def as_floats(column: TextColumn, place: Where = None, index: int = 0) -> Column:
    """The texts as floats. Raises `FactError` for the first that is not one."""

    def number(text: Any) -> float:
        if not _NUMBER.match(text) or not math.isfinite(float(text)):
            raise FactError(f"{shown(text)} is not a finite float, as the argument's type says")
        return float(text) + 0.0

    return _typed(column, number, place, index)


def as_terms(column: TextColumn, parse: Callable[[str], object], place: Where = None, index: int = 0) -> TermColumn:
    """The texts as terms in the syntax of rules, which `parse` reads."""
    terms = _converted(column, lambda text: canonical(parse(text)), place, index)
    return TermColumn([terms[code] for code in column.codes.tolist()])


def _typed(column: TextColumn, convert: Callable[[Any], Any], place: Where, index: int) -> Column:
    """A column whose texts are converted."""
    values = _converted(column, convert, place, index)
    if any(isinstance(v, tuple | Term) for v in values):
        return TermColumn([values[code] for code in column.codes.tolist()])
    if len(values) and all(type(v) is int for v in values):
        return IntColumn(np.array(values, np.int64)[column.codes])
    codes, keys = encode(list(map(atom_key, values)))
    return AtomColumn(codes[column.codes], [key if type(key) is str else key[1] for key in keys])


def _converted(column: TextColumn, convert: Callable[[Any], Any], place: Where, index: int) -> list[Any]:
    """Each distinct text converted, and all other atoms; errors name the first row with a wrong one."""
    converted: list[Any] = []
    for code, text in enumerate(column.atoms):
        if type(text) is not str:
            converted.append(str(text) if isinstance(text, RowSymbol) else text)
        else:
            try:
                converted.append(convert(text))
            except FactError as error:
                row = int((column.codes == code).argmax())
                raise error if place is None else place.error(str(error), row, index) from None
    return converted


_CONVERTERS: dict[str | None, Callable[[TextColumn, Where, int], Column]] = {
    "int": as_integers,
    "symbol": as_symbols,
    "float": as_floats,
}
