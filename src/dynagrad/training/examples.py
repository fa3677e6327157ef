"""Training data: examples, and where they come from. Nothing is known here of models.

An example is a dict of facts, or an `Example` that says more. Data are any iterable of these that can be gone through
again: a list, a folder, a file with a line of JSON each, a function that gives an iterator.
They are read shard by shard, so that streams may be larger than memory. A pass that has other data than the first is an
error: sums over them would mean nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Real
from operator import is_
from pathlib import Path
from typing import Any

from ..arguments import takes
from ..calls import public_iterator, strict_options_class
from ..errors import Error, FactError, counted, cut, shown, shown_path
from ..facts.files import header_for, read_file
from ..facts.relation import parse_key
from ..facts.terms import Term
from ..forests.derivation import Derivation

SHARD = 256
"""How many examples are added up on their own; the sums of shards are added in their order, whoever computes them."""


@strict_options_class
@dataclass(frozen=True)
class Example:
    """The facts of an example, and what is known of its answer.

    `observed` are facts of the clamped run of a conditional objective: they replace those of the same predicates.
    `derivation` is that of the goal, if it was observed as a whole: then it counts alone, and the facts are what it
    stands on. `weight` is how often the example counts. `name` is what messages call it.
    """

    facts: Mapping[str, Any]
    observed: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    name: str = ""
    derivation: Derivation | None = None
    number: int = field(default=0, repr=False, compare=False)
    """Its place in the data, from 0, which each pass sets."""

    @property
    def clamped(self) -> Mapping[str, Any]:
        """The facts with what was observed."""
        return {**self.facts, **self.observed}


def name_of(example: Example) -> str:
    """An example in messages: its number in the data, and its name."""
    return f"example {example.number}" + (f" ({example.name})" if example.name else "")


Data = Iterable[Example | Mapping[str, Any]] | Callable[[], Iterable[Example | Mapping[str, Any]]] | str | Path


def as_example(given: Any, number: int) -> Example:
    """An example from what the data have."""
    if isinstance(given, Example):
        if given.derivation is not None and not isinstance(given.derivation, Derivation):
            raise FactError(f"example {number}: its derivation is {shown(given.derivation)}, and not a dg.Derivation")
        for what, facts in (("facts", given.facts), ("observed", given.observed)):
            if not isinstance(facts, Mapping):
                raise FactError(f"example {number}: its {what} are {shown(facts)}, and not a dict of facts")
        if not isinstance(given.name, str):
            raise FactError(f"example {number}: its name is {shown(given.name)}, and not a text")
        facts, observed = _lasting(given.facts), _lasting(given.observed)
        return replace(given, facts=facts, observed=observed, number=number, weight=_weight(given.weight, number))
    if isinstance(given, Mapping):
        return Example(_lasting(given), number=number)
    raise FactError(f"example {number} is {shown(given)}; an example is a dict of facts, or a training.Example")


def _lasting(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Facts that can be read again: an iterator of rows as a list."""
    used_up = {key: list(rows) for key, rows in facts.items() if isinstance(rows, Iterator)}
    return {**facts, **used_up} if used_up else facts


def _weight(given: Any, number: int) -> float:
    try:
        weight = float(given) if isinstance(given, Real) else -1.0
    except OverflowError:
        weight = -1.0
    if not 0 <= weight < float("inf"):
        raise FactError(f"example {number}: its weight is {shown(given)}, and not a number from 0 on")
    return weight


