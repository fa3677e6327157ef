"""Forests in files and in other programs' memory: JSON, and Arrow tables.

A forest that is read again has no chart: its items, instances, weights and values are there, so that everything but
`why` with adjoints can be asked of it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import whole_number
from ..errors import Error, FactError, shown, shown_path
from ..facts.terms import Term, term_order
from ..packages import optional
from ..rules.parse import parse
from ..rules.syntax import Source
from .algebra import ALGEBRAS, user_algebra
from .packed import NO_ROW, Arrays, ForestRule, Meaning, Name, Packed, RuleInstance, python_value

FORMAT = "dynagrad forest 1"

UNKNOWN = ("plain", "user")
"""Semirings of which a file does not say how values are made: those of instances are written down."""


# -- JSON --------------------------------------------------------------------------------------------------------------


def to_json(forest: Packed, indent: int | None = None) -> str:
    """A forest as JSON."""
    a, meaning = forest.arrays, forest.meaning
    count = len(a.begin)
    forest.learn(range(count))
    values = meaning.values()
    data = {
        "format": FORMAT,
        "semiring": meaning.algebra.name,
        "program": meaning.source.text,
        "complete": meaning.exact,
        "rules": [
            {"number": r.number, "source": r.source, "text": r.text, "constants": list(r.constants)}
            for r in meaning.rules.values()
        ],
        "items": [
            {
                "predicate": key,
                "arguments": [term_to_json(x) for x in arguments],
                "value": python_value(values[n]),
                "opened": bool(a.opened[n]),
            }
            for n, (key, arguments) in enumerate(forest.name(n) for n in range(count))
        ],
        "instances": [_instance(forest, n, int(head)) for n, head in enumerate(forest.arrays.owner)],
    }
    return json_text(data, indent)


def _instance(forest: Packed, n: int, head: int) -> dict[str, Any]:
    """`antecedents` are places of items; ~n is one that only has to be derived."""
    number = int(forest.arrays.rule[n])
    if number < 0:
        row = int(forest.meaning.given_row[-1 - number])
        return {"head": head, "weight": forest.own_weight(n), "row": None if row == NO_ROW else row}
    found = {"head": head, "rule": number, "antecedents": forest.antecedents(n)}
    if forest.meaning.algebra.name in UNKNOWN:
        found["value"] = RuleInstance(forest, n).value
    return found


def term_to_json(value: Any) -> Any:
    """An argument: a number or a text as it is, a float apart from integers, and other terms as text of their parts."""
    if isinstance(value, bool) or value is None:
        raise Error(f"{shown(value)} is no argument")
    if isinstance(value, float):
        return {"float": repr(float(value))}
    if isinstance(value, tuple):
        return [term_to_json(x) for x in value]
    if isinstance(value, Term):
        return {"functor": value.functor, "arguments": [term_to_json(x) for x in value.arguments]}
    return value


def term_from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(term_from_json, value))
    if isinstance(value, dict):
        if "float" in value:
            return float(value["float"])
        return Term(value["functor"], *map(term_from_json, value["arguments"]))
    return value


def _read_number(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_read_number, value))
    return float(value) if isinstance(value, str) else value


def read_forest(source: str | Path) -> Packed:
    """A forest from JSON: from a path, or from its text. Raises FactError where it is none."""
    if not isinstance(source, str | Path):
        raise FactError(f"a forest is read from a path or from its text, and {shown(source)} is neither")
    try:
        path = isinstance(source, Path) or not source.lstrip().startswith("{")
        text = Path(source).read_text(encoding="utf-8") if path else str(source)
    except (OSError, ValueError) as error:  # a name may be too long, or have a zero in it
        raise FactError(f"no forest can be read from {shown_path(source)}: {error}") from None
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise FactError(f"this is {shown(data['format'])}, and not the format that is known, {FORMAT!r}")
        return _read(data)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise FactError(f"this is no forest as forest.to_json writes it: {type(error).__name__} {error}") from None


def _read(data: dict[str, Any]) -> Packed:
    items, instances = data["items"], data["instances"]
    count = len(items)
    if not count or data["semiring"] not in {*ALGEBRAS, *UNKNOWN}:
        raise ValueError("it has no items, or no semiring that is known")
    begin, end = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    rule: list[int] = []
    first: list[int] = []
    antecedent: list[int] = []
    given: list[Any] = []
    rows: list[int] = []
    before = -1
    seen: set[int] = set()
    for n, instance in enumerate(instances):
        head = int(instance["head"])
        if head != before:
            if head in seen or not 0 <= head < count:
                raise ValueError(f"instance {n}: those of an item stand together")
            seen.add(head)
            begin[head], before = n, head
        end[head] = n + 1
        first.append(len(antecedent))
        if "rule" in instance:
            rule.append(int(instance["rule"]))
            below = [int(u) for u in instance["antecedents"]]
            if any(not 0 <= (u if u >= 0 else ~u) < count for u in below):
                raise ValueError(f"instance {n} has an antecedent that is no item")
            antecedent += below
        else:
            rule.append(-1 - len(given))
            given.append(_read_number(instance["weight"]))
            rows.append(NO_ROW if instance["row"] is None else int(instance["row"]))
    first.append(len(antecedent))
    source = parse(data["program"])
    rules = {
        int(r["number"]): ForestRule(int(r["number"]), r["text"], int(r["source"]), tuple(r["constants"]))
        for r in data["rules"]
    }
    known = all(0 <= r.source < len(source.rules) for r in rules.values())
    if not known or any(r >= 0 and r not in rules for r in rule):
        raise ValueError("an instance is of a rule that is not there")
    names: list[Name] = [(i["predicate"], tuple(map(term_from_json, i["arguments"]))) for i in items]
    values = [_read_number(i["value"]) for i in items]
    algebra = ALGEBRAS.get(data["semiring"]) or user_algebra(None, None, None, None)
    order = sorted(range(count), key=lambda n: (names[n][0], [term_order(x) for x in names[n][1]]))
    rank = np.zeros(count, np.int64)
    rank[order] = np.arange(count)
    arrays = Arrays(
        begin,
        end,
        np.array([i["opened"] for i in items], np.uint8),
        np.array(rule, np.int32),
        np.array(first, np.uint32),
        np.array(antecedent, np.int32),
    )
    meaning = Meaning(
        lambda nodes: [names[n] for n in nodes],
        lambda: _stacked(values),
        _stacked(given),
        np.array(rows, np.int64),
        lambda: rank,
        rules,
        algebra,
        source,
        bool(data["complete"]),
        _aggregators(source),
        instance_values=[_read_number(i.get("value", i.get("weight"))) for i in instances]
        if algebra.name in UNKNOWN
        else (),
    )
    return Packed(arrays, meaning)


def _aggregators(source: Source) -> dict[str, str]:
    """The aggregator of each predicate, as the text says it."""
    found: dict[str, str] = {}
    for rule in source.rules:
        if rule.aggregator != "=" or rule.head.key not in found:
            found[rule.head.key] = rule.aggregator
    return found


def _stacked(values: list[Any]) -> Any:
    if values and isinstance(values[0], tuple):
        return np.array(values, np.float64)
    if any(isinstance(v, int) and not isinstance(v, bool) for v in values):
        out = np.empty(len(values), object)
        out[:] = values
        return out
    return np.array(values)


# -- Arrow -------------------------------------------------------------------------------------------------------------


def to_arrow(forest: Packed) -> dict[str, Any]:
    """A forest as Arrow tables: `items` and `instances`. Raises Error where pyarrow is not installed."""
    pa = optional("pyarrow", "forest.to_arrow()")
    a, meaning = forest.arrays, forest.meaning
    count = len(a.begin)
    forest.learn(range(count))
    values = [python_value(v) for v in meaning.values()]
    below = [forest.antecedents(n) for n in range(len(a.rule))]
    items = pa.table(
        {
            "item": [forest.full_text(n) for n in range(count)],
            "predicate": [forest.name(n)[0] for n in range(count)],
            "value": _arrow_values(values),
            "opened": a.opened.astype(bool),
        }
    )
    rules = [meaning.rules.get(int(r)) for r in a.rule]
    instances = pa.table(
        {
            "head": forest.arrays.owner,
            "rule": [None if r is None else r.text for r in rules],
            "rule_number": pa.array([None if r is None else r.source for r in rules], pa.int64()),
            "antecedents": pa.array([[u if u >= 0 else ~u for u in b] for b in below], pa.list_(pa.int64())),
            "side": pa.array([[u < 0 for u in b] for b in below], pa.list_(pa.bool_())),
            "row": pa.array([RuleInstance(forest, n).row for n in range(len(a.rule))], pa.int64()),
        }
    )
    return {"items": items, "instances": instances}


def _arrow_values(values: list[Any]) -> Any:
    return [str(v) if isinstance(v, int) and not isinstance(v, bool) and v >= 2**63 else v for v in values]


def json_text(data: Any, indent: Any) -> str:
    """Data as JSON, which has no infinity: numbers that are not finite are text. Raises Error for no indentation."""
    indent = None if indent is None else whole_number("indent", indent, 0, 16)
    return json.dumps(_finite(data), indent=indent, ensure_ascii=False, default=str)


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else str(data)
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    return [_finite(value) for value in data] if isinstance(data, list | tuple) else data
