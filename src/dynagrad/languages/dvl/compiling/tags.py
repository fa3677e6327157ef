"""Tags that a program makes itself, as it is specialised: known where they are made once, and else tags of the graph.

A tag that is made again in each round of a loop or call of a recursion is another one each time, so the graph makes it
(`compiler/evaluate/heap/tags.py`); a number on the heap can have no others.
"""

from __future__ import annotations

from ....compiler.evaluate.heap import tags
from ....compiler.evaluate.heap.unions import Row, keys
from ....compiler.evaluate.specialiser import Specialiser
from ....compiler.evaluate.values import Union
from ....eager.kinds import fresh as fresh_serial
from ....errors import Error
from ....ir.ops.cells import BUNDLE, TAG
from ..data import Gensym, QuotedSymbol, chain

Tag = Gensym | Union
"""A tag that is known, or one of the graph."""


class Tagged(Exception):
    """The result of a function holds a tag that the program made, and is to be computed by its parts."""

    def __init__(self, tag: Gensym) -> None:
        super().__init__()
        self.tag = tag


def gensym(s: Specialiser) -> Tag:
    """A new tag of the program. It is known where no tag of the graph can have been made before it."""
    if s.tags or keys().own_tags:
        _own_tags()
        return tags.fresh_tag()
    return fresh_tag(s)


def fresh_tag(s: Specialiser, graph: bool = False) -> Tag:
    """A new tag; of the graph where tags are of the graph anyway."""
    if graph or s.tags:
        return tags.fresh_tag()
    made = Gensym(fresh_serial())
    if s.level:
        keys().tags_wanted += 1
    else:
        keys().made_once.add(made.serial)
    return made


def of_graph(tag: Tag) -> Union:
    """A tag as one of the graph."""
    if isinstance(tag, Union):
        return tag
    if tag.serial not in keys().made_once:
        raise _made_again()
    _own_tags()
    return tags.known_tag(tag.serial)


def checked(tag: Tag) -> None:
    """Raises where the tag of a known bundle is one of several, which those of a loop are."""
    if isinstance(tag, Union):
        raise _made_again()


def _made_again() -> Error:
    keys().tags_wanted += 1
    return Error(
        "a tag that is made again in each round of a loop, or call of a recursion, is on a value of which the run "
        "decides what it is, and that is not compiled here"
    )


def _own_tags() -> None:
    """From here on, numbers on the heap may have tags of the program, which are printed with numbers of their own."""
    if not keys().own_tags:
        keys().own_tags = True
        first = fresh_serial()
        keys().rows[TAG] = Row(None, 1, lambda parts: Gensym(parts[0] + (tags.KNOWN if parts[0] < 0 else first)))
        keys().rows[BUNDLE] = Row(None, 3, lambda parts: chain([QuotedSymbol("bundle"), *parts]))