class DataPasses:
    """Data that can be gone through again and again, shard by shard.

    >>> passes = DataPasses([{"a/1": [("x",)]}] * 300)
    >>> [len(shard) for shard in passes.shards()], [len(shard) for shard in passes.shards()]
    ([256, 44], [256, 44])
    """

    def __init__(self, data: Any) -> None:
        self._path: Path | None = None
        self._first: tuple[int, _State] | None = None  # how many examples the first pass had, and of what files
        self.lasting = isinstance(data, list | tuple)  # in memory, and not to be changed while a model is trained
        self._given: list[Any] = []  # of lasting data: what was given,
        self._known: list[Example] = []  # the examples that it is,
        self._lists: dict[tuple[int, int], list[Example]] = {}  # and shards, by their first example and their size
        if isinstance(data, str | Path):
            path = self._path = Path(data)
            if not path.exists():
                raise FactError(f"there is no data at {shown_path(path)}")
            self._begin: Callable[[], Iterable[Any]] = lambda: read_examples(path)
        elif isinstance(data, Mapping | Example):
            raise Error("data are a list of examples; for one example, give a list of it")
        elif callable(data):
            if isinstance(data, type) or not takes(data, 0):
                raise Error(f"the data are a function, {shown(data)}, which has to begin an iterator without arguments")
            self._begin = data
        elif isinstance(data, Iterator):
            raise Error(
                "the data are an iterator, which is used up after one pass; give a list, or a function that begins a "
                "new iterator"
            )
        elif isinstance(data, Iterable):
            self._begin = lambda: data
        else:
            raise Error(f"data are a list of examples, a path, or a function that gives an iterator, not {shown(data)}")

    def __iter__(self) -> Iterator[Example]:
        before = _state(self._path)
        if self._first is not None:
            _same(self._first[1], before)
        found = self._begin()
        if not isinstance(found, Iterable):
            raise Error(f"the function that gives the data returned {shown(found)}, which cannot be gone through")
        count = 0
        known, keep = self._known, self.lasting
        for given in found:
            if count < len(known) and self._given[count] is given:
                yield known[count]
            else:
                example = as_example(given, count)
                if keep and count == len(known):
                    self._given.append(given)
                    known.append(example)
                yield example
            count += 1
        _same(before, _state(self._path))
        if self._first is None:
            self._first = (count, before)
        elif count != self._first[0]:
            raise FactError(
                f"the data changed between passes: the first had {counted(self._first[0], 'example')}, "
                f"and this one {count:,}; each pass has to give the same ones"
            )

    def shards(self, size: int | None = None) -> Iterator[list[Example]]:
        """The examples in lists of so many, SHARD as a rule: where data last, in the same lists as before."""
        size = SHARD if size is None else size
        if self._first is not None and self._as_before():
            kept = [self._lists.get((begin, size)) for begin in range(0, len(self._known), size)]
            if all(kept):
                yield from filter(None, kept)
                return
        examples, begin = iter(self), 0
        size = min(size, sys.maxsize)
        while shard := list(islice(examples, size)):
            before = self._lists.get((begin, size))
            if before is not None and len(before) == len(shard) and all(map(is_, before, shard)):
                shard = before
            elif self.lasting:
                self._lists[begin, size] = shard
            yield shard
            begin += size

    def _as_before(self) -> bool:
        """Whether lasting data are the very objects of the pass before, which is quick to tell."""
        given = self._begin() if self.lasting else None
        return isinstance(given, list | tuple) and len(given) == len(self._given) and all(map(is_, self._given, given))


_State = dict[str, tuple[int, int]]
"""The size and the time of the last change of each file."""


def _state(path: Path | None) -> _State:
    if path is None:
        return {}
    try:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        stats = {str(p): p.stat() for p in files}
    except OSError as error:
        raise FactError(f"the data in {shown_path(path)} cannot be read: {error}") from None
    return {name: (s.st_size, s.st_mtime_ns) for name, s in stats.items()}


def _same(before: _State, now: _State) -> None:
    """Raises FactError for a file that changed."""
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            how = "was removed" if name not in now else "is new" if name not in before else "changed"
            raise FactError(
                f"{cut(name)} {how} while the model was trained: each pass over the data has to see the same; begin "
                "again with what is there now"
            )


# -- files -------------------------------------------------------------------------------------------------------------


