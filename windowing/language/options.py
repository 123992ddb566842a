"""The options of a window besides its spec, its key, its order and its aggregates.

Each is declared here, and only here: the flag and its help, the key of job files and its JSON Schema, the environment
variable, and whether a state depends on it all follow from the declaration. Its annotations are read when the module is
loaded, so they may not be put off as texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ..expressions.syntax import Expression
from ..support.option import option, options_of
from .distinct import Distinct
from .joins import Join

AtEnd = Literal["flush", "drop", "hold"]
Empty = Literal["skip", "mark", "row"]
Closed = Literal["left", "right"]
Lets = tuple[tuple[str, Expression], ...]
"""Names and expressions of new columns, in order."""
Emit = Literal["aggregates", "rows", "entered", "left"]


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column that sorts the rows of a pane, nulls last in both directions.

    ``name``: the column.
    ``descending``: whether the largest value comes first.
    """

    name: str
    descending: bool


def sort_key(text: str, columns: Sequence[str]) -> SortKey:
    """Parse ``COL``, ``COL asc`` or ``COL desc``. A text that is the name of a column as a whole is that column."""
    name, _, direction = text.rpartition(" ")
    if text in columns or not name.strip() or direction.lower() not in {"asc", "desc"}:
        return SortKey(text, False)
    return SortKey(name.strip(), direction.lower() == "desc")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run that change its windows or their output; names as on the command line.

    The declarations say what each option does. ``origin``, ``lag`` and ``min_gap`` are in seconds; an item of
    ``sort_by`` is a column, optionally followed by `` asc`` or `` desc``; ``operator`` is ``module:Class``. Two fields
    come from options of the job:

    ``plain``: whether stream columns and mark-only rows are left out.
    ``max_rows``: how many rows overlapping windows may write where they emit rows; None: any number.
    """

    let: Lets = option(
        (),
        "A new column (repeatable); later ones may use it.",
        "Window",
        "lets",
        key_help="New columns, NAME=EXPRESSION; as a mapping: name to expression. Later ones may use earlier ones.",
        decides_windows=True,
    )
    where: Expression | None = option(
        None, "Only rows for which this is true; others are left out.", "Window", "expression", decides_windows=True
    )
    distinct: Distinct | None = option(
        None,
        "Leave out a row that repeats these columns of one that was let through, at most D and N rows of its key "
        "before.",
        "Window",
        "distinct",
        key_help="Leave out a row that repeats these columns of a row of its key that was let through: at most D "
        "before it on the clock, and at most N rows.",
        complete="columns",
        decides_windows=True,
    )
    join: Join | None = option(
        None,
        "Another log for windows over both: around, at, SIDE join SIDE, or any over both sides.",
        "Window",
        "join",
        key_help="Another log for windows over both, NAME=PATH, or the input itself, NAME; then on keys, by orders, "
        "inner, left, right, full, semi, anti or union, strict, where (..) and take.",
        decides_windows=True,
    )
    match: Expression | None = option(
        None, "Only pairs of --join for which this is true.", "Window", "expression", decides_windows=True
    )
    having: Expression | None = option(
        None, "Write only result rows for which this is true.", "Window", "expression", below="agg"
    )
    group_by: tuple[str, ...] = option(
        (), "One row for each group of these columns in a pane.", "Window", decides_windows=True
    )
    emit: Emit = option(
        "aggregates",
        "What a pane gives: its aggregates, its rows, or those that entered or left (sliding and batched windows).",
        "Window",
        key_help="What a pane gives: its aggregates, its rows, or the rows that entered or left.",
        decides_windows=True,
    )
    sort_by: tuple[str, ...] = option(
        (),
        "Sort the rows of each pane, with --emit. Default: their order.",
        "Window",
        metavar="COL [desc],..",
        key_help="Sort the rows of each pane, where panes give rows: columns, each with desc if need be.",
    )
    partial: bool = option(False, "Emit sliding windows before they are full, too.", "Window", decides_windows=True)
    at_end: AtEnd = option(
        "flush",
        "What to do with windows that are open at the end; hold keeps them in the state. Default: flush, and hold "
        "with --state.",
        "Window",
        metavar="flush|hold|drop",
        key_help="What to do with windows that are open at the end; hold keeps them in the state. Default with a "
        "state: hold.",
        is_shared=True,
    )
    empty: Empty = option(
        "skip",
        "What a time window without rows gives.",
        "Window",
        key_help="What a time, calendar or cron window without rows gives.",
        decides_windows=True,
    )
    closed: Closed = option(
        "left",
        "On which side time, calendar and cron windows are closed; a row on a bound is in the window closed there.",
        "Window",
        key_help="On which side time, calendar and cron windows are closed: with right a row on a bound is the last of "
        "the window that ends there.",
        decides_windows=True,
    )
    origin: Fraction = option(
        Fraction(0),
        "Where the grid of time windows begins. Default: 0, the epoch.",
        "Window",
        "origin",
        key_help="Where the grid of time windows begins: a time, a duration or seconds.",
        decides_windows=True,
    )
    ends: str | None = option(
        None,
        "Until when rows last: a row is in every time, calendar, cron or table window that it overlaps.",
        "Window",
        metavar="COL",
        complete="columns",
        key_help="The column that says until when a row lasts: it is in every time, calendar, cron or table window "
        "that it overlaps.",
        decides_windows=True,
    )
    event_time: str | None = option(
        None,
        "The time column of timeInterval. Default: the only one.",
        "Window",
        metavar="COL",
        complete="columns",
        decides_windows=True,
    )
    lag: Fraction = option(
        Fraction(0),
        "How far the watermark stays behind the latest event.",
        "Window",
        "duration",
        decides_windows=True,
    )
    min_gap: Fraction = option(
        Fraction(0), "The least rise of the watermark that takes effect.", "Window", "duration", decides_windows=True
    )
    max_ahead: Fraction | None = option(
        None,
        "Rows further ahead of all others move no clock: fewer than 10 are rejected, or wait (timeInterval).",
        "Window",
        "duration",
        decides_windows=True,
    )
    max_open_rows: int = option(
        10_000_000,
        "The most rows of a key that a match may still be decided by; more are an error. Default: 10000000.",
        "Window",
        minimum=1,
        key_help="The most rows of a key, from the first that a match may begin at and is not decided; more are an "
        "error.",
    )
    emit_evicted: bool = option(False, "Emit windows of evicted keys, too (tumbling).", "Window", decides_windows=True)
    operator: str | None = option(
        None,
        "An operator of your own, in place of aggregates.",
        "Window",
        metavar="MODULE:CLASS",
        below="sort_by",
        key_help="An operator of your own, module:Class, in place of aggregates.",
    )
    plain: bool = False
    max_rows: int | None = None


WINDOW_OPTIONS = options_of(Options)
"""The declarations of the options of a window."""
