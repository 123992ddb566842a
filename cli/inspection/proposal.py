"""``wincli init``: look at an input, and propose a job for it: the time of its rows, their key and a window."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from ...conf.job import PIPE
from ...readers.options import ReadOptions
from ...readers.time_hints import advise
from ...windowing.errors import ConfigError, InputError, did_you_mean, printable, shown
from ...windowing.language.tokens import column_text
from ...windowing.support.amounts import count_of
from ...windowing.support.redaction import redacted_path
from ..console.messages import OK
from ..console.side_file import SideFile, check_side_files, write_side_file
from ..console.streams import clean, say, terminal_width
from .proposal_times import RowTimes, Sample, find_times, take_sample

# The key of the rows: the column whose values are likely the users, devices or hosts that rows are about.


FILE = "_file"
_ENTITY = re.compile(
    r"user|account|customer|client|member|visitor|device|sensor|meter|machine|vehicle|truck|host|node|server|session|"
    r"symbol|ticker|instrument|station|site|shop|store|thread|^ip$|_ip$|addr|^pid$|_pid$|player|patient|driver|order_?id",
    re.IGNORECASE,
)
_ID = re.compile(r"(?:^|_)id$|[a-z]I[Dd]$|_key$|^key$|uuid", re.IGNORECASE)
_OF_ROWS = re.compile(r"(?:event|line|row|record|log|message|msg|template|type|request|trace|span)_?id$", re.IGNORECASE)
_LEAST_ROWS = 3
"""Rows that a key has on the average at least."""
_LONGEST = 40
"""Letters of a value on the average at most: longer texts are messages."""
_LIKELY = 2


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column that may be the key.

    ``values``: how many values it has in the sample.
    ``is_likely``: whether its name says that its values are things which rows are about.
    """

    name: str
    values: int
    is_likely: bool


