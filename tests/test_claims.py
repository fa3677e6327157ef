"""What the documents claim beyond what their blocks print: ratios, which name their row of benchmarks/RESULTS.md, and
what is missing, which has a program beside it.

A comment below a ratio names its row, and the peer where the row has several, as in
`<!-- ratio "twice as long": ROW | PEER -->`. Two rows with a ÷ between them are compared by what is measured of us. A
range, such as `two to three times as long`, may have several comments. The two agree within a seventh.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from test_documents import PAGES, ROOT

NUMBERS = ["a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
MORE = {"twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100, "thousand": 1000}
VALUES = {"half": 0.5, "twice": 2.0, **{name: max(n, 1) for n, name in enumerate(NUMBERS)}, **MORE}
PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "tenth": 10}
WORD = rf"(?:{'|'.join([*NUMBERS, *MORE])}|\d+(?:\.\d+)?)"
NUMBER = rf"{WORD}(?: and a half)?"
MEASURES = "the time|of the time|slower|faster|longer|larger|smaller|fewer|less|more"
COMPARED = rf"(?:as (?:long|fast|slow|much|large|many)|{MEASURES})\b"
RATIO = re.compile(
    rf"\b(?:twice|half|{NUMBER}(?: to {NUMBER})? times|(?:{WORD}) (?:{'|'.join(PARTS)})s?) {COMPARED}", re.IGNORECASE
)
COMMENT = re.compile(r'^\s*<!-- ratio "([^"]*)": (.*?)(?: \| (.*?))? -->$', re.MULTILINE)
WITHIN = 1 / 7


def plain(text: str) -> str:
    """A text with its words one blank apart."""
    return " ".join(text.split())


def number(text: str) -> float:
    """A number in words or digits.

    >>> number("two and a half"), number("1.4"), number("thirty")
    (2.5, 1.4, 30.0)
    """
    whole, _, half = text.partition(" and a ")
    return float(VALUES[whole] if whole in VALUES else float(whole)) + (0.5 if half else 0.0)


def bounds(phrase: str) -> tuple[float, float]:
    """What a ratio in words is, from and to.

    >>> bounds("two to three times as long"), bounds("Twice as fast"), bounds("two thirds of the time")
    ((2.0, 3.0), (2.0, 2.0), (0.6666666666666666, 0.6666666666666666))
    """
    phrase = phrase.lower()
    times = re.match(rf"({NUMBER})(?: to ({NUMBER}))? times", phrase)
    part = re.match(rf"({WORD}) ({'|'.join(PARTS)})s?\b", phrase)
    if times:
        low = number(times[1])
        return low, number(times[2]) if times[2] else low
    value = number(part[1]) / PARTS[part[2]] if part else VALUES[phrase.split()[0]]
    return value, value


def rows(text: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Of each row and peer of RESULTS.md what was measured, and the ratio."""
    lines = (line for line in text.splitlines() if line.startswith("| "))
    cells = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in lines)
    return {(row[0], row[2]): (row[1], row[4]) for row in cells if len(row) > 4}


