"""The proposed job as a job file with comments."""

from __future__ import annotations

import datetime as dt
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import yaml

from ....readers.time_hints import advise
from ....windowing.errors import shown
from ....windowing.language.tokens import column_text
from ....windowing.support.redaction import redacted, redacted_path
from ...console.amounts import count_of
from .proposal import FILE, Proposal, SessionGap
from .times import in_words, spec_text, type_word

# What was seen in an input, in sentences: for the comments of the job file and for the terminal.


_FEW = 4
_MOST_COLUMNS = 20


def time_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the time of the rows."""
    times, order = proposal.times, proposal.order
    if times is None or order is None:
        yield "No column is a time that can be read, so windows count rows as they arrive."
        advice = advise(proposal.sample.source, None, ())
        yield f"But {shown(advice)}." if advice else "If one is, say how to read it with schema, and order_by it."
        return
    whence = " and ".join(map(shown, times.inputs))
    yield f"The time of a row is {whence}, from {_instant(order.first)} to {_instant(order.last)}."
    if times.others:
        yield (
            f"Its values could also be read as {' or '.join(map(shown, times.others[:_FEW]))}: "
            "change it if that is meant."
        )
    if order.untimed:
        yield f"{count_of(order.untimed, 'row')} have no time that can be read; a run rejects them."
    if proposal.other_times:
        yield f"Other times: {', '.join(shown(each.column) for each in proposal.other_times[:_FEW])}."


def type_words(proposal: Proposal) -> Iterator[str]:
    """Yield a sentence on the types of the other columns: a run finds them again, over all rows."""
    fields = [field for field in proposal.sample.rows.schema if field.name not in proposal.types]
    named = [f"{shown(field.name)} {_type(field.type)}" for field in fields]
    more = f" and {len(named) - _MOST_COLUMNS} more" if len(named) > _MOST_COLUMNS else ""
    if named:
        other = "other " if proposal.types else ""
        yield f"Types of the {other}columns, as they were found: {', '.join(named[:_MOST_COLUMNS])}{more}."


def _type(kind: pa.DataType) -> str:
    word = type_word(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return str(kind) if word == "string" and not is_text else word


def order_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the order of the rows."""
    order = proposal.order
    if order is None:
        return
    if order.early:
        share = _percent(order.early / proposal.sample.rows.num_rows)
        yield (
            f"Rows are not in order: {count_of(order.early, 'row')} ({share}) are before one that arrived earlier, "
            f"by up to {in_words(order.latest)}. A run sorts them."
        )
    else:
        runs = "" if proposal.sample.is_whole else ", as far as they were looked at"
        yield f"Rows are in order as they arrive{runs}."
    if order.ties:
        yield f"{count_of(order.ties, 'row')} have the time of the row before; these stay in the order of the file."
    if order.repeats:
        yield f"{count_of(order.repeats, 'row')} are the same as one before in all columns."


def key_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the key."""
    if proposal.key:
        known = {each.name: each.values for each in proposal.keys}
        named = [f"{shown(name)} ({known[name]:,} values)" if name in known else shown(name) for name in proposal.key]
        if proposal.key == (FILE,):
            yield "Each file is a series of its own, so its name is the key: _file."
        else:
            yield f"Each {', '.join(named)} has windows of its own."
    else:
        yield "No column looks like a key, so all rows are one sequence."
    others = [f"{shown(each.name)} ({each.values:,} values)" for each in proposal.keys if each.name not in proposal.key]
    if others:
        yield f"Other columns that could be the key: {', '.join(others[:_FEW])}."


def window_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the window, and on holes."""
    gaps, session = proposal.gaps, proposal.session
    if gaps is None:
        return
    if session is not None:
        yield from _session_words(session, proposal)
    elif gaps.usual is not None:
        yield (
            f"Rows come every {in_words(gaps.usual)} ({_percent(gaps.share)} of them), so windows lie on the clock, "
            "and their length is a guess."
        )
        if gaps.holes:
            where = f"the longest is {in_words(gaps.longest)}, from {_instant(gaps.longest_at)}"
            yield f"{count_of(gaps.holes, 'hole')}: nothing came for more than three times as long; {where}."
    else:
        yield (
            "The times between rows show no valley between short and long ones, so there are no sessions: windows lie "
            "on the clock, and their length is a guess."
        )
    if gaps.usual is None and len(gaps.between):
        of_a_key = " of a key" if proposal.key else ""
        yield f"The longest time without a row{of_a_key} is {in_words(gaps.longest)}, from {_instant(gaps.longest_at)}."


