"""The sentences of a window with its key and options, in the order in which they take effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from ..support.redaction import redacted_path
from .joins import Join
from .operands import operand_text
from .options import Options
from .row_policies import Count, Delta
from .spec import (
    AggregateCall,
    AggregateExpression,
    Around,
    At,
    Batched,
    Growing,
    Joined,
    Lasting,
    PartitionEviction,
    RowPattern,
    SideWindows,
    Sliding,
    SlidingPolicy,
    TableWindows,
    TimeInterval,
    TriggerPolicy,
    Tumbling,
    WindowSpec,
)
from .tokens import Times, decimal_text, duration, listed, rows


def window_text(spec: WindowSpec, options: Options) -> str:
    """Return a window as a job writes it, with its join and condition of pairs: they say as much as the window."""
    found, join = [str(spec)], options.join
    if join is not None:
        path = join.path if join.path is None else redacted_path(join.path)
        found.append(f'--join "{replace(join, path=path)}"')
    if options.match is not None:
        found.append(f'--match "{options.match}"')
    return " ".join(found)


# What a window holds and when it comes out, in words, for each kind of window (semantics sections 2 to 6).


def _tumbling(spec: Tumbling, options: Options, times: Times) -> list[str]:
    policy = spec.policy
    found = [each.opening for each in policy.alternatives if each.opening is not None]
    if policy.stretch is not None:
        which = "the one that its time is in"
        if options.ends is not None:
            which = f"each that it overlaps: it lasts from its time until {options.ends}"
        found.append(f"Windows are {policy.stretch}, and a row is in {which}.")
        if isinstance(policy, Growing):
            step = duration(policy.every)
            found.append(f"A window comes out every {step} from its beginning, with its rows so far, and at its end.")
        return [*found, *_eviction(spec.eviction, options)]
    endings = [each.ending(times) for each in policy.alternatives]
    endings = [each for each in endings if each] or ["at the end of the data alone"]
    if len(endings) == 1:
        found.append(f"A window ends {endings[0]}.")
    else:
        numbered = "; ".join(f"({number}) {each}" for number, each in enumerate(endings, 1))
        found.append(f"A window ends at whichever comes first: {numbered}.")
    return [*found, *_eviction(spec.eviction, options)]


def _sliding(spec: Sliding, options: Options, times: Times) -> list[str]:
    found = [_held(spec.evict, times), _trigger(spec.trigger, times)]
    if isinstance(spec.evict, Count | Delta):
        full = f"it holds {rows(spec.evict.n)}" if isinstance(spec.evict, Count) else "a row has left it"
        found.append(
            f"It also comes out before {full} for the first time."
            if options.partial
            else f"Nothing comes out before {full}."
        )
    return [*found, *_eviction(spec.eviction, options)]


def _held(evict: SlidingPolicy, times: Times) -> str:
    if isinstance(evict, Count):
        return f"The window holds the last {rows(evict.n)}." if evict.n else "The window holds no row."
    if isinstance(evict, Delta):
        more = times.rise(evict.attribute, evict.amount)
        return f"A row leaves the window when the {evict.attribute} of a later row is {more} its own."
    return f"The window holds the rows of the last {duration(evict.seconds)} on the clock."


def _trigger(trigger: TriggerPolicy, times: Times) -> str:
    match trigger:
        case Count():
            return "It comes out with every row." if trigger.n == 1 else f"It comes out with every {trigger.n:,}th row."
        case Delta():
            name = trigger.attribute
            more = times.rise(name, trigger.amount)
            return f"It comes out before a row whose {name} is {more} that of the row at which it last did."
        case _ if hasattr(trigger, "seconds"):
            return f"It comes out every {duration(trigger.seconds)} of the clock, before the rows of that instant."
        case _:
            return f"It comes out at each row for which {operand_text(trigger.condition)} is true, with that row."


def _time_interval(spec: TimeInterval, options: Options, _: Times) -> list[str]:
    of = f" of {options.event_time}" if options.event_time else " of event time"
    offset = f", {duration(spec.offset)} after the grid" if spec.offset else ""
    found = [f"Windows are the intervals of {duration(spec.duration)}{of}, one every {duration(spec.period)}{offset}."]
    if spec.period < spec.duration:
        found.append("A row is in each window that its time is in.")
    if spec.period > spec.duration:
        found.append("Rows between windows are in none.")
    lag = f", less {duration(options.lag)}" if options.lag else ""
    found.append(f"The watermark is the latest time that any row had so far{lag}.")
    if options.min_gap:
        found.append(f"It moves when it has risen by {duration(options.min_gap)} or more.")
    again = f", and again when rows come up to {duration(spec.discard_age)} late" if spec.discard_age else ""
    return [*found, f"A window comes out when the watermark reaches its end{again}; later rows are rejected."]


def _batched(spec: Batched, _: Options, __: Times) -> list[str]:
    if spec.retain_all:
        return ["The window holds all rows so far, and comes out with every row."]
    by = f" of each {listed(spec.partition_by)}" if spec.partition_by else ""
    last = "" if spec.retain is None else f"the last {rows(spec.retain)}{by}"
    content = last
    if spec.within is not None:
        within = f"the rows of the last {duration(spec.within)} on the clock"
        content = f"{last} among {within}" if last else within
    found = [f"The window holds {content}."]
    if spec.within is not None and spec.every is not None:
        found.append(f"Rows enter and leave only every {duration(Fraction(spec.every))} of the clock.")
    elif spec.every is not None:
        found.append(f"Rows enter in lots of {spec.every:,}{by}.")
    if spec.unique is not None:
        found.append(f"Of rows with the same {spec.unique}, only the newest is visible.")
    return [*found, "It comes out whenever what it holds changes."]


def _table(spec: TableWindows, options: Options, _: Times) -> list[str]:
    side = "after its start, up to its end" if options.closed == "right" else "from its start to before its end"
    which = "that its time is in"
    if options.ends is not None:
        side, which = "that overlap it", f"that it overlaps: it lasts from its time until {options.ends}"
    reaches = "passes" if options.closed == "right" else "reaches"
    found = [f"Each row of the table {spec.name} is a window: it holds the rows of its keys {side}."]
    found.append(f"A row is in each window {which}. A window comes out when the clock {reaches} its end.")
    if options.empty == "row":
        found.append(
            "A window without rows gives a row with count 0: of each key that the table names whole, else between the "
            "first and the last row of a key."
        )
    return found


def _pattern(spec: RowPattern, _: Options, __: Times) -> list[str]:
    rules = [f"{name} is a row for which {condition} is true" for name, condition in spec.conditions]
    if spec.is_funnel:
        steps = "; ".join(
            f"({number}) a row for which {each} is true" for number, (_, each) in enumerate(spec.conditions, 1)
        )
        found = [f"A window holds the rows by which steps are reached, each the first behind the one before: {steps}."]
    else:
        found = [f"A window holds the rows that {spec.pattern} takes: {'; '.join(rules)}."]
        if spec.has_waits:
            found.append("Behind ->, rows by which what follows cannot begin are passed over, and are in no window.")
        found.append("Of the ways to take rows from one row on, earlier choices count more, and more rounds do.")
    if spec.within is not None:
        found.append(f"It holds rows less than {duration(spec.within)} behind its first row.")
    after = "the row behind its first row" if spec.is_overlapping else "the row behind its last row"
    comes = "It comes out when rows that may still come cannot change it"
    return [*found, f"{comes}. The next may begin at {after}. Rows that no window takes are in no result."]


def _around(spec: Around, _: Options, __: Times) -> list[str]:
    begin, end = _beside(-spec.before), _beside(spec.after)
    found = [f"Each left row is a window: it holds the right rows from {begin} until {end}, both inclusive."]
    if spec.prevailing:
        found.append("The newest right row before that is in it, too.")
    return [*found, "It comes out when the clock has passed its end."]


def _beside(seconds: Fraction) -> str:
    """Return an instant beside that of a left row: ``5 s before it``."""
    return f"{duration(abs(seconds))} {'before' if seconds < 0 else 'after'} it" if seconds else "its instant"


def _at(spec: At, _: Options, __: Times) -> list[str]:
    age = "" if spec.within is None else f", at most {duration(spec.within)} before that"
    places = listed([_beside(each) for each in spec.offsets])
    found = f"Each left row is a window: it holds the newest right row as of {places}{age}."
    return [found, "It comes out when the clock has passed the last of these instants."]


def _sides(spec: SideWindows, options: Options, times: Times) -> list[str]:
    found = list[str]()
    for name, side in (("left", spec.left), ("right", spec.right)):
        clauses = [_held(side.evict, times)] if isinstance(side, Sliding) else _batched(side, options, times)[:-1]
        found += [f"On the {name} side {each[0].lower()}{each[1:]}" for each in clauses]
    return [*found, "A row meets the rows that the other side holds; the window is all pairs of rows of both sides."]


UNMATCHED: Final = {
    "inner": "", "left": "A left row without a partner comes out once, with nulls.",
    "right": "A right row without a partner comes out once, with nulls.",
    "full": "A row of either side without a partner comes out once, with nulls.",
    "semi": "Only left rows come out, each with a partner once.",
    "anti": "Only left rows without a partner come out, each once.",
    "union": "No rows are paired: those of both sides are one sequence, and _side says of which side a row is.",
}  # fmt: skip


def _read(join: Join, options: Options) -> Iterator[str]:
    where = "" if join.where is None else f" for which {join.where} is true"
    of = "the input itself" if join.path is None else join.name
    yield f"The left rows are those of the input, the right rows those of {of}{where}."
    first = "left" if join.strict else "right"
    yield f"Rows of both sides are in one order; at the same instant the {first} row is first."
    if options.match is not None:
        yield f"Rows are a pair only if {options.match} is true."
    if UNMATCHED[join.how]:
        yield UNMATCHED[join.how]


def _product(spec: WindowSpec, join: Join) -> Iterator[str]:
    if join.how not in ("union", "semi", "anti") and not isinstance(spec, Around | At | SideWindows):
        yield "The window is all pairs of its left and right rows."


def _eviction(eviction: PartitionEviction | None, options: Options) -> list[str]:
    if eviction is None:
        return []
    amount = decimal_text(eviction.amount)
    when = {
        "partitionAge": f"A key that got no row for more than {duration(eviction.amount)}",
        "partitionCount": f"Of more than {amount} keys with open windows, the one that got a row longest ago",
        "tupleCount": f"When windows hold more than {amount} rows, the key that got a row longest ago",
    }[eviction.kind]
    then = "its open window comes out" if options.emit_evicted else "the rows of its open window are in no result"
    return [f"{when} is evicted, and {then}."]


_KINDS: Final[Mapping[type[Any], Callable[[Any, Options, Times], list[str]]]] = {
    Tumbling: _tumbling,
    Sliding: _sliding,
    TimeInterval: _time_interval,
    Batched: _batched,
    TableWindows: _table,
    RowPattern: _pattern,
    Around: _around,
    At: _at,
    SideWindows: _sides,
}
"""Kind of window to what says its clauses."""


Calls = Sequence[AggregateCall | AggregateExpression]


def sentences_of(
    spec: WindowSpec, key: Sequence[str], calls: Calls | None, options: Options, times: Set[str] = frozenset()
) -> tuple[str, ...]:
    """Return a window in English, one sentence for each clause and each option that changes what comes out.

    ``calls``: the aggregates; None for ``count()``. ``times``: the columns that are times: an amount of these is
    written as a duration.
    """
    known, join = Times(times), options.join
    spec = spec.window if isinstance(spec, Lasting | Joined) else spec
    return (
        *_rows(spec, key, options),
        *(() if join is None else _read(join, options)),
        *_KINDS[type(spec)](spec, options, known),
        *(() if join is None else _product(spec, join)),
        *_grid(spec, options),
        *_gives(spec, calls, options),
        _end(spec, options),
    )


def caution_of(spec: WindowSpec) -> str | None:
    """Return what a user should think of before a run of a window; None: nothing."""
    if not isinstance(spec, RowPattern) or not spec.may_stay_open:
        return None
    return (
        f"a match of {spec.pattern} may stay open for ever, and holds the rows of its key from its first: add within D"
    )


def _rows(spec: WindowSpec, key: Sequence[str], options: Options) -> Iterator[str]:
    for name, expression in options.let:
        yield f"Each row gets {name} = {expression}."
    if options.where is not None:
        yield f"Rows for which {options.where} is not true are left out."
    if (distinct := options.distinct) is not None:
        bounds = [f"{duration(distinct.within)} before"] if distinct.within is not None else []
        bounds += [f"{rows(distinct.count)} of its key before"] if distinct.count is not None else []
        most = f", at most {listed(bounds)}," if bounds else " before"
        yield f"A row with the {listed(distinct.columns)} of one that was let through{most} is left out."
    if key:
        yield f"Each {listed(key)} has windows of its own."
    elif not (isinstance(spec, Batched) and spec.partition_by):
        yield "All rows are one sequence."
    if options.max_ahead is not None:
        yield f"Fewer than 10 rows that are more than {duration(options.max_ahead)} ahead of all others move no clock."


def _grid(spec: WindowSpec, options: Options) -> Iterator[str]:
    if not isinstance(spec, Tumbling) or all(each.stretch is None for each in spec.policy.alternatives):
        return
    if options.closed == "right":
        if options.ends is None:
            yield "A row on a bound is the last of the window that ends there."
        else:
            yield "A row of no length on a bound is in the window that ends there."
    if options.empty != "skip":
        what = "a row with count 0" if options.empty == "row" else "a mark"
        yield f"A window without rows, between the first and the last, gives {what}."


def _gives(spec: WindowSpec, calls: Calls | None, options: Options) -> Iterator[str]:
    each = f" for each group of {listed(options.group_by)}" if options.group_by else ""
    if options.operator is not None:
        yield f"The operator {options.operator} makes the rows of the result."
    elif options.emit == "rows":
        what = "rows" if options.join is None or options.join.how in ("union", "semi", "anti") else "pairs"
        yield f"Each window gives its {what}" + (f", by {listed(options.sort_by)}." if options.sort_by else ".")
    elif options.emit != "aggregates":
        what = "rows" if options.join is None else "pairs"
        yield f"Each change gives the {what} that {options.emit}."
    else:
        texts = [(call.name, call.text if isinstance(call, AggregateCall) else call.expression) for call in calls or ()]
        if calls is None and isinstance(spec, RowPattern) and spec.is_funnel:
            yield f"Each window gives one row{each}: how many steps were reached, and when each of them was."
            return
        given = "count = count()" if calls is None else ", ".join(f"{name} = {text}" for name, text in texts)
        window = "pane" if isinstance(spec, Tumbling) and isinstance(spec.policy, Growing) else "window"
        yield f"Each {window} gives one row{each}: {given}."
    if options.having is not None:
        yield f"Rows of the result for which {options.having} is not true are not written."


def _end(spec: WindowSpec, options: Options) -> str:
    if options.at_end != "flush":
        then = "wait in the state for the next run" if options.at_end == "hold" else "are dropped"
        return f"Windows that are open at the end of the data {then}."
    if isinstance(spec, Tumbling | TableWindows | Lasting | RowPattern | Around | At):
        with_rows = ", if they hold rows" if isinstance(spec, TableWindows) else ""
        return f"Windows that are open at the end of the data come out{with_rows}."
    then = "it comes out once more, if rows came in since it last did"
    if isinstance(spec, SideWindows):
        then = "the rows of both sides leave, in their order"
    elif isinstance(spec, TimeInterval):
        then = "the watermark passes all windows"
    elif isinstance(spec, Batched):
        then = "the clock goes on until it is empty" if spec.within is not None else "nothing more comes out"
        then = then if spec.every is None else "rows that wait to enter do so"
    return f"At the end of the data {then}."