RESULTS = rows((ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8"))


def own(name: str) -> float:
    """What was measured of us, in the first row of this name."""
    measured = next(measured for (row, _), (measured, _) in RESULTS.items() if row == name)
    return float(measured.split()[0].replace(",", ""))


def measured(row: str, peer: str) -> float:
    """The ratio that a comment names."""
    if " ÷ " in row:
        ours, other = row.split(" ÷ ")
        return own(ours) / own(other)
    found = [ratio for (name, other), (_, ratio) in RESULTS.items() if name == row and peer in ("", other)]
    assert len(found) == 1, f"RESULTS.md has {len(found)} rows called {row!r}; a peer says which: ROW | PEER"
    return float(found[0])


def sections(text: str) -> Iterator[str]:
    """A page in parts, each with its heading."""
    code = re.sub(r"^```.*?^```$", lambda m: m[0].replace("\n#", "\n "), text, flags=re.MULTILINE | re.DOTALL)
    starts = [0, *(m.start() for m in re.finditer(r"^#+ ", code, re.MULTILINE)), len(text)]
    return (text[a:b] for a, b in pairwise(starts) if text[a:b].strip())


def prose(section: str) -> str:
    """The words of a section, without its code and comments."""
    bare = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", "", section, flags=re.MULTILINE | re.DOTALL)
    return plain(re.sub(r"`[^`\n]+`", "`", bare))


TEXTS = {page: text for page, text in PAGES.items() if "/made/" not in page}


@pytest.mark.parametrize("page", TEXTS)
def test_every_ratio_names_its_row(page: str) -> None:
    for section in sections(TEXTS[page]):
        named = [comment[1].lower() for comment in COMMENT.finditer(section)]
        unnamed = [found[0] for found in RATIO.finditer(prose(section)) if found[0].lower() not in named]
        assert not unnamed, f'{page}: say the row of RESULTS.md: <!-- ratio "{unnamed[0]}": ROW | PEER -->'
        for phrase in named:
            assert phrase in prose(section).lower(), f"{page}: there is no {phrase!r} in this section"
            assert RATIO.fullmatch(phrase), phrase


NAMED = [(page, *comment.groups("")) for page, text in TEXTS.items() for comment in COMMENT.finditer(text)]


@pytest.mark.parametrize(("page", "phrase", "row", "peer"), NAMED)
def test_a_ratio_is_that_of_its_row(page: str, phrase: str, row: str, peer: str) -> None:
    low, high = bounds(phrase)
    assert low * (1 - WITHIN) <= measured(row, peer) <= high * (1 + WITHIN)


def test_ratios_are_read() -> None:
    texts = ["takes two to three times as long", "is 1.4 times faster", "in a seventh of the time", "twice as fast"]
    assert all(RATIO.search(text) for text in texts)
    assert not RATIO.search("uses `np -> fish` twice on average, n times, a half of them")
    assert bounds("one and a half to three times as long") == (1.5, 3.0)
    assert bounds("a seventh of the time") == (1 / 7, 1 / 7)
    assert rows("| a | 1 s | b | 2 s | 0.5 | at most 1 |") == {("a", "b"): ("1 s", "0.5")}
    assert len(RESULTS) > 200


# -- what is missing ---------------------------------------------------------------------------------------------------


GAP = re.compile(
    r"\bnot yet\b|\bno effect\b|\b(?:is|are) not (?:supported|implemented|possible)\b|\bunsupported\b|\bfor now\b"
    r"|\b(?:is|are) ignored\b|\b(?:has|have) no (?:meaning|derivatives?)\b"
    r"|\bcannot be (?:compiled|differentiated|called)\b"
    r"|^#+ (?:What is missing here|Known limits)",
    re.IGNORECASE | re.MULTILINE,
)


def claims(page: str) -> list[str]:
    """The sections that say that something is not there. Each of those of limits.md does."""
    found = [part for part in sections(TEXTS[page]) if GAP.search(prose(part)) or GAP.match(part.strip())]
    if page == "docs/limits.md":
        found = [part for part in sections(TEXTS[page]) if re.search(r"^- ", part, re.MULTILINE)]
    return found


@pytest.mark.parametrize("page", [page for page in TEXTS if page.startswith(("README", "docs/")) and claims(page)])
def test_what_is_missing_is_shown_by_a_program(page: str) -> None:
    """`test_documents.py` runs it."""
    for section in claims(page):
        head = section.strip().splitlines()[0]
        assert re.search(r"^```(python|console|dyna|dvl)$", section, re.MULTILINE), f"{page}, {head!r}: no program"


def test_gaps_are_found() -> None:
    assert {"docs/limits.md", *(f"docs/coming-from/{p}.md" for p in ("dyna", "jax", "problog", "souffle"))} <= {
        page for page in TEXTS if claims(page)
    }
    assert GAP.search("it is read, and has no effect yet") and GAP.search(prose("that is not\nsupported"))
