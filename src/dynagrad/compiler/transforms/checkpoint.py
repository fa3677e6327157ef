"""`dg.checkpoint` inside compiled functions: a loop whose rounds are rematerialised in the backward pass.

The transformation itself is in `autodiff/rematerialisation.py`. Without a number of steps the loop ends where its step
returns None. That is mostly dynamic, so here, and only here, None and a value may be joined (`Optional`).
"""

from __future__ import annotations

from typing import Any

from ...autodiff.rematerialisation import checkpointed
from ...eager.verbs.checkpoint import checkpoint
from ...errors import Error
from ...ir import Node, builders, control
from ..evaluate.joins import Mismatch, allow_optional, map_numbers
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import HostFunction, Iteration, Optional, describe, function_like, type_of
from ..frontend.core import Apply, Constant, For, Let, Name, Project, While
from ..frontend.core import Tuple as CoreTuple
from .primal_trace import functions_in

_NAMES = ("step", "state", "n")


@calls(checkpoint, knows=None)
def _checkpoint(s: Specialiser, args: Args, named: Named) -> Any:
    options = {"n": None} | dict(zip(_NAMES, args, strict=False)) | dict(named)
    most = options.pop(
        "snapshots", None
    )  # checked, but the number of states that are kept is chosen by autodiff/rematerialisation.py
    if len(args) > len(_NAMES) or options.keys() != set(_NAMES):
        raise Error("checkpoint takes step, state, n and snapshots")
    step, state, n = (options[name] for name in _NAMES)
    if not function_like(step):
        raise Error(f"checkpoint: step must be a function, not {describe(step)}")
    if most is not None and (type(most) is not int or most < 1):
        raise Error(f"checkpoint: snapshots must be a whole number from 1, not {describe(most)}")
    _checked_state(state)
    since = builders.now()
    found = _until_none(s, step, state) if n is None else _fixed_steps(s, step, state, n)
    return _rematerialised(found, since)


def _fixed_steps(s: Specialiser, step: Any, state: Any, n: Any) -> Any:
    t = type_of(n)
    if t is None or t.shape or t.kind != "integer" or (not isinstance(n, Node) and n < 0):
        raise Error(f"checkpoint: n must be a whole number from 0, or None, not {describe(n)}")

    def one(s: Specialiser, captured: tuple[Any, ...], xs: Args, _: Named) -> Any:
        return _checked_state(s.call(captured[0], list(xs)))

    env = {
        "step": HostFunction(("step", "a step"), one, (step,)),
        "state": state,
        "rounds": Iteration("range", (0, n, 1)),
    }
    body = Let("next", Apply(Name("step"), (Name("state"),), (), s.at), CoreTuple((Name("next"),)))
    return s.evaluate(For("round", Name("rounds"), ("state",), (Name("state"),), None, body, s.at), env)[0]


def _until_none(s: Specialiser, step: Any, state: Any) -> Any:
    """The last state. The state of the loop has as its first component whether it goes on."""
    env = {"step": HostFunction(("step", "a step"), _step, (step,)), "state": state}
    call = Apply(Name("step"), (Name("state"),), (), s.at)
    after = CoreTuple((Name("going"), Name("last")))
    body = Let("next", call, Let("going", Project(Name("next"), 0), Let("last", Project(Name("next"), 1), after)))
    initial = (Constant(True), Name("state"))
    return s.evaluate(While(("going", "state"), initial, Name("going"), body, s.at), env)[1]


def _step(s: Specialiser, captured: tuple[Any, ...], args: Args, _: Named) -> tuple[Any, Any]:
    """Whether there is a next state, and the state: the next one if there is one, else the old one."""
    [state] = args
    with allow_optional():
        found = s.call(captured[0], [state])
    if found is None:
        return False, state
    if not isinstance(found, Optional):
        return True, _checked_state(found)
    try:
        return found.present, s.cond(found.present, lambda: _checked_state(found.value), lambda: state)
    except Mismatch as problem:
        what = "".join(map(str, ("the state", *problem.path)))
        raise Error(
            f"checkpoint: {what} is {problem.b} before a step and {problem.a} after it; a step must keep its kind, "
            "shape and structure"
        ) from None


def _checked_state(state: Any) -> Any:
    """Checks a state: no None, and no functions in it."""
    if state is None:
        raise Error("checkpoint: the step returned None, which may only end a loop without n; return the next state")
    if next(functions_in(state), None) is not None:
        raise Error("checkpoint: the state has a function in it; let the step capture the function instead")
    return state


def _rematerialised(found: Any, since: int) -> Any:
    """A result in which loops made since a point of time are replaced by ones that save few states."""
    by: dict[Node, Node] = {}

    def change(node: Node) -> Node:
        loop = node.arguments[0] if node.operation is control.PART else node
        if loop.birth > since and loop.operation in (control.WHILE, control.REPEAT) and node not in by:
            by.update(zip(control.parts(loop), checkpointed(loop), strict=True))
        return by.get(node, node)

    return map_numbers(found, change)
