"""The demo of the command line: English sentences parsed by a small grammar that ships with the package.

The program and its data lie in `demo_data`. What is shown here is made with the public API alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..charts.program import Bound, Program
from ..errors import Error
from ..facts.files import read_file

DEMO = Path(__file__).parent / "demo_data"
FAVOURITE = "they saw her duck"
USES = 6  # so many rules are shown with their gradient

Span = tuple[int, int]
Best = dict[Span, dict[str, float]]
Tree = tuple[str, Span]


def demo_sentences() -> list[str]:
    """The sentences that ship."""
    return (DEMO / "sentences.txt").read_text("utf-8").split("\n")[:-1]


def facts_of(sentence: str) -> dict[str, list[tuple[Any, ...]]]:
    """A sentence as facts.

    >>> facts_of("they saw")
    {'word/3': [('they', 0, 1), ('saw', 1, 2)], 'end/1': [(2,)]}
    """
    words = sentence.split()
    return {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]}


def demo_grammar() -> dict[str, list[tuple[Any, ...]]]:
    """The rules and the words of the grammar, with their probabilities."""
    return {key: list(_demo_rows(key)) for key in ("rewrite/2", "rewrite/3")}


def _demo_rows(key: str) -> Iterator[tuple[Any, ...]]:
    relation = read_file(DEMO / f"{key.replace('/', '.')}.tsv", key)
    assert relation.values is not None
    return zip(*(c.to_list() for c in relation.columns), relation.values.tolist(), strict=True)


def demo_parsers() -> dict[str, Bound]:
    """The program with the grammar bound, per semiring."""
    rules = demo_grammar()
    source = DEMO / "parser.dyna"
    plain = {key: [row[:-1] for row in rows] for key, rows in rules.items()}
    return {
        "log": Program(source, "log").bind(rules, values="probabilities"),
        "count": Program(source, "count").bind(plain),
        "viterbi": Program(source, "viterbi").bind(rules, values="probabilities"),
    }


def show_demo(sentence: str | None = None) -> None:
    """Prints the demo; `sentence` is the one to draw the chart of."""
    console = Console(highlight=False)
    known = {row[1] for row in demo_grammar()["rewrite/2"]}
    if sentence is not None:
        sentence = " ".join(sentence.lower().split())
        strange = [w for w in sentence.split() if w not in known]
        if strange or not sentence:
            what = ", ".join(map(repr, strange)) or "an empty sentence"
            raise Error(f"the demo does not know {what}; its words are: {', '.join(sorted(known))}")
    console.print(Text("Three rules are a parser:", style="bold"))
    console.print()
    for line in (DEMO / "parser.dyna").read_text("utf-8").splitlines():
        if line.startswith(("constit", "goal")):
            console.print(Text(f"    {line}", style="cyan"))
    console.print()
    bound = demo_parsers()
    started = time.perf_counter()
    with console.status("compiling the parser for three semirings"):
        for parser in bound.values():
            parser.run(facts_of(FAVOURITE))
        bound["log"].run(facts_of(FAVOURITE)).gradient("goal")
    spent = time.perf_counter() - started
    console.print(f"compiled for three semirings, one with derivatives, or found in the cache, in {spent:.2f} s")
    console.print()
    listed = demo_sentences()
    _sentences(console, bound, listed if sentence is None or sentence in listed else [*listed, sentence])
    _chart(console, bound["viterbi"], sentence or FAVOURITE)
    _uses(console, bound["log"], sentence or FAVOURITE)


def _sentences(console: Console, bound: Mapping[str, Bound], listed: Sequence[str]) -> None:
    """Each sentence with its values in each semiring."""
    table = Table(title="What the same rules say in each semiring", title_justify="left", box=None, pad_edge=False)
    table.add_column("sentence", overflow="fold")
    for name in ("parses\n(count)", "log p\n(log)", "best log p\n(viterbi)", "share of\nthe best", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for sentence in listed:
        facts = facts_of(sentence)
        started = time.perf_counter()
        total, count, best = (bound[name].run(facts)["goal"] for name in ("log", "count", "viterbi"))
        spent = time.perf_counter() - started
        if count:
            values = (f"{count:,}", f"{total:.4f}", f"{best:.4f}", f"{math.exp(best - total):.0%}")
        else:
            values = ("0", "no parse", "", "")
        table.add_row(sentence, *values, f"{1000 * spent:.1f} ms")
    console.print(table)
    console.print()


def _chart(console: Console, parser: Bound, sentence: str) -> None:
    """The triangle of the best constituents, and the best tree."""
    words = sentence.split()
    chart = parser.run(facts_of(sentence))
    best: Best = {}
    for label, i, k, value in chart.query("constit(X,I,K)"):
        best.setdefault((i, k), {})[label] = value
    console.print(Text(f"The chart of: {sentence}", style="bold"))
    console.print("Row I, column K: what may stand between the positions I and K, with the best log p of each.")
    console.print()
    styles = [(3, 2), (2, 1), (2, 0)]  # how many constituents a cell shows, and decimals, until it fits the screen
    for most, decimals in styles if len(words) <= 12 else ():
        triangle = _triangle(words, best, most, decimals)
        if console.measure(triangle, options=console.options.update(max_width=10_000)).maximum <= console.width:
            console.print(triangle)
            console.print()
            break
    goal = chart["goal"]
    if "goal" not in chart:
        console.print("It has no parse.")
        return
    console.print(Text(f"The best parse, log p = {goal:.4f}", style="bold"))
    console.print()
    for line in _draw(_tree(best, words)):
        console.print(Text(f"    {line}"))


def _uses(console: Console, parser: Bound, sentence: str) -> None:
    """How often a parse uses each rule, averaged over all parses: the gradient in `log`."""
    chart = parser.run(facts_of(sentence))
    if "goal" not in chart:
        return
    counts = sorted(chart.gradient("goal")["rewrite/3"], key=lambda row: (-row[-1], row))
    console.print()
    console.print(Text("The gradient of log p: how often its parses use a rule, on average", style="bold"))
    console.print()
    for *rule, count in counts[:USES]:
        if count > 0:
            console.print(Text(f"    {count:.3f}  {rule[0]} -> {' '.join(rule[1:])}"))


def _triangle(words: Sequence[str], best: Best, most: int, decimals: int) -> Table:
    table = Table(show_lines=True)
    table.add_column("", no_wrap=True)
    for k, word in enumerate(words, 1):
        table.add_column(f"{k}\n{word}", no_wrap=True)
    for i in range(len(words)):
        cells = [str(i)]
        for k in range(1, len(words) + 1):
            found = sorted(best.get((i, k), {}).items(), key=lambda pair: (-pair[1], pair[0]))
            more = [f"+{len(found) - most}"] if len(found) > most else []
            cells.append("\n".join([*(f"{label} {value:.{decimals}f}" for label, value in found[:most]), *more]))
        table.add_row(*cells)
    return table


def _tree(best: Best, words: Sequence[str]) -> dict[Tree, list[Tree]]:
    """The children of every node of the best tree: those whose values give the node's own."""
    rules: dict[str, list[tuple[str, str, float]]] = {}
    for x, y, z, p in demo_grammar()["rewrite/3"]:
        rules.setdefault(x, []).append((y, z, math.log(p)))
    children: dict[Tree, list[Tree]] = {}
    stack: list[Tree] = [("s", (0, len(words)))]
    while stack:
        node = stack.pop()
        label, (i, k) = node
        options = [
            (p + best[i, j][y] + best[j, k][z], [(y, (i, j)), (z, (j, k))])
            for y, z, p in rules.get(label, ())
            for j in range(i + 1, k)
            if y in best.get((i, j), {}) and z in best.get((j, k), {})
        ]
        children[node] = max(options, key=lambda option: option[0])[1] if options else [(words[i], (i, i))]
        stack.extend(c for c in children[node] if options)
    return children


def _draw(children: Mapping[Tree, Sequence[Tree]]) -> Iterator[str]:
    """A tree, a node a line; a word stands beside its label."""
    root = next(iter(children))
    stack: list[tuple[Tree, str, str]] = [(root, "", "")]
    while stack:
        node, here, below = stack.pop()
        under = children[node]
        if len(under) == 1:
            yield f"{here}{node[0]}  {under[0][0]}"
            continue
        yield f"{here}{node[0]}"
        last = len(under) - 1
        for n in range(last, -1, -1):
            corner, bar = ("└─ ", "   ") if n == last else ("├─ ", "│  ")
            stack.append((under[n], below + corner, below + bar))
