"""Suggestions for misspelt predicates, in the text of a program, in facts and in queries.

Those for misspelt options are in `calls.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches


def nearest(key: str, known: Iterable[str]) -> str:
    """A hint at the predicate that was probably meant: the same name with another arity, else a similar name.

    >>> nearest("rewrite/4", ["rewrite/2", "rewrite/3", "word/3"])
    ' There are `rewrite/2` and `rewrite/3`: a predicate is told by its name and the number of its arguments.'
    >>> nearest("wrod/3", ["rewrite/2", "word/3"]), nearest("E/2", ["e/2"]), nearest("E/2", ["p/2"])
    (' Did you mean `word/3`?', ' Did you mean `e/2`?', '')
    """
    keys = list(dict.fromkeys(known))
    name = key.rpartition("/")[0] or key
    same = [other for other in keys if other.rpartition("/")[0] == name and other != key]
    if same:
        listed = " and ".join([f"`{other}`" for other in sorted(same)[:4]])
        verb = "are" if len(same) > 1 else "is"
        return f" There {verb} {listed}: a predicate is told by its name and the number of its arguments."
    if len(name) < _SHORT:  # all names of one letter are alike
        close = [other for other in keys if other.lower() == key.lower()]
    else:
        close = get_close_matches(key, keys, 1, 0.6)
    return f" Did you mean `{close[0]}`?" if close else ""


_SHORT = 2  # of shorter names only the case is compared
_SIMILARITY = 0.75  # from which on one name may be a typo for the other
_SHORTEST, _LONGEST = 3, 200  # lengths of names that are compared


def resembles(key: str, known: Iterable[str]) -> bool:
    """Whether a predicate may be a typo for one of `known`: it differs in arity alone, or in a few letters.

    >>> known = ["rewrite/3", "word/3", "end/1"]
    >>> [resembles(key, known) for key in ("rewrite/2", "words/3", "Word/3", "edn/1", "colour/2", "e/1")]
    [True, True, True, True, False, False]
    """
    name = key.rpartition("/")[0].lower()
    names = {other.rpartition("/")[0].lower() for other in known}
    if name in names:
        return True
    if not _SHORTEST <= len(name) <= _LONGEST:
        return False
    if any(sorted(name) == sorted(other) for other in names):  # letters changed places
        return True
    return bool(get_close_matches(name, [n for n in names if len(n) >= _SHORTEST], 1, _SIMILARITY))


_ESCAPES = str.maketrans({"\\": r"\\", "'": r"\'"})
_ITEM = re.compile(r"\s*([a-z]\w*)\((.*)\)\s*\.?\s*", re.DOTALL)
_ARGUMENT = re.compile(
    r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|[A-Z_]\w*|[a-z]\w*|'(?:[^'\\]|\\.)*'|\"[^\"]*\"", re.DOTALL
)


def quotes_for(text: str) -> str:
    """An item with quotes around those of its arguments that no symbol can be without; empty where there are none.

    >>> quotes_for("far(C d)"), quotes_for("road(new-york,b)"), quotes_for("far(a"), quotes_for("far(1e400)")
    ("far('C d')", "road('new-york',b)", '', '')
    """
    item = _ITEM.fullmatch(text) if len(text) <= _LONGEST else None
    if item is None or any(c in item[2] for c in "()[]"):
        return ""
    arguments = [a.strip() for a in item[2].split(",")]
    quoted = [a if _ARGUMENT.fullmatch(a) else f"'{a.translate(_ESCAPES)}'" for a in arguments]
    return f"{item[1]}({','.join(quoted)})" if quoted != arguments and all(arguments) else ""
