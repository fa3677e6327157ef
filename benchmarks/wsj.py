"""Parsing the WSJ sample, beside a hand-written inside algorithm: time, memory, agreement."""

from __future__ import annotations

import hashlib
import math
import re
import subprocess
import time
import warnings
from typing import Any

import dynagrad as dg

from .common import BUILD, Row, alternate, baseline, data

PROGRAM = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit('TOP',0,N) * end(N).
"""
SYMBOLS = 756


def rows(name: str) -> list[tuple[Any, ...]]:
    """A table of the grammar."""
    lines = (line.split("\t") for line in data("wsj-sample", name).read_text().splitlines())
    return [(*arguments, float(value)) for *arguments, value in lines]


def grammar(semiring: str | None = None) -> dg.Bound:
    """The program with the grammar bound."""
    facts = {"rewrite/3": rows("binary.tsv"), "rewrite/2": rows("lexical.tsv")}
    return dg.Program(PROGRAM, semiring).bind(facts, values="probabilities")


def sentences() -> list[list[str]]:
    return [line.split() for line in data("wsj-sample", "sentences.txt").read_text().splitlines()]


def facts(sentence: list[str]) -> dict[str, Any]:
    return {"word/3": [(w, i, i + 1) for i, w in enumerate(sentence)], "end/1": [(len(sentence),)]}


def inside() -> list[Row]:
    """50 sentences of 25 to 40 words in `real`, against the baseline."""
    program = baseline("inside_outside")
    given = [facts(s) for s in sentences() if 25 <= len(s) <= 40][:50]
    longest = max(f["end/1"][0][0] for f in given)
    bound = grammar()
    bound.run(given[0])  # compiles
    native: list[float] = []
    peak = 0

    def own() -> float:
        nonlocal peak
        start, seconds = time.perf_counter(), 0.0
        for one in given:
            stats = bound.run(one).stats
            seconds, peak = seconds + stats.seconds, max(peak, stats.bytes)
        native.append(seconds)
        return time.perf_counter() - start

    def peer() -> float:
        command = [str(program), str(data("wsj-sample")), "25", "40", "50"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return float(re.findall(r"inside ([\d.]+) s", said)[0])

    wall, by_hand = alternate(own, peer, repeats=10)
    arrays = (longest + 1) ** 2 * SYMBOLS * 8 / 1e6
    what = "WSJ inside, 50 sentences of 25 to 40 words, "
    return [
        Row(what + "native time", min(native), "s", "hand-written C++", by_hand, 1.5),
        Row(what + "with Python", wall, "s", "hand-written C++", by_hand, 1.5),
        Row(f"memory of the chart, {longest} words", peak / 1e6, "MB", "arrays of the hand-written C++", arrays, 2.0),
    ]


def reference() -> list[float]:
    """log p of each sentence by the baseline, kept between runs: in long double it takes minutes."""
    program, folder = baseline("inside_outside"), data("wsj-sample")
    digest = hashlib.sha256(program.read_bytes())
    for name in ("binary.tsv", "lexical.tsv", "sentences.txt"):
        digest.update((folder / name).read_bytes())
    kept = BUILD / f"each-{digest.hexdigest()[:16]}.txt"
    if not kept.exists():
        command = [str(program), str(folder), "1", "300", "4000", "each"]
        kept.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [float(line.split()[1]) for line in kept.read_text().splitlines()]


def difference(own: float, peer: float) -> float:
    """How far two logs of probabilities are apart, relative to the larger of 1 and the peer's."""
    return 0.0 if own == peer else abs(own - peer) / max(1.0, abs(peer)) if math.isfinite(peer) else math.inf


def log() -> list[Row]:
    """log p of all sentences in `log`, against the baseline in long double."""
    expected, bound = reference(), grammar("log")
    all_facts = [facts(s) for s in sentences()]
    bound.run(all_facts[0])
    start, native, worst = time.perf_counter(), 0.0, 0.0
    for one, log_p in zip(all_facts, expected, strict=True):
        chart = bound.run(one)
        native += chart.stats.seconds
        worst = max(worst, difference(chart["goal"], log_p))
    wall = time.perf_counter() - start
    count = f"{len(expected):,} sentences"
    impossible = f"{sum(not math.isfinite(p) for p in expected)} of them have no parse"
    return [
        Row(f"WSJ in log, {count}: worst relative difference of log p", worst, "", target=1e-9, note=impossible),
        Row(f"WSJ in log, {count}: native time", native),
        Row(f"WSJ in log, {count}: with Python", wall),
    ]


def real() -> list[Row]:
    """The same in `real`: what does not underflow agrees, and what does comes with a warning."""
    expected, bound = reference(), grammar()
    worst, warned, silent = 0.0, 0, 0
    for sentence, log_p in zip(sentences(), expected, strict=True):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            value = bound.run(facts(sentence))["goal"]
        if any(issubclass(w.category, dg.ProgramWarning) for w in said):
            warned += 1
        elif value == 0 and math.isfinite(log_p):
            silent += 1
        else:
            worst = max(worst, difference(math.log(value) if value else -math.inf, log_p))
    what = f"WSJ in real, {len(expected):,} sentences: "
    rest = f"{len(expected) - warned:,} sentences"
    return [
        Row(what + "worst relative difference of log p without a warning", worst, "", target=1e-9, note=rest),
        Row(what + "underflows without a warning", silent, "", target=0, note=f"{warned} sentences with a warning"),
    ]
