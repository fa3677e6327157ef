"""The commands and their options; how errors, warnings and interrupts are reported.

A command reads files, checks, plans or runs the program in them, and prints. Our errors become one message and exit
status 1, Ctrl-C exit status 130. Modules that only some commands need are imported by these. It is long because each
command is a row of options.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TextIO, TypeVar

import typer

from .. import __version__
from ..charts.binding.context import read_facts
from ..charts.binding.encoding import kinds, program_constants, settle_texts, syntax_value
from ..charts.chart import bring_up, run_of
from ..charts.limits import Limits
from ..charts.lookup import ask_for
from ..charts.program import Program, binding_of, chart_of, context_of
from ..charts.replay import differentiable
from ..charts.sources import file_text
from ..codegen.rules.header.names import namespace
from ..codegen.rules.header.program import header as header_of
from ..errors import Error, ProgramWarning, QueryError, counted, cut
from ..facts.relation import Relation
from ..plan.assume import assumed_plan, takers
from ..plan.explain import explain as explained
from ..plan.model import Plan
from ..rules import check as check_rules
from ..rules import infer, parse, parse_item
from ..rules.show import show_name
from ..rules.suggestions import nearest
from ..runtime.compiling.toolchain import INCLUDE
from ..runtime.disk.whole import replace_file
from ..starting import INTERRUPTED, interruptible, leave_on_interrupt
from .answers import PRINTERS, Format, answer, derivatives
from .inputs import Values, facts_of, program_of

P = ParamSpec("P")
R = TypeVar("R")

app = typer.Typer(
    name="dynagrad",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Dynamic programs as a few equations, compiled.",
    epilog="Start with: dynagrad demo",
)


File = Annotated[Path, typer.Argument(help="The program, a .dyna file.", show_default=False, metavar="FILE")]
Facts = Annotated[
    list[str],
    typer.Option(
        "--facts",
        "-f",
        metavar="KEY=FILE",
        help="Facts of a predicate: rewrite/3=grammar.tsv. The suffix says what the file is: .tsv, .csv, .parquet, "
        ".arrow, .feather. A file named rewrite.3.tsv needs no KEY, and a folder stands for all such files in it.",
        show_default=False,
    ),
]
SemiringName = Annotated[
    str | None,
    typer.Option(
        "--semiring",
        "-s",
        metavar="NAME",
        help="real, log, viterbi, tropical, boolean, count or expectation; the program may declare it instead.",
        show_default=False,
    ),
]
ValuesOption = Annotated[
    Values, typer.Option("--values", help="What numbers are given as: the semiring's own, or probabilities.")
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of text files has the names of columns. Without it every line is a fact.",
        show_default=False,
    ),
]
FunctionsOption = Annotated[
    Path | None,
    typer.Option(
        "--functions",
        metavar="FILE.py",
        help="A Python file that defines the functions the program declares, under their names.",
        show_default=False,
    ),
]


# -- errors and warnings ---------------------------------------------------------------------------------------------


def say(kind: str, message: str) -> None:
    colour = {"error": typer.colors.RED, "warning": typer.colors.YELLOW}.get(kind)
    typer.secho(f"{kind}:", fg=colour, bold=bool(colour), err=True, nl=False)
    typer.echo(f" {message}", err=True)


@contextmanager
def _told() -> Iterator[None]:
    """Prints warnings about programs on standard error as they are issued."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", ProgramWarning)
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, ProgramWarning):
                say("warning", str(message))
            else:
                usual(message, category, *rest, **more)

        warnings.showwarning = show
        yield


