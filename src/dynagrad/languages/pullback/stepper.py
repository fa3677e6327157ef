"""A reduction as text and as HTML: each step with its rule, its redex and what that becomes, premises below it.

Text is made a line at a time, so a long reduction shows its first steps at once. The HTML is one file that needs no
network: premises fold, and links go to the forward phase, the reverse phase and the result.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape

from .reduction.steps import Reduction, Step
from .show import BEGIN, END, show
from .terms import PullbackTerm
from .trampoline import Call, run

WIDTH = 100
"""How much of a term a line of text shows."""
_MOST_OF_A_TERM = 600
"""How much of it a page shows."""
_AROUND = 160
"""How much a page shows of what stands before a redex, and of what stands after it."""
_WRITTEN_AS_A_WHOLE = 1_000_000
"""How many characters of whole terms are written for a page: as long as they last, each redex is shown in its place."""
MOST_IN_HTML = 5000
"""How many steps a page shows, unless it is told otherwise."""


def lines(reduction: Reduction, *, width: int | None = WIDTH, unicode: bool = True) -> Iterator[str]:
    """The reduction in text, a line at a time.

    >>> from .reduction.reduce import reduce
    >>> print("\\n".join(lines(reduce("((Ω λx. x * x) . (λ_. 1^)) 3"))))
    ((Ω λx. x * x) . (λ_. 1^)) 3 : R^
         A    administrative reduction
              x * x
              → let t = <x, x> in let t₁ = mult(t) in t₁
    ...
    = 6^
    """

    def cut(of: PullbackTerm) -> str:
        return show(of, unicode=unicode, limit=width)

    arrow = "→" if unicode else "->"
    yield f"{cut(reduction.term)} : {reduction.type}"
    phase = ""
    begun: list[str] = []  # the rules of the steps that are open
    for step, depth, opens in walk(reduction):
        indent = "  " * depth
        if opens:
            if depth == 0 and step.phase != phase and step.phase:
                yield f"-- {step.phase} phase"
            if depth == 0:
                phase = step.phase
            yield f"{indent}{step.rule:>6}    {step.name}"
            yield f"{indent}          {cut(step.read_redex(width))}"
            begun.append(step.rule)
        else:
            if begun.pop() != step.rule:  # the premise of 19b has shown that it is 19c
                yield f"{indent}{step.rule:>6}    {step.name}"
            yield f"{indent}          {arrow} {cut(step.read_contractum(width))}"
    yield f"= {cut(reduction.result)}"


def walk(reduction: Reduction) -> Iterator[tuple[Step, int, bool]]:
    """Each step with its depth, when it starts and when it ends; its premises are between."""
    stack: list[tuple[Iterator[Step], Step | None]] = [(iter(reduction), None)]
    while stack:
        steps, owner = stack[-1]
        step = next(steps, None)
        if step is not None:
            yield step, len(stack) - 1, True
            stack.append((iter(step.premises), step))
        else:
            stack.pop()
            if owner is not None:
                yield owner, len(stack) - 1, False


# -- HTML --------------------------------------------------------------------------------------------------------------

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#f3f4f6;--line:#d5d9df;--old:#fde8e4;--new:#e2f3e6}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--paper:#14171b;--soft:#1f242b;--line:#363d47;
--old:#4a2620;--new:#1e3d28}}
body{margin:0 auto;max-width:72rem;padding:1.5rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);
background:var(--paper)}
code{font:14px/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
h1{font-size:1.3rem}
nav{position:sticky;top:0;background:var(--paper);padding:.5rem 0;border-bottom:1px solid var(--line)}
nav a{margin-right:1rem;color:inherit}
.step{border-left:3px solid var(--line);margin:.6rem 0;padding:.2rem 0 .2rem .8rem}
.rule{font-weight:600}.number{display:inline-block;min-width:2.6rem;color:inherit;opacity:.7}
.old{background:var(--old);border-radius:3px;padding:0 .2rem}
.new{background:var(--new);border-radius:3px;padding:0 .2rem}
.whole{display:block;margin:.15rem 0}details{margin:.3rem 0}summary{cursor:pointer;opacity:.8}
.phase,.result{scroll-margin-top:3.5rem}
.phase{margin:1.4rem 0 .4rem;font-size:1.05rem}.result{background:var(--soft);padding:.7rem 1rem;border-radius:6px}
""".strip()