@public_iterator
def read_examples(path: str | Path, *, header: bool | None = None) -> Iterator[Example]:
    """Examples from a file with a JSON object on each line, or from a folder: in the order of their names.

    A line has a list of rows for each predicate, `{"word/2": [[0, "dogs"]]}`, or `"facts"` with such an object, and
    perhaps `"observed"`, `"weight"` and `"name"`. A list in a row is a list, and `{"f": ["a"]}` the term `f(a)`. In a
    folder each file that ends in `.jsonl` has examples, and each folder is an example: its files are the facts of
    predicates, `word.3.tsv` of `word/3`. `header` says whether the first line of text files of facts is one, which has
    the names of columns and is no fact.

    Raises `FactError`, with the file and the line, for what is no example.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "one.jsonl"
    >>> _ = path.write_text('{"facts": {"word/2": [[0, "dogs"]]}, "name": "the first"}')
    >>> [(example.name, example.facts) for example in read_examples(path)]
    [('the first', {'word/2': [(0, 'dogs')]})]
    """
    if not isinstance(path, str | Path) or "\0" in str(path):
        raise FactError(f"examples are read from the path of a file or a folder, not {shown(path)}")
    path = Path(path)
    if path.is_dir():
        entries = sorted(p for p in path.iterdir() if not p.name.startswith("."))
        if not entries:
            raise FactError(f"the folder {shown_path(path)} has no examples")
        for entry in entries:
            if entry.is_dir():
                yield Example(_facts_in(entry, header), name=entry.name)
            elif entry.suffix == ".jsonl":
                yield from _lines(entry)
        return
    yield from _lines(path)


def _facts_in(folder: Path, header: bool | None) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for file in sorted(folder.iterdir()):
        name, _, arity = file.stem.rpartition(".")
        if not name or not arity.isdigit():
            raise FactError(f"{shown_path(file)}: the name of a file of facts is that of its predicate, as word.3.tsv")
        facts[f"{name}/{arity}"] = read_file(file, f"{name}/{arity}", header=header_for(file, header))
    return facts


def _lines(path: Path) -> Iterator[Example]:
    try:
        with path.open(encoding="utf-8") as lines:
            for n, line in enumerate(lines, 1):
                if line.strip():
                    yield _example_of(line, f"{path}, line {n}")
    except (OSError, UnicodeDecodeError) as error:
        raise FactError(f"the data in {shown_path(path)} cannot be read: {error}") from None


def _example_of(line: str, where: str) -> Example:
    """An example as JSON: a dict of facts, or one with "facts" and perhaps "observed", "weight" and "name"."""
    try:
        return _of_json(json.loads(line), where)
    except json.JSONDecodeError as error:
        raise FactError(f"{where}: this is not JSON: {error}") from None
    except RecursionError:
        raise FactError(f"{where}: its lists and objects are nested too deep to be read") from None


def _of_json(data: Any, where: str) -> Example:
    """An example from a parsed JSON value: an object of facts, or one with `facts`, `observed` and a weight."""
    if not isinstance(data, dict):
        raise FactError(f"{where}: an example is an object with facts by predicate")
    if "facts" not in data:
        return Example(_facts(data, where), name=where)
    unknown = set(data) - {"facts", "observed", "weight", "name"}
    if unknown:
        raise FactError(f"{where}: an example has no {shown(min(unknown))}; it has facts, observed, weight and name")
    weight = data.get("weight", 1.0)
    return Example(
        _facts(data["facts"], where), _facts(data.get("observed", {}), where), weight, str(data.get("name", where))
    )


def _facts(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise FactError(f"{where}: facts are an object with a list of rows for each predicate")
    for key, rows in data.items():
        parse_key(key)
        if not isinstance(rows, list):
            raise FactError(f"{where}: the facts of {shown(key)} are {shown(rows)}, and not a list of rows")
    return {
        key: [tuple(map(_term, row)) if isinstance(row, list) else row for row in rows] for key, rows in data.items()
    }


def _term(value: Any) -> Any:
    """A term as JSON has it: a list, or {"functor": [arguments]}."""
    if isinstance(value, list):
        return [_term(x) for x in value]
    if isinstance(value, dict) and len(value) == 1:
        ((functor, arguments),) = value.items()
        return Term(functor, *map(_term, arguments))
    return value
