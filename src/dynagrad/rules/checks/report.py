"""`Reporter`, which the checks share: errors and warnings that show their place in the text.

Errors themselves are in `errors.py`; mistakes of syntax have messages of their own, in `parsing/mistakes.py`.
"""

from __future__ import annotations

from ...errors import ProgramError, Span
from ..syntax import Source


class Reporter:
    """Makes errors and warnings that show a place in a program's text."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def error(self, message: str, span: Span) -> ProgramError:
        return ProgramError(message, self.source.text, span, self.source.filename)

    def warning(self, message: str, span: Span) -> str:
        return str(self.error(message, span))