def html(reduction: Reduction, *, max_steps: int = MOST_IN_HTML, title: str = "Reduction") -> str:
    """The reduction as a page."""
    phases: list[str] = []
    body: list[str] = []
    room = _Room(max_steps, _WRITTEN_AS_A_WHOLE)
    whole = True
    phase = ""
    for step in reduction:
        if room.steps <= 0:
            whole = False
            break
        if step.phase != phase and step.phase and step.phase not in phases:
            phases.append(step.phase)
            body.append(f'<h2 class="phase" id="{step.phase}">{step.phase.capitalize()} phase</h2>')
        phase = step.phase
        body.append(run(_step_html(step, room)))
    links = "".join(f'<a href="#{name}">{name} phase</a>' for name in phases)
    if whole:
        result = f'<p class="result" id="result">Result <code>{_code(reduction.result)}</code></p>'
    else:
        result = f'<p class="result" id="result">The first {max_steps} steps are shown.</p>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p><code>{_code(reduction.term)} : {escape(str(reduction.type))}</code></p>"
        f'<nav>{links}<a href="#result">result</a></nav>{"".join(body)}{result}</body></html>'
    )


def _code(of: PullbackTerm) -> str:
    return escape(show(of, limit=_MOST_OF_A_TERM))


@dataclass
class _Room:
    """How many steps a page has room for, and how many characters of whole terms may be written."""

    steps: int
    characters: int


def _marked(step: Step, read: Callable[[int | None], PullbackTerm], kind: str, room: _Room) -> str:
    """A redex, or what it becomes: in the whole term, or by itself where there is no room."""
    before, inside, after = "", show(read(_MOST_OF_A_TERM), limit=_MOST_OF_A_TERM), ""
    if room.characters > 0 and len(inside) < _MOST_OF_A_TERM:
        part = copy.copy(read(None))  # an object that stands nowhere else
        whole = show(step.whole(part), marked=part, limit=room.characters)
        room.characters -= len(whole)
        first, _, rest = whole.partition(BEGIN)
        second, ended, third = rest.partition(END)
        if ended:
            before, inside, after = first, second, third
    if len(before) > _AROUND:
        before = "… " + before[-_AROUND:]
    if len(after) > _AROUND:
        after = after[:_AROUND] + " …"
    return f'{escape(before)}<span class="{kind}">{escape(inside)}</span>{escape(after)}'


def _step_html(step: Step, room: _Room) -> Call[str]:
    room.steps -= 1
    redex = _marked(step, step.read_redex, "old", room)
    premises: list[str] = []
    for premise in step.premises:
        if room.steps <= 0:
            break
        premises.append((yield _step_html(premise, room)))
    folded = ""
    if premises:
        word = "premise" if len(premises) == 1 else "premises"
        folded = f"<details><summary>{len(premises)} {word}</summary>{''.join(premises)}</details>"
    contractum = _marked(step, step.read_contractum, "new", room)
    return (
        f'<div class="step"><span class="rule"><span class="number">{step.rule}</span> {escape(step.name)}</span>'
        f'<code class="whole">{redex}</code>{folded}<code class="whole">→ {contractum}</code></div>'
    )


class StepView:
    """A reduction in a notebook, which shows it as HTML; as text elsewhere."""

    def __init__(self, make: Callable[[], Reduction], max_steps: int = 200) -> None:
        self._make, self._max_steps = make, max_steps

    def _repr_html_(self) -> str:
        page = html(self._make(), max_steps=self._max_steps)
        return f'<iframe srcdoc="{escape(page, quote=True)}" style="width:100%;height:30rem;border:0"></iframe>'

    def __repr__(self) -> str:
        return "\n".join(_first(lines(self._make()), 3 * self._max_steps))


def _first(of: Iterable[str], count: int) -> Iterator[str]:
    for index, line in enumerate(of):
        if index == count:
            yield "..."
            return
        yield line
