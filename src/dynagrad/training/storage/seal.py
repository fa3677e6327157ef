"""What a training run is, as a value that a checkpoint has and the run that goes on from it has to have, too.

All that its numbers depend on is in it: the program and its functions, fixed facts, parameters and where they begin,
priors, objective, method and options, and each example. It does not say how long a run may be, nor who does the work.
How what users wrote is told apart is for `described.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...charts.program import Program, binding_of, context_of
from ...eager.pytree import unravelled
from ...errors import Error, shown, shown_path
from ...facts.readers import read
from ...facts.relation import Relation
from ..examples import DataPasses, Example
from ..parameters.differentiable import Differentiable
from ..parameters.log_linear import LogLinear
from ..parameters.network import Torch
from ..parameters.parametrisation import Parametrisation
from ..specification import Specification, Theta
from .described import described, digest

BLOCKS = 1024
"""The most digests of examples that a checkpoint has; of more examples each is of several."""
SECRET = ("program", "functions", "parametrisations", "fixed facts", "losses", "start")
"""What is a digest, and tells nothing."""


def about(
    spec: Specification,
    method: str,
    seed: int,
    options: Mapping[str, Any],
    start: Theta,
    data: DataPasses,
    dev: DataPasses | None,
) -> dict[str, Any]:
    """What a run is. The data are gone through once for it."""
    return {
        "program": hashlib.sha256(spec.program.source.encode()).hexdigest(),
        "semiring": spec.program.semiring,
        "values": spec.program.values,
        "functions": digest(
            f"{name} {described(f)}".encode(errors="replace")
            for program in (spec.program, *spec.others)
            for name, f in _functions(program)
        ),
        "goal": spec.goal,
        "objective": _short(described(spec.objective)),
        "priors": {name: _short(described(p)) for name, p in spec.priors.items()},
        "method": method,
        "seed": seed,
        "options": {k: _short(described(v)) for k, v in options.items()},
        "parameters": {name: p.size for name, p in spec.parametrisations.items()},
        "parametrisations": digest(part for p in spec.parametrisations.values() for part in _of_parametrisation(p)),
        "fixed facts": digest(
            part
            for fixed in (spec.fixed, *(binding_of(bound).given for bound in spec.others.values()))
            for key, r in fixed.items()
            if key not in spec.places
            for part in (key.encode(), _of_relation(r))
        ),
        "losses": digest(part for key, r in spec.losses.items() for part in (key.encode(), _of_relation(r))),
        "start": digest(x.tobytes() for x in start.values()),
        "examples": _of_data(data),
        "held-out data": None if dev is None else _of_data(dev),
    }


def check_same(saved: Any, now: Mapping[str, Any], path: Path) -> None:
    """Raises Error where a checkpoint is of another run, and says what is not the same."""
    for name, value in json.loads(json.dumps(now)).items():
        if saved[name] != value:
            told = "" if name in SECRET else f": {_difference(saved[name], value)}"
            raise Error(
                f"the checkpoint {shown_path(path)} is of another run, whose {name} differ{told}; give another file, "
                "or remove it to begin again"
            )


def _difference(saved: Any, now: Any) -> str:
    """What is not the same."""
    if not (_is_data(saved) and _is_data(now)):
        told = [("none" if x is None else f"{x['count']:,}" if _is_data(x) else shown(x)) for x in (saved, now)]
        return " and not ".join(told)
    if saved["count"] != now["count"]:
        return f"there are {saved['count']:,}, and not {now['count']:,}"
    (a, size), (b, _) = ((x["blocks"], x["size"]) for x in (saved, now))
    if sorted(a) == sorted(b):
        return "they are the same ones in another order"
    others = [n for n, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    n, more = others[0], "" if len(others) == 1 or size > 1 else f", and so are {len(others) - 1:,} more"
    which = f"example {n}" if size == 1 else f"one of the examples {n * size:,} to {(n + 1) * size - 1:,}"
    return f"{which} is another one{more}"


def _is_data(x: Any) -> bool:
    return isinstance(x, dict) and "blocks" in x


# -- data --------------------------------------------------------------------------------------------------------------


def _of_data(data: DataPasses) -> dict[str, Any]:
    """How many examples there are, with digests of blocks of so many of all of them."""
    each = [_of_example(example) for example in data]
    size = -(-len(each) // BLOCKS) or 1
    blocks = each if size == 1 else [digest(each[n : n + size]).encode() for n in range(0, len(each), size)]
    return {"count": len(each), "size": size, "blocks": [block.decode()[:16] for block in blocks]}


def _of_example(example: Example) -> bytes:
    """A digest of what an example says, but for its name, the same in every process."""
    parts = [repr(float(example.weight)).encode()]
    for facts in (example.facts, example.observed):
        parts.append(str(len(facts)).encode())
        for key in sorted(map(str, facts)):
            parts.append(key.encode(errors="replace"))
            try:
                relation = read(key, facts[key], finite="no_nan")
            except (Error, KeyError):  # the run will say what is wrong with it
                continue
            parts.append(_of_relation(relation))
    if example.derivation is not None:
        parts.append(example.derivation.to_json().encode(errors="replace"))
    return digest(parts).encode()


def _of_relation(relation: Relation) -> bytes:
    values = b"" if relation.values is None else np.asarray(relation.values, np.float64).tobytes()
    return repr([c.to_list() for c in relation.columns]).encode(errors="replace") + values


# -- settings ----------------------------------------------------------------------------------------------------------


def _short(text: str) -> str:
    """The text, or its beginning and a digest of it all."""
    return text if len(text) <= 200 else f"{text[:100]}... {digest([text.encode(errors='replace')])}"


def _functions(program: Program) -> list[tuple[str, Any]]:
    """The functions of values and those behind external predicates, by name."""
    context = context_of(program)
    return sorted({**context.options.functions, **context.externals}.items())


def _of_parametrisation(p: Parametrisation) -> Iterator[bytes]:
    """What weights are made of: rows, groups, features, functions, what is frozen, and whether they come as logs."""
    yield f"{type(p).__qualname__} {p.logs}".encode()
    for key, relation in p.rows.relations.items():
        yield key.encode()
        yield _of_relation(replace(relation, values=None))  # values are where training begins
    if p.groups is not None:
        yield p.groups.parameter.tobytes() + p.groups.group.tobytes()
    if p.frozen is not None:
        yield p.frozen.tobytes()
    if isinstance(p, LogLinear):
        yield from (repr(name).encode(errors="replace") for name in p.features)
        yield from (part.tobytes() for part in p.entries())
    if isinstance(p, Differentiable):
        form = unravelled(p.parameters, np.zeros(p.size))  # their numbers are where training begins
        yield from (described(x).encode(errors="replace") for x in (p.function, form))
    if isinstance(p, Torch):
        yield repr(p.module).encode(errors="replace")
        yield from (described(x).encode(errors="replace") for x in (*_of_module(p.module), *p.inputs))


def _of_module(module: Any) -> Iterator[Any]:
    """What a module of PyTorch depends on beside the parameters that are trained."""
    for part in module.modules():
        yield type(part)
        yield {name: x for name, x in vars(part).items() if not name.startswith("_")}
        if not (part.training and getattr(part, "track_running_stats", False)):  # these it writes, and does not read
            yield list(part.buffers(recurse=False))
    yield [x for x in module.parameters() if not x.requires_grad]
