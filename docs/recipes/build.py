"""Makes what the pages show of each recipe at real size: a picture, and a table of its figures and their times.

    make recipes                          # those whose source has changed since theirs were made
    make recipes RECIPES="cky hmm"        # these, changed or not

They are kept in `made/`, with a hash of the source of the recipe; `tests/test_recipes.py` says which are stale. A
recipe's `main` yields figures one by one: whole numbers are sizes of its data, and any other number took the time since
the one before. A run on the small data comes first, for which programs are compiled. A recipe that NEEDS a package that
is not installed is left as it is.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
MADE = HERE / "made"
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "build")

Row = tuple[str, float, float]


def source_hash(name: str) -> str:
    """What the source of a recipe is now."""
    text = (HERE / f"{name}.py").read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_stale(name: str, folder: Path = MADE) -> bool:
    """Whether the picture and the table of a recipe are missing, or were made by another source."""
    table, picture = folder / f"{name}.md", folder / f"{name}.svg"
    if not table.exists() or not picture.exists():
        return True
    return table.read_text(encoding="utf-8").partition("\n")[0] != made_from(name)


def made_from(name: str) -> str:
    """The first line of a table, a comment in Markdown."""
    return f"% made by {name}.py, {source_hash(name)}"


def spent() -> float:
    """Seconds of all processors until now, those of compilers too: they do not depend on what else a machine does."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def measured(recipe: ModuleType) -> Iterator[Row]:
    """Each figure of a recipe at real size, with the seconds that it took."""
    start = spent()
    for what, value in recipe.main("real"):
        now = spent()
        yield what, value, now - start
        start = spent()


def table(rows: Sequence[Row], first: float) -> str:
    """The rows in Markdown; sizes of data have no time."""
    lines = ["| | | seconds |", "| --- | ---: | ---: |"]
    for what, value, seconds in rows:
        size = isinstance(value, int)
        lines.append(f"| {what} | {value:,} | |" if size else f"| {what} | {value:,.6g} | {seconds:.2f} |")
    lines += [
        "",
        f"Seconds are those of all processors together. A first run, on the small data, compiles: {first:.1f} s.",
    ]
    return "\n".join(lines) + "\n"


def small(svg: str) -> str:
    """A picture without what nobody sees: who made it and when, and digits beyond a hundredth of a point.

    >>> small('<svg><metadata>\\n <a/>\\n</metadata><path d="M 1.23456 -0.001  L 7 8.5"/>\\n\\n</svg>')
    '<svg><path d="M 1.23 0 L 7 8.5"/>\\n</svg>'
    """
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"-?\d+\.\d{3,}(?![\d)e])", lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), svg)
    svg = re.sub(r"(?<![\d.])-0(?![\d.])", "0", svg)
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[ \t]+", " ", svg))


def build(names: Sequence[str], folder: Path = MADE) -> None:
    """Writes `name.svg` and `name.md` for each recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        recipe = importlib.import_module(name)
        needs = getattr(recipe, "NEEDS", None)
        if needs is not None and importlib.util.find_spec(needs) is None:
            print(f"{name}: left as it is, as the package {needs} is not installed", flush=True)
            continue
        start = spent()
        for _ in recipe.main("small"):
            pass
        first = spent() - start
        rows = list(measured(recipe))
        picture = folder / f"{name}.svg"
        recipe.figure(str(picture))
        picture.write_text(small(picture.read_text(encoding="utf-8")), encoding="utf-8")
        # Last, so that what was interrupted is stale.
        (folder / f"{name}.md").write_text(f"{made_from(name)}\n\n{table(rows, first)}", encoding="utf-8")
        print(f"{name}: {spent() - start:.1f} s", flush=True)


def main(names: Sequence[str]) -> None:
    if unknown := set(names) - set(NAMES):
        raise SystemExit(f"There is no recipe {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}.")
    import matplotlib

    matplotlib.use("svg")  # no window is opened, whatever the machine has
    os.environ.pop("DYNAGRAD_DATA", None)  # what is shown is of data that is generated, or that everybody has
    with tempfile.TemporaryDirectory() as cache:  # the first run compiles
        os.environ["DYNAGRAD_CACHE"] = cache
        build(names or [name for name in NAMES if is_stale(name)])


if __name__ == "__main__":
    main(sys.argv[1:])
