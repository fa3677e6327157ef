"""Runs every recipe at real size, for the pages: a picture of each, and a table of its figures and their times.

    python docs/recipes/build.py build/recipes          # or some of them: ... build/recipes cky hmm

A recipe's `main` yields figures one by one: whole numbers are sizes of its data, and any other number took the time
since the one before. Each recipe runs twice, and the second run is measured: the first one compiles. A recipe that
NEEDS a package that is not installed has a table and a picture that say so; its page has the figures of a run.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "build")

Row = tuple[str, float, float]


def measured(recipe: ModuleType) -> Iterator[Row]:
    """Each figure of a recipe at real size, with the seconds that it took."""
    start = time.perf_counter()
    for what, value in recipe.main("real"):
        now = time.perf_counter()
        yield what, value, now - start
        start = time.perf_counter()


def table(rows: Sequence[Row], first: float) -> str:
    """The rows in Markdown; sizes of data have no time."""
    lines = ["| | | seconds |", "| --- | ---: | ---: |"]
    for what, value, seconds in rows:
        size = isinstance(value, int)
        lines.append(
            f"| {what} | {value:,}{' | |' if size else ''}" if size else f"| {what} | {value:,.6g} | {seconds:.2f} |"
        )
    lines += [
        "",
        f"Times are those of a second run, with {os.cpu_count()} processors. The first run compiles: {first:.1f} s.",
    ]
    return "\n".join(lines) + "\n"


def left_out(folder: Path, name: str, package: str) -> None:
    """A table and a picture that say what was not there."""
    text = f"Not measured with this build of the pages, as the package {package} is not installed."
    (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
    picture = f'<text x="12" y="40" fill="#808080" font-family="sans-serif" font-size="14">{text}</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 70">{picture}</svg>\n'
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(f"{name}: {text}", flush=True)


def build(folder: Path, names: Sequence[str]) -> None:
    """Writes `name.svg` and `name.md` for each recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        recipe = importlib.import_module(name)
        needs = getattr(recipe, "NEEDS", None)
        if needs is not None and importlib.util.find_spec(needs) is None:
            left_out(folder, name, needs)
            continue
        start = time.perf_counter()
        for _ in recipe.main("real"):
            pass
        first = time.perf_counter() - start
        rows = list(measured(recipe))
        (folder / f"{name}.md").write_text(table(rows, first), encoding="utf-8")
        recipe.figure(str(folder / f"{name}.svg"))
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


def main(arguments: Sequence[str]) -> None:
    import matplotlib

    matplotlib.use("svg")  # no window is opened, whatever the machine has
    if not arguments:
        raise SystemExit("usage: build.py FOLDER [RECIPE ...]")
    folder, *names = arguments
    if unknown := set(names) - set(NAMES):
        raise SystemExit(f"There is no recipe {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}.")
    build(Path(folder), names or NAMES)


if __name__ == "__main__":
    main(sys.argv[1:])
