"""What joins do not take: windows, options and ways without a partner that have no meaning together (section 16)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..errors import ConfigError, did_you_mean
from ..expressions.nodes import Node, walk
from ..expressions.syntax import Expression
from ..language.joins import SIDE, Join
from ..language.operands import Operand
from ..language.options import Options
from ..language.spec import (
    AggregateCall,
    AggregateExpression,
    Around,
    At,
    Batched,
    Joined,
    RowPattern,
    SideWindows,
    Sliding,
    TimeInterval,
    Tumbling,
    WindowSpec,
)

Calls = Sequence[AggregateCall | AggregateExpression]


def check_join(spec: WindowSpec, options: Options, calls: Calls | None, columns: Collection[str]) -> None:
    """Raise `ConfigError` where a window, ``--join`` and other options do not go together.

    ``spec``: the window, or it as `Joined`. ``calls``: the aggregates; None: none were asked for. ``columns``: those of
    the one sequence, in which those of the right stand before `SIDE`; of one log those of the input; none: they are not
    known yet. Raises `SpecError` for conditions on rows of one side that read the other.
    """
    window, join = spec.window if isinstance(spec, Joined) else spec, options.join
    if join is None:
        if options.match is not None:
            raise ConfigError("--match is about pairs of --join, and there is none", "use --where, or say --join")
        if isinstance(window, Around | At | SideWindows):
            do = 'say --join "NAME=PATH on KEY", or NAME alone for the input itself'
            raise ConfigError(f"{window} is a window over both sides of --join, and there is none", do)
        return
    who = f"--join {join.name}"
    _check_window(who, window, join, is_aggregated=calls is not None)
    _check_options(who, window, join, options)
    _check_lags(window, join, options, calls or ())
    _check_columns(who, join, options, tuple(columns))
    if isinstance(window, At):
        own, theirs = f"{join.name}_offset", "offset" in columns and join.path is None and join.take is None
        if own in columns or theirs:
            do = "take columns by name, with another one: take offset as .."
            raise ConfigError(f"{who}: at(..) gives pairs a column {own}, and there is one already", do)


def _check_window(who: str, window: WindowSpec, join: Join, *, is_aggregated: bool) -> None:
    """Raise `ConfigError` where a window does not take what ``--join`` says of rows without a partner."""
    how: str = join.how
    takes: tuple[str, ...] = ("inner", "left", "right", "full", "semi", "anti")
    if isinstance(window, At):
        takes = ("inner", "left")
    elif isinstance(window, Around) and window.prevailing:
        takes = ("inner", "left", "semi", "anti")  # a right row may be the newest of any left row to come
    elif isinstance(window, SideWindows) and isinstance(window.left, Batched):
        takes = ("inner",)
    if isinstance(window, Around | At | SideWindows):
        if how not in takes:
            raise ConfigError(f"{who}: {window} takes no {how}", f"say {' or '.join(takes)}")
    elif how == "union":
        return
    elif not isinstance(window, Tumbling | TimeInterval):
        do = "use around(..), at(..), SIDE join SIDE, a tumbling window or timeInterval; or say union"
        raise ConfigError(f"{who}: {window} pairs no rows of two sides", do)
    elif isinstance(window, Tumbling) and window.eviction is not None:
        raise ConfigError(f"{who}: {window.eviction} does not go with pairs", "leave it out")
    if is_aggregated and how != "inner" and not (how == "left" and isinstance(window, Around)):
        what = f"{who}: {how} says which rows come out without a partner, and --agg writes aggregates of pairs"
        raise ConfigError(what, "leave --agg out and aggregate in a next stage, or say inner, or left with around")


def _check_options(who: str, window: WindowSpec, join: Join, options: Options) -> None:
    """Raise `ConfigError` for an option that has no meaning for rows of two sides."""
    if options.distinct is not None:
        raise ConfigError(
            f"--distinct does not go with {who}: it is about rows of one side", "use it in a stage before"
        )
    if options.ends is not None:
        raise ConfigError(f"--ends does not go with {who}", "leave one of them out")
    if join.how == "union":
        if options.match is not None:
            raise ConfigError(f"{who}: union pairs no rows, so --match has no meaning", "use --where and where (..)")
        return
    if options.operator is not None:
        raise ConfigError(f"--operator does not go with {who}: it sees rows, not pairs", "use it in a next stage")
    changes = options.emit in ("entered", "left")
    if changes and not isinstance(window, SideWindows):
        raise ConfigError(
            f"--emit {options.emit} is for SIDE join SIDE, and this window is {window}", "say --emit rows"
        )
    if isinstance(window, SideWindows) and join.how != "inner" and options.emit in ("left", "rows"):
        what = f"{who}: rows without a partner come out with those that entered, and not with --emit {options.emit}"
        raise ConfigError(what, "say --emit entered, or inner")


def _check_columns(who: str, join: Join, options: Options, columns: tuple[str, ...]) -> None:
    """Raise `SpecError` where ``--where`` reads the right, or ``where (..)`` a column that the right does not have."""
    at = columns.index(SIDE) if SIDE in columns else 0
    of_right = {*columns[:at]} if join.path is not None else {*join.columns(columns)}.difference(columns)
    if options.where is not None:
        of_pairs = set(of_right)
        for name, expression in options.let:
            if not of_pairs.isdisjoint(expression.columns):
                of_pairs.add(name)
        for node in _column_nodes(options.where):
            if node.value[0] in of_pairs:
                what = "is a column of the right" if node.value[0] in of_right else "reads the right"
                what = f"--where is about rows of the left, and {node.value[0]!r} {what}"
                raise options.where.error(what, node.span, f"say --match, or where (..) in {who}")
    if join.where is not None and at:
        for node in _column_nodes(join.where):
            if join.stored(node.value[0]) not in columns:
                own = [name.removeprefix(f"{join.name}_") for name in columns[:at]]
                what = f"{who}: the right side has no column {node.value[0]!r} for where (..)"
                raise join.where.error(what, node.span, did_you_mean(node.value[0], own))


def _column_nodes(expression: Expression) -> list[Node]:
    return [node for node in walk(expression.root) if node.kind == "column"]


def _check_lags(window: WindowSpec, join: Join, options: Options, calls: Calls) -> None:
    """Raise `ConfigError` for ``lag``: the row before one of one side may be of the other."""
    for label, expression in _expressions(window, join, options, calls):
        if isinstance(expression, Expression) and expression.uses_lag:
            what = f"{label}: lag() is about rows of one sequence, and --join {join.name} has two"
            raise ConfigError(what, "compute it in a stage before, as a column")


def _expressions(
    window: WindowSpec, join: Join, options: Options, calls: Calls
) -> Iterator[tuple[str, Operand | None]]:
    yield from ((f"--let {name}", each) for name, each in options.let)
    yield from (("--where", options.where), ("--match", options.match), (f"--join {join.name}", join.where))
    if isinstance(window, Tumbling):
        yield from ((str(window), each) for each in window.policy.operands)
    if isinstance(window, Sliding):
        yield from ((str(window), each) for each in window.trigger.operands)
    if isinstance(window, RowPattern):
        yield from ((str(window), each) for _, each in window.conditions)
    for item in calls:
        for call in item.calls:
            arguments = (*call.arguments, call.where)
            yield from ((f"--agg {item.name}", each) for each in arguments if isinstance(each, Expression))
