"""JSON of forests, derivations and reasons: one function writes all of it."""

from __future__ import annotations

import json
from typing import Any

from ..errors import Error, shown


def json_text(data: Any, indent: Any) -> str:
    """Data as JSON. Raises Error for what is not an indentation."""
    if indent is not None and (isinstance(indent, bool) or not isinstance(indent, int) or not 0 <= indent <= 16):
        raise Error(f"indent is None or a whole number from 0 to 16, not {shown(indent)}")
    return json.dumps(data, indent=indent, ensure_ascii=False, default=str)
