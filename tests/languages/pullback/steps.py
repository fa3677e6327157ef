"""What has to hold of each step of a reduction: its redex, the next step, the type and the meaning. Each says what is
wrong, or nothing. Terms that are too long to be looked at are left out."""

from __future__ import annotations

import itertools

from dynagrad.errors import Error
from dynagrad.languages.pullback import covector, infer, reduce, show
from dynagrad.languages.pullback.terms import FormPullback, PullbackTerm, TermSum, Zero
from languages.pullback.agreement import BASIS, near
from languages.pullback.oracle import meaning
from languages.pullback.redexes import is_part, redexes, whole

LONGEST = 2500
"""Characters of a term that is looked at."""


def is_long(of: PullbackTerm, most: int = LONGEST) -> bool:
    return len(show(of, limit=most)) > most


def without_its_redex(program: PullbackTerm) -> str:
    """The first step whose redex is not the one that the grammar of contexts gives."""
    reduction = reduce(program)
    taken: set[PullbackTerm] = set()
    for step in reduction:
        before, redex = step.before, step.redex
        if not is_long(before):
            found = redexes(
                before,
                taken - {whole(redex)} if step.rule in ("7", "8") else taken,
                not (step.rule == "5" and is_part(redex)),
            )
            if step.rule == "A" and [each.body for each in found if isinstance(each, FormPullback)] == [redex]:
                continue  # values that stand in the program are named; by the term alone they may have been put in
            if [whole(each) for each in found] != [whole(redex)]:
                return f"{step.rule}: {redex} in {before}, and by the grammar {found}"
        if step.rule in ("7", "8"):
            taken.add(whole(redex))
    left = redexes(reduction.result, taken)
    return f"{reduction.result} has the redexes {left}" if left else ""


def apart_from_the_next(program: PullbackTerm) -> str:
    """The first step that does not end where the next one begins, or where the reduction ends."""
    reduction = reduce(program)
    steps = list(reduction)
    for one, other in itertools.pairwise(steps):
        if not is_long(one.after) and whole(one.after) != whole(other.before):
            return f"{one.rule} ends in {one.after}, and {other.rule} begins with {other.before}"
    if steps and steps[-1].after != reduction.result:
        return f"the last step ends in {steps[-1].after}, and the reduction in {reduction.result}"
    return ""


def changed(program: PullbackTerm, longest: int = 1200) -> str:
    """The first step before which the term has another type or meaning than the program, or after the last."""
    wanted = values(program)
    reduction = reduce(program)
    for of in itertools.chain((step.before for step in reduction), [reduction.result]):
        if is_long(of, longest):  # what it means takes long to find out through nested derivatives
            continue
        try:
            type = str(infer(TermSum(of, covector(1, 1))).type)
        except Error as error:
            if "a function takes it as an argument" not in str(error):
                return str(error)
            type = "(R × R)^"  # nothing in this term says that what is applied is a dual, as the first term did
        found = values(of)
        if type != "(R × R)^" or not all(map(near, found, wanted)):
            return f"{of} has the type {type} and the values {found} in place of {wanted}"
    return ""


def values(of: PullbackTerm) -> list[float]:
    """The coefficients of a dual of R^2, by what it means."""
    dual = None if isinstance(of, Zero) else meaning(of, {})
    return [0.0 if dual is None else dual(u) or 0.0 for u in BASIS]
