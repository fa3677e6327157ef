"""Runs benchmarks and prints a table of their figures; a run of all of them writes RESULTS.md too."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from . import (
    collins,
    compiled,
    compiling,
    cycles,
    derivations,
    dijkstra,
    dvl,
    first_calls,
    folds,
    functions,
    gradient,
    hmm,
    kernels,
    loading,
    pullback,
    suite,
    training,
    wsj,
)
from .common import HERE, Row, Skip

BENCHMARKS: dict[str, Callable[[], list[Row]]] = {
    "inside": wsj.inside,
    "log": wsj.log,
    "real": wsj.real,
    "dijkstra": dijkstra.dijkstra,
    "hmm": hmm.forward,
    "cycles": cycles.cycles,
    "compile": compiling.compiling,
    "first": first_calls.first_calls,
    "import": compiling.importing,
    "rules": compiling.many_rules,
    "loading": loading.loading,
    "derivations": derivations.derivations,
    "gradient": gradient.wsj_gradient,
    "hessian": gradient.hessian,
    "crf": gradient.crf,
    "calls": gradient.calls,
    "cost": gradient.cost,
    "scalars": functions.scalars,
    "arrays": functions.arrays,
    "taylor": functions.taylor,
    "nested": functions.nested,
    "memory": functions.memory,
    "compiled": compiled.compiled,
    "kernels": kernels.kernels,
    "dvl": dvl.dvl,
    "pullback": pullback.pullback,
    "em": training.hmm,
    "fields": training.crf,
    "grammar": training.wsj,
    "stream": training.memory,
    "folds": folds.folds,
    "nltk": folds.beside_nltk,
    "heads": collins.wsj,
    "suite": suite.suite,
}
HEADINGS = ("what", "own", "peer", "its", "ratio", "target", "verdict", "command")


def figure(number: float | None, unit: str = "") -> str:
    if number is None:
        return ""
    short = f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"
    return f"{short} {unit}".rstrip()


def cells(name: str, row: Row) -> list[str]:
    """One row of the table as texts."""
    target = ""
    if row.target is not None:
        unit = "" if row.peers is not None else row.unit
        target = f"at most {figure(row.target, unit)}"
    what = f"{row.what} ({row.note})" if row.note else row.what
    own, peers = figure(row.own, row.unit), figure(row.peers, row.unit)
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}" if row.ratio >= 0.1 else f"{row.ratio:.2g}"
    return [what, own, row.peer, peers, ratio, target, row.verdict, f"`python -m benchmarks {name}`"]


def machine() -> str:
    """The processor, the number of cores, the system and the Python."""
    family = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        family = f"{names[0]} ({family})" if names else family
    return f"{family}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def markdown(table: list[list[str]]) -> str:
    """The table in Markdown, with padded columns so that it reads well as text."""
    lines = [list(HEADINGS), [""] * len(HEADINGS), *table]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEADINGS))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    padded[1] = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(line) + " |" for line in padded)


def main(names: list[str]) -> int:
    unknown = [n for n in names if n not in BENCHMARKS]
    if unknown:
        print(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    table = []
    for name in names or BENCHMARKS:
        print(f"running {name}", file=sys.stderr)
        try:
            rows = BENCHMARKS[name]()
        except Skip as reason:
            rows = [Row(name, note=str(reason))]
        table += [cells(name, row) for row in rows]
    print(markdown(table))
    if not names:
        text = (
            "# Benchmarks\n\n"
            "Made by `make bench`. Own run and peer take turns on the same machine, and each figure is the least of\n"
            "several, for `scalars`, `arrays`, `taylor`, `nested`, `compiled`, `kernels` and `dvl` their median;\n"
            "`log`, `real`, `rules` and the iterations in `cycles` take long and are run once. A loading time is\n"
            "binding and a first run, less a later run. The baseline's log p of all sentences is in\n"
            "`benchmarks/build`.\n\n"
            f"The machine: {machine()}.\n\n"
        )
        (HERE / "RESULTS.md").write_text(text + markdown(table) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