def command(function: Callable[P, R]) -> Callable[P, R]:
    """The function as a command: errors become messages, never tracebacks."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with interruptible(), _told():
                return function(*args, **kwargs)
        except Error as error:
            say("error", str(error))
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except MemoryError:
            say("error", "there is no memory left; give the command fewer facts, or ask it for less")
            raise typer.Exit(1) from None

    return run


# -- run -------------------------------------------------------------------------------------------------------------


@app.command(
    epilog="Example: dynagrad run cky.dyna --facts rewrite/3=grammar.tsv --facts rewrite/2=lexicon.tsv --facts "
    "word/3=sentence.tsv --facts end/1=length.tsv --values probabilities --semiring log --query goal --query "
    "'constit(X,0,K)'"
)
@command
def run(
    file: File,
    facts: Facts = [],  # noqa: B006  -- typer copies it
    query: Annotated[
        list[str],
        typer.Option(
            "--query",
            "-q",
            metavar="ITEM",
            help="An item to look up, or a pattern with variables. Without one: the declared outputs, or what no rule "
            "reads.",
            show_default=False,
        ),
    ] = [],  # noqa: B006  -- typer copies it
    grad: Annotated[
        list[str],
        typer.Option(
            "--grad",
            "-g",
            metavar="ITEM",
            help="An item whose derivatives by all facts are printed, per predicate: as text the largest first; as tsv "
            "in rows of item, predicate, arguments and derivative, in the order of the facts. In log they are "
            "expected counts. Without --query nothing else is printed.",
            show_default=False,
        ),
    ] = [],  # noqa: B006  -- typer copies it
    semiring: SemiringName = None,
    values: ValuesOption = Values.weights,
    header: HeaderOption = None,
    functions: FunctionsOption = None,
    max_pops: Annotated[
        int | None, typer.Option(min=0, help="Stop after so many items; cycles are iterated.", show_default=False)
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Stop after so many seconds; those of compiling do not count. Each --grad has as many again, and is "
            "an error at their end.",
            show_default=False,
        ),
    ] = None,
    max_items: Annotated[
        int | None,
        typer.Option(
            min=0, help="End with an error where there are more items.  [default: 200 million]", show_default=False
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="End with an error where the chart needs more bytes.  [default: half of the memory]",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="ITEM", help="Stop when this item is final.", show_default=False)
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, help="Iterate cycles: the relative size under which an update waits.", show_default=False),
    ] = None,
    progress: Annotated[bool, typer.Option("--progress", help="Show a progress line.")] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Print statistics of the run on standard error.")] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.text,
    limit: Annotated[int, typer.Option(min=0, help="Rows of a table to show as text; 0 for all.")] = 100,
) -> None:
    """Run a program on facts and print items, or the derivatives of items."""
    program = program_of(file, semiring, values, functions)
    relations = facts_of(program, facts, values, header)
    note_missing(program, relations)
    queries = query or ([] if grad else _default_queries(program))
    if not queries and not grad:
        say("note", "the program derives nothing; name what to print with --query")
    items = [(text, parse_item(text)) for text in queries]
    for option, texts in (("--grad", grad), ("--until", [until] if until else [])):
        for text in texts:
            check_ground(option, text)
    bound = program.bind()
    if grad:
        _check_gradients(program, relations, grad)
        binding_of(bound).keep_tapes()
    limits = Limits(max_pops, tolerance, timeout, until, max_items, max_bytes)
    chart = chart_of(bound, relations, limits)
    run_of(chart).set_up(progress)  # compiling does not count towards a timeout
    bring_up(chart, limits, progress)
    answers = [answer(chart, text, item) for text, item in items]
    for text in grad:
        answers.extend(derivatives(chart, text, list(relations), timeout))
        if text not in chart:
            say("note", f"{text} was not derived, so its derivatives are zero")
    PRINTERS[format](answers, limit)
    if not chart.converged:
        say("note", f"the run stopped early ({chart.status}); values may not be final")
    if stats:
        s = chart.stats
        typer.echo(
            f"{counted(s.pops, 'pop')}, {counted(s.updates, 'update')}, {counted(s.items, 'item')}, "
            f"{counted(s.bytes, 'byte')}, {s.seconds:.6f} seconds",
            err=True,
        )


def note_missing(program: Program, relations: Mapping[str, Relation]) -> None:
    """Prints a note on inputs without facts: allowed if they are declared, and often a mistake."""
    rules = context_of(program).rules
    known = {axiom.item.key for axiom in rules.axioms} | set(relations)
    missing = [k for k in program.inputs if k not in known and not rules.predicates[k].external]
    if missing:
        say("note", f"no facts for {', '.join(missing)}")


def _default_queries(program: Program) -> list[str]:
    """The declared outputs; without any, the predicates in the text that no rule reads, or all if each is read."""
    rules = context_of(program).rules
    read = {a.item.key for r in rules.rules for a in r.antecedents}
    asserted = {a.item.key for a in rules.axioms}
    defined = [k for k, p in rules.predicates.items() if p.defined or k in asserted]
    keys = list(rules.outputs) or [k for k in defined if k not in read] or defined
    texts = []
    for key in keys:
        predicate = rules.predicates[key]
        variables = ",".join(f"X{i}" for i in range(1, predicate.arity + 1))
        texts.append(f"{show_name(predicate.name)}({variables})" if variables else show_name(predicate.name))
    return texts


def check_ground(option: str, text: str) -> None:
    """Raises for a pattern where one item is needed."""
    try:
        for term in parse_item(text).arguments:
            syntax_value(term)
    except ValueError:
        hint = ask_for(parse_item(text), "--query lists")
        raise QueryError(f"{option} {cut(text)}: it has variables; {hint}") from None


def _check_gradients(program: Program, relations: Mapping[str, Relation], items: Sequence[str]) -> None:
    """Raises, before anything runs, for derivatives that do not exist."""
    differentiable(context_of(program).scale)
    for text in items:
        key = parse_item(text).key
        if key not in program.predicates:
            raise QueryError(
                f"--grad {cut(text)}: the program has no predicate `{cut(key)}`.{nearest(key, program.predicates)}"
            )
    if not relations:
        raise Error(f"--grad {cut(items[0])}: there are no facts to differentiate by; give them with --facts")


# -- check -----------------------------------------------------------------------------------------------------------


@app.command(short_help="Check a program: its errors and warnings.", epilog="Example: dynagrad check cky.dyna")
@command
def check(file: File, semiring: SemiringName = None) -> None:
    """Check a program: print OK and warnings, or the error with its place."""
    rules = check_rules(parse(file_text(file), str(file)), semiring=semiring, functions=None)
    infer(rules)
    inputs = ", ".join(k for k, p in rules.predicates.items() if p.input) or "none"
    count, predicates = len(rules.rules), len(rules.predicates)
    typer.echo(f"OK: {counted(count, 'rule')}, {counted(predicates, 'predicate')}; inputs: {inputs}")


# -- explain and cpp -------------------------------------------------------------------------------------------------


@app.command(
    short_help="Print how a program will run, and why.",
    epilog="Example: dynagrad explain cky.dyna --facts rewrite/3=grammar.tsv --facts word/3=sentence.tsv ...",
)
@command
def explain(
    file: File,
    facts: Facts = [],  # noqa: B006  -- typer copies it
    semiring: SemiringName = None,
    values: ValuesOption = Values.weights,
    header: HeaderOption = None,
    functions: FunctionsOption = None,
) -> None:
    """Print how a program will run: storage, indexes, joins, and the order with its reason.

    Without facts it is the plan for any facts, which assumes no order in them.
    """
    program = program_of(file, semiring, values, functions, hosted=False)
    relations = facts_of(program, facts, values, header)
    if relations:
        note_missing(program, relations)
    typer.echo(explained(_plan(program, relations, values)))


def _plan(program: Program, relations: Mapping[str, Relation], values: Values) -> Plan:
    """The plan for these facts; without facts, one for any."""
    context = context_of(program)
    if relations:
        read = read_facts(context, relations, values is Values.probabilities)
        return binding_of(program.bind()).prepare(read).compiled.plan
    return assumed_plan(context.rules, context.domains, kinds(context.rules, context.domains, {}), context.options)


def header_plan(program: Program, relations: Mapping[str, Relation], values: Values) -> Plan:
    """The plan of a header: for facts like these if every input has some, else for any facts of their kinds."""
    context = context_of(program)
    given = {key for key, relation in relations.items() if relation.count}
    given |= {axiom.item.key for axiom in context.rules.axioms}
    if given and given >= set(takers(context.rules)):
        return _plan(program, relations, values)
    read = settle_texts(context.domains, read_facts(context, relations, values is Values.probabilities))
    return assumed_plan(context.rules, context.domains, kinds(context.rules, context.domains, read), context.options)


@app.command(
    short_help="Write a C++ header with the program as a class.",
    epilog="Example: dynagrad cpp cky.dyna -o cky.hpp && c++ -std=c++20 -O3 -I $(dynagrad cpp --include) main.cpp",
)
@command
def cpp(
    file: File,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The header to write, whole or not at all; without it, standard output."),
    ] = None,
    facts: Facts = [],  # noqa: B006  -- typer copies it
    name: Annotated[
        str | None, typer.Option(help="The namespace; without it, after the header's name.", show_default=False)
    ] = None,
    semiring: SemiringName = None,
    values: ValuesOption = Values.weights,
    header: HeaderOption = None,
    functions: FunctionsOption = None,
    gradient: Annotated[
        bool, typer.Option("--gradient/--no-gradient", help="Whether the chart can differentiate what it ran.")
    ] = True,
    include: Annotated[
        bool,
        typer.Option(
            "--include", is_eager=True, callback=lambda on: _print_include(on), help="Print the folder of the headers."
        ),
    ] = False,
) -> None:
    """Write a C++ header with the compiled program as a class.

    It takes facts, runs, and looks items up without Python. With --facts it is made for facts like these (their types,
    sizes and order), and refuses others; without, it runs on any, but may be slower. The class also computes gradients;
    for these its runs keep a tape of eight bytes or more for each pop, which --no-gradient leaves out.
    """
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        raise Error(f"--output {output}: that is the program itself")
    program = program_of(file, semiring, values, functions, hosted=False)
    plan = header_plan(program, facts_of(program, facts, values, header), values)
    context = context_of(program)
    space = namespace(name or (output or file).stem)
    text = header_of(plan, space, program_constants(context.rules, context.domains), gradient=gradient)
    if output is None:
        typer.echo(text, nl=False)
        return
    replace_file(output, text.encode())
    typer.echo(f"wrote {output}: {space}::chart; its include folder is printed by: dynagrad cpp --include", err=True)


def _print_include(on: bool) -> None:
    if on:
        typer.echo(INCLUDE)
        raise typer.Exit


# -- demo ------------------------------------------------------------------------------------------------------------


@app.command(
    short_help="Parse some sentences, and show what comes out.",
    epilog="Example: dynagrad demo, or: dynagrad demo 'they saw her duck'",
)
@command
def demo(
    sentence: Annotated[
        str | None, typer.Argument(help="A sentence of the demo's words to draw the chart of.", show_default=False)
    ] = None,
) -> None:
    """Parse some English sentences with a small grammar, and show values, a chart and a tree."""
    from .demo import show_demo  # for a quick start

    show_demo(sentence)


# -- all -------------------------------------------------------------------------------------------------------------


def _print_version(on: bool) -> None:
    if on:
        typer.echo(f"dynagrad {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Dynamic programs as a few equations, compiled."""


def main() -> None:
    """The `dynagrad` command."""
    leave_on_interrupt()
    try:
        try:
            app()
        except SystemExit as end:
            if end.code == INTERRUPTED:
                _leave_at_once()
            raise
        finally:
            if sys.stdout is not None:  # None if it was closed at the start
                sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output ended, as `head` does
        _drop(sys.stdout)
        sys.exit(141)
    except (OSError, UnicodeEncodeError) as error:  # of standard output: those of named files are our errors
        _drop(sys.stdout)
        why = error.strerror if isinstance(error, OSError) else f"{error}; set PYTHONIOENCODING=utf-8"
        try:
            say("error", f"the output cannot be written: {why or error}")
            sys.stderr.flush()
        except (OSError, UnicodeEncodeError):
            _drop(sys.stderr)
        sys.exit(1)


def _leave_at_once() -> None:
    """Ends the process without taking apart what it holds, for which whoever pressed Ctrl-C would have to wait."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with contextlib.suppress(OSError, ValueError, UnicodeEncodeError):
            stream.flush()
    atexit._run_exitfuncs()
    os._exit(INTERRUPTED)


def _drop(stream: TextIO) -> None:
    """Redirects a stream to the null device, so that the interpreter does not fail to flush it at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
