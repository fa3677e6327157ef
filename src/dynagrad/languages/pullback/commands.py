"""What `dynagrad pullback` prints, a line at a time."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import Error
from .compile import compile
from .infer import infer
from .parse import parse
from .reduction.reduce import reduce
from .show import show
from .stepper import html as page
from .stepper import lines


def show_pullback(text: str, filename: str, *, steps: bool, html: bool, native: bool, max_steps: int) -> Iterator[str]:
    """The lines for a term."""
    if native and (steps or html):
        raise Error("--compile shows no steps; leave --steps and --html out")
    if native:
        infer(parse(text, filename), text, filename)  # so that errors name the file
        yield repr(compile(text)())
        return
    reduction = reduce(text, filename=filename, max_steps=max_steps)
    if html:
        yield page(reduction, title=filename)
    elif steps:
        yield from lines(reduction)
    else:
        yield f"{show(reduction.term)} : {reduction.type}"
        yield f"= {show(reduction.result)}"
