"""Models as folders, in which a person can read, and nothing is executed.

`program.dyna` is the text, and that of another program which the objective runs is beside it; `model.toml` says what
the model is, Arrow files have rows and numbers, and `SHA256SUMS` is the last word on whether they are what was written;
`sha256sum -c` reads it too. Functions are not saved: where a model has one (a neural network for its weights, an
objective in Python), who loads it gives it again.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...charts.program import Program, binding_of, context_of, said_values, with_facts
from ...errors import Error, FactError, raised, shown, shown_path
from ...facts.relation import Relation
from ...forests.storage import term_from_json
from ...packages import optional
from ...rules.parse import parse_item
from ...runtime.disk.whole import replace_folder, why
from ..objectives.evaluation import Objective, facts_for
from ..objectives.expectations import Entropy, Risk
from ..objectives.likelihood import Best, Conditional, Likelihood
from ..objectives.losses import losses_of
from ..objectives.sums import Sum
from ..parameters.distribution import Distribution
from ..parameters.groups import Groups, values_of
from ..parameters.log_linear import LogLinear
from ..parameters.parametrisation import Parametrisation
from ..parameters.rows import Rows
from ..priors import L1, Dirichlet, Gaussian, Prior
from ..specification import Specification, Theta, bind_others, with_rows
from .tables import arrow, columns_of, file_of, jsons, numbers, relation_of, table_of

FORMAT, VERSION = "dynagrad model", 1
TEXT, HEAD, SUMS = "program.dyna", "model.toml", "SHA256SUMS"
OBJECTIVES: dict[str, type[Any]] = {c.__name__: c for c in (Best, Conditional, Entropy, Likelihood, Risk, Sum)}
"""All of ours; those with a function among their fields are to be given again."""
GIVEN = "given"
"""The kind of what is not in the folder, as it is a function."""

Files = dict[str, bytes]


# -- saving ------------------------------------------------------------------------------------------------------------


def save(spec: Specification, theta: Theta, folder: Path) -> None:
    """Writes a model. Raises Error where that fails; a folder that was there is then as it was."""
    toml = optional("tomli_w", "model.save()")
    files, losses = Files(), enumerate(spec.losses.items())
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "goal": spec.goal,
        "program": _program(files, spec.program, TEXT),
        "objective": _objective(files, spec.objective),
        "facts": {},
        "losses": {key: _named(files, f"losses-{n}-{_plain(key)}", _table(r)) for n, (key, r) in losses},
        "parametrisations": [
            _parametrisation(files, n, name, p, spec.priors.get(name), theta[name])
            for n, (name, p) in enumerate(spec.parametrisations.items())
        ],
    }
    learned = {key for p in spec.parametrisations.values() for key in p.rows.keys}
    given = {key: r for b in (*spec.others.values(), spec.bound) for key, r in binding_of(b).given.items()}
    for n, (key, relation) in enumerate(given.items()):
        if key not in learned:
            head["facts"][key] = _named(files, f"facts-{n}-{_plain(key)}", _table(relation))
    files[HEAD] = f"# A model of Dynagrad. Its program is in {TEXT}.\n{toml.dumps(head)}".encode()
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    replace_folder(folder, {**files, SUMS: sums.encode()}, _objection)


def check_replaceable(folder: Path) -> None:
    """Raises Error where `save` would not replace what is there: to be asked before a long training."""
    try:
        said = _objection(folder) if folder.exists() else None
    except OSError as error:
        raise Error(f"{shown_path(folder)} cannot be read: {why(error)}") from None
    if said is not None:
        raise Error(f"{shown_path(folder)} is not replaced: {said}")


def _objection(folder: Path) -> str | None:
    """Why a folder that is there may not be replaced."""
    if not folder.is_dir():
        return "it is no folder"
    there = {p.name for p in folder.iterdir()}
    if not there:
        return None
    try:
        head = tomllib.loads((folder / HEAD).read_text("utf-8"))
        known = {*_sums(folder), SUMS}
    except (OSError, ValueError):
        head, known = {}, set()
    if head.get("format") != FORMAT:
        return "it is no model, or a damaged one; give another name, or remove it"
    if there - known:
        return f"it has {shown(min(there - known))}, which is no file of a model; give another name, or move it"
    return None


def _table(relation: Relation) -> bytes:
    return file_of(*columns_of(relation))


def _named(files: Files, name: str, data: bytes) -> str:
    files[f"{name}.arrow"] = data
    return f"{name}.arrow"


def _plain(key: str) -> str:
    """A predicate as a part of the name of a file."""
    return re.sub(r"[^A-Za-z0-9_]", "-", key.replace("/", "."))[:40]


def _program(files: Files, program: Program, name: str) -> dict[str, Any]:
    """Writes the text of a program; what the TOML says of it."""
    context = context_of(program)
    files[name] = program.source.encode()
    found = {
        "file": name,
        "functions": sorted({*context.options.functions, *context.externals}),
    }
    said = {"values": said_values(program), "semiring": context.rules.semiring}
    return found | {name: text for name, text in said.items() if text is not None}


def _objective(files: Files, objective: Objective, place: str = "") -> dict[str, Any]:
    """Writes the programs of an objective, in files of a `place`; what the TOML says of it."""
    name = type(objective).__name__
    given = {"kind": GIVEN, "class": name}
    if type(objective) is not OBJECTIVES.get(name):
        return given
    found: dict[str, Any] = {"kind": name}
    own: Files = {}  # written only if all of it can be
    for field, value in vars(objective).items():
        if field == "parts":  # of a sum: a factor and an objective each
            found[field] = []
            for n, (x, part) in enumerate(value):
                within: Files = {}
                found[field].append({"factor": float(x), "objective": _objective(within, part, f"{place}{n}-")})
                own |= within
            if any(part["objective"]["kind"] == GIVEN for part in found[field]):
                return given
        elif isinstance(value, Program):
            found[field] = _program(own, value, f"{place}{field}.dyna")
        elif isinstance(value, str | int | float):
            found[field] = value
        elif value is not None:
            return given
    files |= own
    return found


def _parametrisation(
    files: Files, n: int, name: str, p: Parametrisation, prior: Prior | None, theta: Any
) -> dict[str, Any]:
    """Writes the files of a parametrisation; what the TOML says of it."""
    kind = type(p).__name__
    if type(p) not in (Distribution, LogLinear):
        kind = GIVEN
    found: dict[str, Any] = {"name": name, "kind": kind, "class": type(p).__name__}
    columns: dict[str, Any] = {}
    row_columns: dict[str, Any] = {}
    if isinstance(p, LogLinear) and kind != GIVEN:
        columns["feature"] = jsons(p.features)
        initial = p._initial
        columns["initial"] = (
            p.begun
            if p.begun is not None
            else np.array([float(initial.get(f, 0.0)) for f in p.features])
            if isinstance(initial, Mapping)
            else np.full(p.size, 0.0 if initial is None else float(initial))
        )
        found["noise"] = float(p._noise)
        at, feature, values = p.entries()
        entries = file_of({"row": at, "feature": feature, "value": values})
        found["features"] = _named(files, f"features-{n}", entries)
        if p.groups is not None:
            row_columns["group"] = _groups(p.groups)
    elif isinstance(p, Distribution) and kind != GIVEN:
        assert p.groups is not None
        found["initial"] = p.initial
        columns["parameter"] = p.names()
        columns["group"] = _groups(p.groups)
        row_columns["parameter"] = p.groups.parameter
    columns["value"] = theta
    if kind != GIVEN:
        columns["frozen"] = p.frozen
    if prior is not None:
        found["prior"] = _prior(prior, p, columns, name)
    found["parameters"] = _named(files, f"parameters-{n}", _surely(columns))
    found["rows"], begin = {}, 0
    for m, (key, relation) in enumerate(p.rows.relations.items()):
        own, about = columns_of(relation)
        end = begin + relation.count
        data = file_of({**own, **{k: x[begin:end] for k, x in row_columns.items()}}, about)
        found["rows"][key] = _named(files, f"rows-{n}-{m}-{_plain(key)}", data)
        begin = end
    return found


def _surely(columns: dict[str, Any]) -> bytes:
    """Parameters with their names; JSON where a name is no text that Arrow can have."""
    try:
        return file_of(columns)
    except UnicodeEncodeError:
        return file_of({k: jsons(x) if k == "parameter" else x for k, x in columns.items()})


def _groups(groups: Groups) -> Any:
    """The group of each parameter, with the names of groups."""
    pa = arrow()
    try:
        names = pa.array(list(groups.names), pa.string())
    except UnicodeEncodeError:
        names = pa.array([ascii(name) for name in groups.names], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(groups.group, pa.int64()), names)


def _prior(prior: Prior, p: Parametrisation, columns: dict[str, Any], name: str) -> dict[str, Any]:
    match prior:
        case Dirichlet(alpha=alpha) if isinstance(alpha, int | float):
            return {"kind": "Dirichlet", "alpha": float(alpha)}
        case Dirichlet():
            columns["alpha"] = prior.alphas(p)
            return {"kind": "Dirichlet"}
        case Gaussian(variance=variance, mean=mean) if not isinstance(mean, Mapping):
            return {"kind": "Gaussian", "variance": float(variance), "mean": float(mean)}
        case Gaussian(variance=variance):
            columns["mean"] = np.broadcast_to(prior.means(p), p.size)
            return {"kind": "Gaussian", "variance": float(variance)}
        case L1(strength=strength):
            return {"kind": "L1", "strength": float(strength)}
    raise Error(f"the prior of {name} is a {type(prior).__name__}, and only those of dynagrad.training can be saved")


# -- loading -----------------------------------------------------------------------------------------------------------


def load(
    folder: Path,
    parametrisations: Mapping[str, Parametrisation],
    objective: Objective | None,
    functions: Mapping[str, Callable[..., Any]],
) -> tuple[Specification, Theta]:
    """A model from its folder. Raises FactError where it is none, or damaged; Error where a function is not given."""
    head, files = _opened(folder)
    try:
        return _loaded(folder, head, files, parametrisations, objective, functions)
    except Error:
        raise
    except Exception as error:  # of whatever a folder has that we did not write
        raise FactError(f"{shown_path(folder)} is no model as model.save() writes it: {raised(error)}") from None


def _opened(folder: Path) -> tuple[dict[str, Any], Files]:
    """The contents of the TOML file, and all files, once their hashes have been checked."""
    where = shown_path(folder)
    try:
        if not (folder / HEAD).is_file():
            there = "has no model.toml" if folder.is_dir() else "is no folder"
            raise FactError(f"there is no model at {where}, which {there}")
        text = (folder / HEAD).read_bytes()
        try:
            head = tomllib.loads(text.decode())
        except ValueError as error:
            raise FactError(f"the model in {where} is damaged: {HEAD} cannot be read: {error}") from None
        if head.get("format") != FORMAT:
            raise FactError(f"{where} is no model of Dynagrad: its {HEAD} is of something else")
        version = head.get("version")
        if not isinstance(version, int) or version != VERSION:
            newer = isinstance(version, int) and version > VERSION
            raise FactError(
                f"the model in {where} is of format {shown(version)}, and this version of Dynagrad reads {VERSION}"
                + ("; install a newer one" if newer else "")
            )
        files: Files = {}
        for name, wanted in _sums(folder).items():
            if name != Path(name).name:
                raise ValueError(f"{shown(name)} is no name of a file")
            data = text if name == HEAD else _bytes(folder / name)
            if hashlib.sha256(data).hexdigest() != wanted:
                raise FactError(f"the model in {where} is damaged: {name} is not as it was written")
            files[name] = data
    except FileNotFoundError as error:
        raise FactError(f"the model in {where} is damaged: {Path(error.filename).name} is missing") from None
    except (OSError, ValueError) as error:
        raise FactError(f"the model in {where} cannot be read: {why(error)}") from None
    if missing := {HEAD, TEXT} - set(files):
        raise FactError(f"the model in {where} is damaged: {SUMS} does not list {min(missing)}")
    return head, files


def _bytes(file: Path) -> bytes:
    """The contents of a file. Raises ValueError for a device or a pipe, which may have no end."""
    if file.exists() and not file.is_file():
        raise ValueError(f"{file.name} is no file")
    return file.read_bytes()


_SUM = re.compile(r"([0-9a-f]{64})  (.+)\Z")


def _sums(folder: Path) -> dict[str, str]:
    """The sum of each file. Raises ValueError where a line is none."""
    found: dict[str, str] = {}
    text = _bytes(folder / SUMS).decode()
    for line in text.removesuffix("\n").split("\n"):
        match = _SUM.match(line)
        if match is None or match[2] in found:
            raise ValueError(f"{SUMS} has lines that are no sums")
        found[match[2]] = match[1]
    if not text.endswith("\n"):
        raise ValueError(f"{SUMS} has no end")
    return found


def _loaded(
    folder: Path,
    head: dict[str, Any],
    files: Files,
    parametrisations: Mapping[str, Parametrisation],
    objective: Objective | None,
    functions: Mapping[str, Callable[..., Any]],
) -> tuple[Specification, Theta]:
    program = _read_program(folder, head["program"], files, functions)
    facts: dict[str, Relation] = {key: relation_of(table_of(files[name])) for key, name in head["facts"].items()}
    chosen: dict[str, Parametrisation] = {}
    priors: dict[str, Prior] = {}
    theta: Theta = {}
    for entry in head["parametrisations"]:
        name = entry["name"]
        parameters = table_of(files[entry["parameters"]])
        tables = {key: table_of(files[file]) for key, file in entry["rows"].items()}
        rows = Rows({key: relation_of(table) for key, table in tables.items()})
        again = parametrisations.get(name)
        if entry["kind"] == GIVEN:
            chosen[name] = _given_again(name, entry, rows, again)
        elif again is not None:
            raise Error(f"parametrisations has {shown(name)}, which the model in {shown_path(folder)} has already")
        else:
            chosen[name] = _KINDS[entry["kind"]](entry, files, parameters, tables, rows)
        theta[name] = numbers(parameters, "value").astype(np.float64)
        missing = chosen[name].size - int((~np.isnan(theta[name])).sum())
        if len(theta[name]) != chosen[name].size or missing:
            raise ValueError(f"{missing:,} of the {chosen[name].size:,} parameters of {name} have no number")
        if "prior" in entry:
            priors[name] = _prior_of(entry["prior"], parameters, chosen[name])
    for name in parametrisations:
        if name not in chosen:
            raise Error(f"parametrisations has {shown(name)}; the model has {', '.join(chosen)}")
    goal = str(head["goal"])
    for key in (parse_item(goal).key, *(key for p in chosen.values() for key in p.rows.keys)):
        if key not in program.predicates:
            raise FactError(f"the model in {shown_path(folder)} is damaged: its program has no predicate {key}")
    if objective is None:
        objective = _objective_of(
            head["objective"], folder, lambda about: _read_program(folder, about, files, functions)
        )
    facts |= {key: relation_of(table_of(files[name])) for key, name in head["losses"].items()}
    losses = {key: facts[key] for key in losses_of(objective) & facts.keys()}  # of the objective that is given now
    facts |= {key: replace(relation, values=None) for key, relation in losses.items()}
    others = bind_others(objective, program, facts, chosen)
    there = {key for other in others for key in other.predicates}
    bound = with_rows(with_facts(program, facts_for(facts, program.predicates, there)), chosen)
    return Specification(program, chosen, priors, objective, goal, bound, others, losses), theta


def _read_program(
    folder: Path, about: Mapping[str, Any], files: Files, functions: Mapping[str, Callable[..., Any]]
) -> Program:
    """The program of a saved model, with the functions that it was saved with, by their names."""
    wanted, given = list(about["functions"]), {_bare(name) for name in functions}
    missing = [name for name in wanted if name not in functions and _bare(name) not in given]
    if missing:
        raise Error(
            f"the program of the model in {shown_path(folder)} has the function {missing[0]}, and functions are not "
            f"saved: give it again, with load_model(folder, functions={{{missing[0]!r}: ...}})"
        )
    if len([name for name in files if name.endswith(".dyna")]) > 1:  # the others may be of another of these
        functions = {name: f for name, f in functions.items() if _bare(name) in map(_bare, wanted)}
    return Program(files[about["file"]].decode(), about.get("semiring"), functions, values=about.get("values"))


def _bare(name: str) -> str:
    return name.partition("/")[0]


def _given_again(name: str, entry: dict[str, Any], rows: Rows, given: Parametrisation | None) -> Parametrisation:
    """A parametrisation that is a function, from who loads the model."""
    if given is None:
        raise Error(
            f"the weights of {name} come from a {entry['class']}, and functions are not saved: give it again, with "
            f"load_model(folder, parametrisations={{{name!r}: ...}})"
        )
    same = isinstance(given, Parametrisation) and given.rows.keys_of_rows == rows.keys_of_rows
    if not same or given.rows.arguments != rows.arguments:
        raise Error(f"the parametrisation that is given for {name} has other rows than the one that was saved")
    return given


def _distribution(entry: dict[str, Any], files: Files, parameters: Any, tables: Any, rows: Rows) -> Parametrisation:
    parameter = np.concatenate([np.zeros(0, np.int64), *(numbers(t, "parameter") for t in tables.values())])
    group, names = _groups_of(parameters)
    _within(parameter, len(group), "parameter")
    p = Distribution.__new__(Distribution)
    p.rows, p.initial = rows, str(entry["initial"])
    p.groups = Groups(parameter, group, names)
    p.size = p.groups.size
    p._values = None if rows.values is None else values_of(p.groups, rows, rows.values)
    p.frozen = _mask(parameters)
    return p


def _log_linear(entry: dict[str, Any], files: Files, parameters: Any, tables: Any, rows: Rows) -> Parametrisation:
    entries = table_of(files[entry["features"]])
    p = LogLinear.__new__(LogLinear)
    p.rows = rows
    p.features = [term_from_json(json.loads(x)) for x in parameters.column("feature").to_pylist()]
    p.size = len(p.features)
    p._at, p._feature, p._values = (numbers(entries, name) for name in ("row", "feature", "value"))
    _within(p._at, len(rows), "row")
    _within(p._feature, p.size, "feature")
    p.groups = None
    if all("group" in t.column_names for t in tables.values()):
        parts = [_groups_of(t) for t in tables.values()]
        p.groups = Groups(np.arange(len(rows)), np.concatenate([g for g, _ in parts]), parts[0][1])
    initial = numbers(parameters, "initial")
    p._initial = dict(zip(p.features, initial.tolist(), strict=True))
    p._noise = float(entry["noise"])
    p.frozen = _mask(parameters)
    return p


_KINDS: dict[str, Callable[..., Parametrisation]] = {"Distribution": _distribution, "LogLinear": _log_linear}


def _groups_of(table: Any) -> tuple[Any, tuple[str, ...]]:
    column = table.column("group").combine_chunks()
    chunk = column if hasattr(column, "indices") else column.chunk(0)
    names = tuple(chunk.dictionary.to_pylist())
    group = chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _within(group, len(names), "group")
    return group, names


def _mask(parameters: Any) -> Any:
    return parameters.column("frozen").to_numpy().astype(bool)


def _within(places: Any, count: int, what: str) -> None:
    if places.dtype != np.int64:
        raise ValueError(f"a {what} is no whole number")
    wrong = places[(places < 0) | (places >= count)]
    if len(wrong):
        raise ValueError(f"{what} {wrong[0]} is missing: there are {count:,}, from 0 on")


def _prior_of(entry: dict[str, Any], parameters: Any, p: Parametrisation) -> Prior:
    def by_name(column: str) -> dict[str, float]:
        return dict(zip(p.names(), numbers(parameters, column).tolist(), strict=True))

    match entry["kind"]:
        case "Dirichlet":
            return Dirichlet(entry["alpha"] if "alpha" in entry else by_name("alpha"))
        case "Gaussian":
            return Gaussian(entry["variance"], entry["mean"] if "mean" in entry else by_name("mean"))
        case "L1":
            return L1(entry["strength"])
    raise ValueError(f"there is no prior {shown(entry['kind'])}")


def _objective_of(entry: dict[str, Any], folder: Path, program_of: Callable[[Mapping[str, Any]], Program]) -> Objective:
    if entry["kind"] == GIVEN:
        raise Error(
            f"the objective of the model in {shown_path(folder)} is a function ({entry['class']}), and functions are "
            "not saved: give it again, with load_model(folder, objective=...)"
        )
    parts = [(part["factor"], _objective_of(part["objective"], folder, program_of)) for part in entry.get("parts", ())]
    named = {k: program_of(v) if isinstance(v, Mapping) else v for k, v in entry.items() if k not in ("kind", "parts")}
    found: Objective = OBJECTIVES[entry["kind"]](*parts, **named)
    return found
