"""`dynagrad dvl`: values of a program beside what it says of them, what is compiled of it, and a prompt.

What runs programs is imported when it is needed, for a quick start of other commands.

Nothing of the language is known here: it is in `languages/dvl`.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..compiler.inspect import cpp, graph
from ..errors import Error
from .commands import app, command

if TYPE_CHECKING:
    from ..languages.dvl.program import Session


@app.command(short_help="Run a DVL program, or a prompt for one.", epilog="Example: dynagrad dvl saddle.dvl --compile")
@command
def dvl(
    file: Annotated[
        Path | None, typer.Argument(help="The program, a .dvl file; without it, a prompt.", show_default=False)
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compile", help="Make machine code of the program, and run that.")
    ] = False,
    show: Annotated[
        str | None, typer.Option("--show", metavar="graph|c++", help="Print what is compiled, in place of running it.")
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option("--max-steps", min=1, help="End each expression after so many calls; 1,000,000,000 unless told."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=0, help="End compiled code after so many seconds; 3600 unless told."),
    ] = None,
) -> None:
    """Run a DVL program: print the values of its expressions, and check them against what it says of them."""
    if file is None:
        prompt()
    elif show is not None:
        show_dvl(file, show)
    elif not run_dvl(file, compiled, max_steps, timeout):
        raise typer.Exit(1)


def run_dvl(file: Path, compiled: bool, max_steps: int | None, timeout: float | None) -> bool:
    """Prints the values of a program; whether they are what it says."""
    from ..languages.dvl.program import HOUR, DVLProgram  # for a quick start

    program = DVLProgram(file)
    limit = HOUR if timeout is None else timeout
    wrong = 0
    for result in program.compiled_results(limit) if compiled else program.results(max_steps):
        typer.echo(f"{file}, line {result.line}: {result}" if not result.holds else str(result))
        wrong += not result.holds
    if wrong:
        typer.echo(f"{wrong} value{' is' if wrong == 1 else 's are'} not what the program says", err=True)
    return not wrong


def show_dvl(file: Path, what: str) -> None:
    """Prints the graph of a program, or its C++."""
    from ..languages.dvl.compiling.program import Whole  # for a quick start
    from ..languages.dvl.program import DVLProgram  # for a quick start

    shown = {"graph": graph, "c++": cpp, "cpp": cpp}.get(what)
    if shown is None:
        raise Error(f"--show takes graph or c++, and got {what!r}")
    program = DVLProgram(file)
    typer.echo(str(shown(Whole(program.items, program.foreign))))


def prompt() -> None:
    """Reads expressions and definitions, and prints values, until the end of the input."""
    from ..languages.dvl.program import Incomplete, Session  # for a quick start

    session, count, text = Session(), 0, ""
    with _history(session):
        while True:
            try:
                text += input("... " if text else "dvl> ") + "\n"
            except EOFError:
                typer.echo()
                return
            except KeyboardInterrupt:
                typer.echo()
                text = ""
                continue
            count += 1
            try:
                for result in session.results(text, count):
                    typer.echo(str(result))
            except Incomplete:
                continue
            except Error as error:
                typer.echo(f"error: {error}", err=True)
            except KeyboardInterrupt:
                typer.echo("interrupted", err=True)
            text = ""


class _history:
    """A context with the lines that were typed before, and completion of names."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.file = Path.home() / ".dynagrad_dvl_history"
        self.found: list[str] = []
        self.readline: Any = None

    def __enter__(self) -> None:
        try:
            import readline  # an optional part of Python
        except ImportError:
            return
        self.readline = readline
        with contextlib.suppress(OSError):
            readline.read_history_file(self.file)
        readline.set_completer(self._complete)
        readline.set_completer_delims(" \t\n()[]'\";")
        readline.parse_and_bind("tab: complete")

    def _complete(self, text: str, state: int) -> str | None:
        if not state:
            self.found = [name for name in self.session.names() if name.startswith(text) and " " not in name]
        return self.found[state] if state < len(self.found) else None

    def __exit__(self, *_: Any) -> None:
        if self.readline is not None:
            with contextlib.suppress(OSError):
                self.readline.write_history_file(self.file)