def _session_words(session: SessionGap, proposal: Proposal) -> Iterator[str]:
    yield (
        f"A session ends where nothing comes for {in_words(session.micros)}: in the valley between the times inside of "
        f"sessions, most often about {in_words(session.short)}, and between them, about {in_words(session.long)}."
    )
    rows = 0 if proposal.gaps is None else proposal.gaps.rows
    yield (
        f"That makes {count_of(session.sessions, 'session')} of {count_of(rows, 'row')}. With 20 % more "
        f"({spec_text(int(session.micros * 1.2))}) {_percent(session.moved_longer)} of the rows would move to another "
        f"session, with 20 % less ({spec_text(int(session.micros * 0.8))}) {_percent(session.moved_shorter)}."
    )


def _percent(share: float) -> str:
    percent = share * 100
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.2g} %"


def _instant(micros: int) -> str:
    try:
        return (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)).isoformat(" ")
    except OverflowError:
        return f"{micros} us since 1970"


_WIDTH = 110


def job_text(proposal: Proposal, name: str) -> str:
    """Return the job file. ``name``: the name of the file, for the commands in its first lines."""
    return "\n".join(line.rstrip() for line in _lines(proposal, shown(name))) + "\n"


def _lines(proposal: Proposal, name: str) -> Iterator[str]:
    yield from _head_lines(proposal, name)
    yield ""
    yield from _place_lines(proposal)
    yield ""
    yield from _time_lines(proposal)
    yield ""
    yield from comment(key_words(proposal))
    if proposal.key:
        yield from _list_lines("key", [column_text(each) for each in proposal.key])
    yield ""
    yield from comment(window_words(proposal))
    yield f"window: {scalar(proposal.window)}"
    yield "agg:"
    yield from (f"  {scalar(each)}: {scalar(call)}" for each, call in aggregates(proposal).items())


def _head_lines(proposal: Proposal, name: str) -> Iterator[str]:
    what = "Sessions" if proposal.is_session else "Windows"
    yield from comment([f"{what} over {shown(proposal.inputs[0])}, proposed from {proposal.sample.extent}."])
    yield "#"
    yield f"#   wincli test {name}"
    yield f"#   wincli run {name}"
    yield "#"
    yield from comment(["A proposal knows the rows and not what they mean: change what you know better."])


def _place_lines(proposal: Proposal) -> Iterator[str]:
    options = proposal.sample.options
    inputs = list(map(redacted_path, proposal.inputs))
    if inputs != list(proposal.inputs):
        yield from comment(["Its secrets are left out: keep them in the environment, or write ${NAME} for each."])
    yield from _list_lines("input", inputs)
    yield f"output: {scalar(proposal.output)}"
    if options.format != "auto":
        yield f"input_format: {options.format}"
    if options.delimiter != ",":
        yield f"delimiter: {scalar(options.delimiter)}"


def _time_lines(proposal: Proposal) -> Iterator[str]:
    times = proposal.times
    yield from comment(time_words(proposal))
    yield from _mapping_lines("schema", proposal.types)
    yield from comment(type_words(proposal))
    if times is None:
        return
    if times.let is not None:
        yield from _mapping_lines("let", {times.column: times.let})
    yield from comment(order_words(proposal))
    yield f"order_by: {scalar(column_text(times.column))}"


def aggregates(proposal: Proposal) -> dict[str, str]:
    """Return the aggregates of the job by name: a count, and the mean of each measure."""
    return {"rows": "count()"} | {f"mean_{name}": f"mean({column_text(name)})" for name in proposal.measures}


def comment(sentences: Iterable[str]) -> Iterator[str]:
    """Yield sentences as lines of a comment."""
    for line in textwrap.wrap(
        redacted(shown(" ".join(sentences))), _WIDTH, break_long_words=False, break_on_hyphens=False
    ):
        yield f"# {line}"


def scalar(text: str) -> str:
    """Return a text as a value of YAML, in quotes where it would be something else without."""
    try:
        is_plain = yaml.safe_load(f"- {text}") == [text] and yaml.safe_load(f"a: {text}") == {"a": text}
    except (yaml.YAMLError, ValueError):
        is_plain = False
    return text if is_plain and "\n" not in text and text.isprintable() else json.dumps(text)


def _list_lines(key: str, values: Iterable[str]) -> Iterator[str]:
    texts = [scalar(value) for value in values]
    if len(texts) == 1:
        yield f"{key}: {texts[0]}"
        return
    yield f"{key}:"
    yield from (f"  - {text}" for text in texts)


def _mapping_lines(key: str, values: Mapping[str, str]) -> Iterator[str]:
    if values:
        yield f"{key}:"
        yield from (f"  {scalar(name)}: {scalar(text)}" for name, text in values.items())
