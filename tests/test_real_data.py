"""Real grammars and sentences, which the project may not ship: kept beside the checkout, and skipped where absent.

`DYNAGRAD_DATA` names their folder; the default is `shared/data` beside the checkout.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dynagrad as dg

OPTIMISED = True  # compiled as users have it

SHARED = Path(__file__).resolve().parents[2] / "shared"
DATA = Path(os.environ.get("DYNAGRAD_DATA") or SHARED / "data")
BASELINE = DATA.parent / "baselines" / "inside_outside.cpp"

ATIS = """
:- semiring count.
% part(X,Rest,I,K): an X that has been found from I to K, but for Rest
part(X,Rest,I,K) += rewrite(X,[W|Rest]) * word(W,I,K).
part(X,Rest,I,K) += rewrite(X,[n(Y)|Rest]) * part(Y,[],I,K).
part(X,Rest,I,K) += part(X,[W|Rest],I,J) * word(W,J,K).
part(X,Rest,I,K) += part(X,[n(Y)|Rest],I,J) * part(Y,[],J,K).
goal += part('SIGMA',[],0,N) * end(N).
"""
CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit('TOP',0,N) * end(N).
"""


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line]


def sentence_facts(words: list[str]) -> dict[str, Any]:
    return {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]}


# -- ATIS: how many parses ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(not (DATA / "atis").is_dir(), reason=f"no ATIS grammar in {DATA}")
@pytest.mark.filterwarnings(
    "ignore::dynagrad.errors.ProgramWarning"
)  # unary rules: a sum over cycles, if there were any
def test_every_sentence_has_the_published_number_of_parses() -> None:
    grammar = []
    for parent, right in rows(DATA / "atis" / "productions.tsv"):
        symbols = [s.strip('"') if s.startswith('"') else dg.Term("n", s) for s in right.split(" ")]
        grammar.append((parent, symbols))
    bound = dg.Program(ATIS).bind({"rewrite/2": grammar})
    sentences = rows(DATA / "atis" / "sentences.tsv")
    assert len(sentences) == 98
    found = [bound.run(sentence_facts(sentence.split()))["goal"] for _, sentence in sentences]
    assert found == [int(number) for number, _ in sentences]


# -- WSJ: log probabilities, against a program written by hand ---------------------------------------------------------

needs_wsj = pytest.mark.skipif(not (DATA / "wsj-sample").is_dir(), reason=f"no WSJ sample in {DATA}")


def all_sentences() -> list[list[str]]:
    """The shortest first."""
    lines = (DATA / "wsj-sample" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    return sorted((line.split() for line in lines), key=len)


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    """200 sentences of all lengths up to 81 words; a few are longer, and take as long as all of these."""
    every = [words for words in all_sentences() if len(words) <= 81]
    return [every[n * (len(every) - 1) // 199] for n in range(200)]


def by_hand(sentences: list[list[str]], folder: Path) -> subprocess.Popen[str]:
    """The program written by hand, at work on the sentences; skips the test where it cannot be built."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None or not BASELINE.is_file():
        pytest.skip("no C++ compiler with a standard library, or no baseline to compile")
    program = folder / "inside_outside"
    built = [compiler, "-O2", "-std=c++20", str(BASELINE), "-o", str(program)]
    if subprocess.run(built, capture_output=True, timeout=120).returncode:
        pytest.skip(f"{compiler} cannot compile the baseline")
    for name in ("binary.tsv", "lexical.tsv"):
        (folder / name).symlink_to(DATA / "wsj-sample" / name)
    (folder / "sentences.txt").write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    return subprocess.Popen([program, folder, "1", "1000", "1000", "each"], stdout=subprocess.PIPE, text=True)


def wsj_grammar() -> dict[str, list[tuple[Any, ...]]]:
    folder = DATA / "wsj-sample"
    return {
        "rewrite/3": [(x, y, z, float(p)) for x, y, z, p in rows(folder / "binary.tsv")],
        "rewrite/2": [(x, w, float(p)) for x, w, p in rows(folder / "lexical.tsv")],
    }


@pytest.fixture(scope="module")
def log_probability() -> Callable[[list[str]], float]:
    bound = dg.Program(CKY, semiring="log").bind(wsj_grammar(), values="probabilities")
    return lambda words: float(bound.run(sentence_facts(words))["goal"])


@needs_wsj
def test_log_probabilities_agree_with_a_program_written_by_hand(
    sentences: list[list[str]], log_probability: Callable[[list[str]], float], tmp_path: Path
) -> None:
    some = sentences[::2]
    with by_hand(some, tmp_path) as process:  # both work at once
        mine = list(map(log_probability, some))
        printed = process.communicate(timeout=120)[0].splitlines()
    assert len(printed) == len(mine) == 100
    for words, line, value in zip(some, printed, mine, strict=True):
        length, theirs = line.split()
        assert int(length) == len(words)
        assert value == pytest.approx(float(theirs), rel=1e-9), " ".join(words)


@needs_wsj
def test_real_agrees_with_log_until_it_underflows_and_then_it_warns(
    sentences: list[list[str]], log_probability: Callable[[list[str]], float]
) -> None:
    bound = dg.Program(CKY, semiring="real").bind(wsj_grammar())
    for words in sentences[5:190:10]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value = bound.run(sentence_facts(words))["goal"]
        assert math.log(value) == pytest.approx(log_probability(words), rel=1e-9)
    longest = next(words for words in all_sentences() if len(words) == 114)  # 1e-300, and some constituents less
    with pytest.warns(dg.ProgramWarning, match="underflow"):
        chart = bound.run(sentence_facts(longest))
    assert chart.converged and math.log(chart["goal"]) == pytest.approx(log_probability(longest), rel=1e-9)