def find_keys(sample: Sample, taken: Sequence[str]) -> list[KeyColumn]:
    """Return the columns that may be the key, the most likely first. ``taken``: the columns that give the time."""
    found: list[tuple[int, KeyColumn]] = []
    texts = [sample.rows[f.name] for f in sample.rows.schema if pa.types.is_string(f.type)]
    words = (pc.match_substring_regex(column.slice(0, 1000), "[A-Za-z]{4}") for column in texts)  # others are times
    has_words = any(pc.any(each).as_py() for each in words)
    if len(sample.names) > 1 and not has_words and FILE not in sample.rows.column_names:
        # Several files hold nothing but times and numbers: then each is a series of its own.
        found.append((_LIKELY, KeyColumn(FILE, len(sample.names), is_likely=True)))
    for name in sample.rows.column_names:
        kind, column = sample.rows.schema.field(name).type, sample.rows[name]
        score = _score(name, kind)
        if name in taken or score is None or column.null_count > len(column) // 2:
            continue
        values = pc.count_distinct(column).as_py()
        if not 2 <= values <= max(2, len(column) // _LEAST_ROWS):
            continue
        if not _is_text(kind) or (pc.mean(pc.utf8_length(column.cast(pa.string()))).as_py() or 0.0) <= _LONGEST:
            found.append((score, KeyColumn(name, values, score >= _LIKELY)))
    rows = np.log(sample.rows.num_rows)
    # Of equals that which divides the rows best: best are as many values as the square root of the rows.
    in_turn = sorted(found, key=lambda one: (-one[0], abs(np.log(one[1].values) - rows / 2)))
    return [key for _, key in in_turn]


def _key_codes(sample: Sample, key: Sequence[str]) -> np.ndarray:
    """Return int64 (N,), a number for each row that is the same for rows of one key, and -1 for a null in the key."""
    codes = np.zeros(sample.rows.num_rows, np.int64)
    gone = np.zeros(sample.rows.num_rows, np.bool_)
    for name in key:
        if name == FILE:
            own = sample.file
        else:
            encoded = sample.rows[name].combine_chunks().dictionary_encode()
            own = encoded.indices.fill_null(-1).to_numpy()
            gone |= own < 0
        _, codes = np.unique(codes * (int(own.max(initial=0)) + 2) + own + 1, return_inverse=True)
    return np.where(gone, -1, codes)


def _score(name: str, kind: pa.DataType) -> int | None:
    """Return how much a name and a type speak for a key; None: values of that type are measured, not named."""
    if not (_is_text(kind) or pa.types.is_integer(kind)):
        return None
    if _ENTITY.search(name):
        return 3
    if _ID.search(name):
        return 0 if _OF_ROWS.search(name) else 2
    return 1 if _is_text(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)


# The window: on the clock, of about a dozen rows of a key.


_S = 1_000_000
_MINUTE, _HOUR, _DAY = 60 * _S, 3600 * _S, 86_400 * _S
_GRID: tuple[int, ...] = (
    *(count * 10**power for power in range(6) for count in (1, 2, 5)),
    *(count * _S for count in (1, 5, 10, 30)),
    *(count * _MINUTE for count in (1, 5, 15, 30)),
    *(count * _HOUR for count in (1, 6, 12)),
    *(_DAY, 7 * _DAY),
)
"""Lengths of windows on the clock that may be proposed, in microseconds."""
_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"), (_S, "s"), (1000, "ms"), (1, "us"))
_REGULAR = 0.75
"""The share of distances that are the usual one, from which on rows come at a steady pace."""
_ROWS_IN_A_WINDOW = 12
_TICKS_IN_A_WINDOW = 5
_UNKNOWN = 300 * _S
"""The time between rows, in microseconds, where no key has two of them."""
_MOST_MEASURES = 2
_COUNT = 100


@dataclass(frozen=True, slots=True)
class Proposal:
    """A job for an input.

    ``inputs``: the paths, as the user wrote them.
    ``times``: the time of the rows; None: no column has it.
    ``keys``: what may be the key, the most likely first.
    ``measures``: the columns that are numbers, of which the mean is proposed.
    """

    inputs: tuple[str, ...]
    output: str
    sample: Sample
    times: RowTimes | None
    other_times: tuple[RowTimes, ...]
    key: tuple[str, ...]
    keys: tuple[KeyColumn, ...]
    window: str
    measures: tuple[str, ...]


def propose(inputs: Sequence[str], sample: Sample, time: str | None, key: Sequence[str] | None) -> Proposal:
    """Propose a job for an input.

    ``time``: the column that the user says is the time. ``key``: the columns that the user says are the key; None:
    unsaid. Raises `ConfigError` for a column that is not there, and `InputError` where ``time`` is no time or no row
    has both a time and a key.
    """
    known = sample.rows.column_names
    for name in (*([time] if time else []), *(name for name in key or () if name != FILE)):
        if name not in known:
            raise ConfigError(f"there is no column {name!r}", did_you_mean(name, known))
        if pa.types.is_nested(kind := sample.rows.schema.field(name).type):
            raise ConfigError(f"column {name!r} is {kind}, which holds several values", "name a column with one")
    found = find_times(sample, time)
    if time is not None and not found:
        examples = ", ".join(repr(str(value)) for value in sample.rows[time].slice(0, 3).to_pylist())
        raise InputError(f"column {time!r} is no time: {examples}", "name another column with --time")
    times = found[0] if found else None
    candidates = find_keys(sample, [name for each in found for name in each.inputs])
    chosen = tuple(key) if key is not None else tuple(each.name for each in candidates[:1] if each.is_likely)
    others = tuple({each.column: each for each in found[1:] if times and each.column not in times.inputs}.values())
    window = f"count({_COUNT})" if times is None else f"time({_length(sample, times, chosen)})"
    name = PurePosixPath(inputs[0].rstrip("/")).name.partition(".")[0]
    stem = re.sub(r"\W+", "_", name).strip("_") or "log"
    base = f"{stem}_windows"
    free = (f"{base}_{number}" if number else base for number in range(1000))
    output = next((each for each in free if not os.path.exists(each)), base)  # noqa: PTH110 - no error for a long name
    measures = _measures(sample, times, chosen)
    return Proposal(tuple(inputs), output, sample, times, others, chosen, tuple(candidates), window, measures)


def _length(sample: Sample, times: RowTimes, key: Sequence[str]) -> str:
    """Return the length of windows that hold about a dozen rows of a key, as a window spec has it: ``30m``, ``90s``."""
    codes = _key_codes(sample, key)
    there = times.known & (codes >= 0)
    if not there.any():
        raise InputError("no row has both a time and a key", "name another key with --key")
    if times.is_date:
        return "1d"
    micros, codes, piece = times.micros[there], codes[there], sample.piece[there]
    order = np.lexsort([micros, codes, piece])
    micros, codes, piece = micros[order], codes[order], piece[order]
    between = np.diff(micros)[(np.diff(codes) == 0) & (np.diff(piece) == 0)]
    moving = between[between > 0]
    usual = int(np.median(moving)) if len(moving) else 0
    is_steady = len(moving) > len(between) / 2 and (np.abs(moving - usual) <= usual / 10).mean() >= _REGULAR
    if not is_steady:
        usual = int(between.mean()) if len(between) else _UNKNOWN
    tick = int(np.gcd.reduce(micros))
    wanted = max(1, usual * _ROWS_IN_A_WINDOW, min(tick, _HOUR) * _TICKS_IN_A_WINDOW)
    length = min(_GRID, key=lambda each: abs(np.log(each / wanted)))
    size, unit = next(each for each in _UNITS if length % each[0] == 0)
    return f"{length // size}{unit}"


def _measures(sample: Sample, times: RowTimes | None, key: Sequence[str]) -> tuple[str, ...]:
    """Return columns that are measured: numbers that name nothing, floats first."""
    taken = {*key, *(times.inputs if times else ())}
    found = [field for field in sample.rows.schema if field.name not in taken and _is_measure(field, sample)]
    in_turn = sorted(found, key=lambda field: not pa.types.is_floating(field.type))
    return tuple(field.name for field in in_turn[:_MOST_MEASURES])


def _is_measure(field: pa.Field, sample: Sample) -> bool:
    if pa.types.is_floating(field.type) or pa.types.is_decimal(field.type):
        return True
    names_things = any(pattern.search(field.name) for pattern in (_ENTITY, _ID, _OF_ROWS))  # users, devices, lines
    if not pa.types.is_integer(field.type) or names_things or re.search(r"time|stamp", field.name, re.I):
        return False
    values = sample.rows[field.name].slice(0, 10_000).drop_null().to_numpy()
    return not (len(values) > 1 and bool((np.diff(values.astype(np.float64)) == 1).all()))  # a number of the line


# The job file, with what was seen as comments, and the same for the terminal.


_FEW = 4
_WIDTH = 110
_NAME = "job.yaml"


def init_job(
    paths: Sequence[str],
    options: ReadOptions,
    target: str | None,
    time: str | None,
    key: Sequence[str] | None,
    is_forced: bool,
) -> int:
    """Propose a job for the input ``paths``, and write it to ``target``; None: print it.

    Raises `ConfigError` where a file is there already and ``is_forced`` is not set, or an option does not fit;
    `InputError` where the input cannot be read; `OutputError` where a file cannot be written.
    """
    if PIPE in paths:
        raise ConfigError("init reads an input more than once, and stdin can be read once", "write it to a file first")
    file = None if target is None else SideFile("-o", target, "a job", _NAME, lambda _: is_forced)
    if target is not None and not is_forced and os.path.lexists(target):  # it is replaced only where the user says so
        raise ConfigError(f"{printable(target)} is there already", "name another file with -o, or say --force")
    if target is not None and not target.lower().endswith((".yaml", ".yml")):
        raise ConfigError(f"-o {printable(target)}: a job file is known by its ending", f"name one such as {_NAME}")
    check_side_files([file] if file else [], [("the input", path) for path in paths])
    with tempfile.TemporaryDirectory(prefix="wincli-init-") as heads:
        proposal = propose(paths, take_sample(paths, options, Path(heads)), time, key)
    name = Path(target).name if target is not None else _NAME
    job = "".join(f"{line.rstrip()}\n" for line in _job_lines(proposal, shown(name)))
    if file is None:
        say(job.removesuffix("\n"))
        return OK
    write_side_file(file, job)
    width = min(terminal_width() or _WIDTH, _WIDTH)
    say(clean(f"{proposal.inputs[0]}: {proposal.sample.extent}"))
    for label, sentences in (("time", _time_words(proposal)), ("key", _key_words(proposal))):
        text = clean(" ".join(sentences))
        say(textwrap.fill(text, width, initial_indent=f"{label:8}", subsequent_indent=" " * 8))
    say(clean(f"window  {proposal.window}"))
    say(shown(f"{target} is written; next: wincli plan {target}"))
    return OK


def _job_lines(proposal: Proposal, name: str) -> Iterator[str]:
    options, times = proposal.sample.options, proposal.times
    yield from _comment([f"Windows over {shown(proposal.inputs[0])}, proposed from {proposal.sample.extent}."])
    yield from ("#", f"#   wincli run {name}", "#")
    yield from _comment(["A proposal knows the rows and not what they mean: change what you know better."])
    yield ""
    inputs = list(map(redacted_path, proposal.inputs))
    if inputs != list(proposal.inputs):
        yield from _comment(["Its secrets are left out: keep them in the environment, or write ${NAME} for each."])
    yield from _list_lines("input", inputs)
    yield f"output: {_scalar(proposal.output)}"
    if options.format != "auto":
        yield f"input_format: {options.format}"
    if options.delimiter != ",":
        yield f"delimiter: {_scalar(options.delimiter)}"
    yield ""
    yield from _comment(_time_words(proposal))
    if times is not None:
        yield from _mapping_lines("schema", times.types)
        yield from _mapping_lines("let", {} if times.let is None else {times.column: times.let})
        yield f"order_by: {_scalar(column_text(times.column))}"
    yield ""
    yield from _comment(_key_words(proposal))
    if proposal.key:
        yield from _list_lines("key", [column_text(each) for each in proposal.key])
    yield ""
    if times is not None:
        yield from _comment(["The length of windows is a guess: about a dozen rows of a key."])
    yield f"window: {_scalar(proposal.window)}"
    means = {f"mean_{name}": f"mean({column_text(name)})" for name in proposal.measures}
    yield from _mapping_lines("agg", {"rows": "count()"} | means)


def _time_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the time of the rows."""
    times = proposal.times
    if times is None:
        yield "No column is a time that can be read, so windows count rows as they arrive."
        advice = advise(proposal.sample.source, None, ())
        yield f"But {shown(advice)}." if advice else "If one is, say how to read it with schema, and order_by it."
        return
    known = times.micros[times.known]
    whence = " and ".join(map(shown, times.inputs))
    yield f"The time of a row is {whence}, from {_instant(int(known.min()))} to {_instant(int(known.max()))}."
    if times.others:
        readings = " or ".join(map(shown, times.others[:_FEW]))
        yield f"Its values could also be read as {readings}: change it if that is meant."
    if untimed := len(times.known) - len(known):
        yield f"{count_of(untimed, 'row')} have no time that can be read; a run rejects them."
    if proposal.other_times:
        yield f"Other times: {', '.join(shown(each.column) for each in proposal.other_times[:_FEW])}."


def _key_words(proposal: Proposal) -> Iterator[str]:
    """Yield sentences on the key."""
    known = {each.name: f"{shown(each.name)} ({each.values:,} values)" for each in proposal.keys}
    if proposal.key == (FILE,):
        yield "Each file is a series of its own, so its name is the key: _file."
    elif proposal.key:
        yield f"Each {', '.join(known.get(name, shown(name)) for name in proposal.key)} has windows of its own."
    else:
        yield "No column looks like a key, so all rows are one sequence."
    if others := [words for name, words in known.items() if name not in proposal.key]:
        yield f"Other columns that could be the key: {', '.join(others[:_FEW])}."


def _instant(micros: int) -> str:
    try:
        return (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)).isoformat(" ")
    except OverflowError:
        return f"{micros} us since 1970"


def _comment(sentences: Iterable[str]) -> Iterator[str]:
    text = clean(" ".join(sentences))
    for line in textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"


def _scalar(text: str) -> str:
    """Return a text as a value of YAML, in quotes where it would be something else without."""
    try:
        is_plain = yaml.safe_load(f"- {text}") == [text] and yaml.safe_load(f"a: {text}") == {"a": text}
    except (yaml.YAMLError, ValueError):
        is_plain = False
    return text if is_plain and "\n" not in text and text.isprintable() else json.dumps(text)


def _list_lines(key: str, values: Iterable[str]) -> Iterator[str]:
    texts = [_scalar(value) for value in values]
    if len(texts) == 1:
        yield f"{key}: {texts[0]}"
        return
    yield f"{key}:"
    yield from (f"  - {text}" for text in texts)


def _mapping_lines(key: str, values: Mapping[str, str]) -> Iterator[str]:
    if values:
        yield f"{key}:"
        yield from (f"  {_scalar(name)}: {_scalar(text)}" for name, text in values.items())
