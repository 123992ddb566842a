"""A comparison as text for people, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ....windowing.errors import shown
from ....windowing.support.redaction import redacted, redacted_path
from ...console.amounts import count_of
from ...console.messages import DATA, OK
from ...console.streams import json_text, say
from ...console.table import is_number
from .changes import Difference, Number, Tally
from .compare import WINDOW, Diff, DiffRequest, UnitDiff, compare
from .verification import verification_json, verification_text, verify

_SIGNS = {"only in A": "-", "only in B": "+", "changed": "~"}
SIDES = ("only in A", "only in B")
"""The words for windows that one side alone has."""
_MOST_UNITS = 20


def diff_text(diff: Diff) -> str:
    """Return what differs in lines: what the sides are, counts, changes of sums, and the listed windows."""
    lines = [f"A {diff.request.a}", f"B {diff.request.b}", *_outcome(diff), *_columns(diff)]
    return "\n".join(redacted(shown(line)) for line in [*lines, *detail_lines(diff, SIDES)])


def detail_lines(diff: Diff, words: tuple[str, str]) -> list[str]:
    """Return the units that differ, the changes of sums, and the listed windows.

    ``words``: what is said of windows that only the first side has, and of those that only the other has.
    """
    lines = _units(diff, words) + _sums(diff.tally) if diff.tally.total else []
    if diff.listed:
        left = diff.tally.total - len(diff.listed)
        more = f", the first {len(diff.listed):,} of {diff.tally.total:,}" if left else ""
        by = f" by the change of {', then '.join(diff.sort)}" if diff.sort else ""
        lines += ["", f"windows{by}{more} (- {words[0]}, + {words[1]}, ~ changed)"]
        lines += [_line(each) for each in diff.listed]
    return lines


def _outcome(diff: Diff) -> Iterator[str]:
    tally, units = diff.tally, diff.units
    windows = [
        sum(each or 0 for each in side) for side in zip(*((u.windows_a, u.windows_b) for u in units), strict=True)
    ]
    if not diff.differs:
        if all(unit.by_digest for unit in units):
            yield f"equal: {count_of(windows[0], 'row')}, as the digests tell; no row was read"
        else:
            yield f"no window differs, of {count_of(windows[0], 'row')} in A and {windows[1]:,} in B"
        if tally.renumbered:
            yield renumbered(tally)
        elif any(unit.has_digests and not unit.by_digest for unit in units):
            yield "the digests differ: mark-only rows or columns that were not compared are others"
        return
    parts = [f"{tally.changed:,} changed", f"{tally.only_in_a:,} only in A", f"{tally.only_in_b:,} only in B"]
    yield f"{count_of(tally.total, 'window')} differ{'s' if tally.total == 1 else ''}: {', '.join(parts)}"
    yield f"of {count_of(windows[0], 'row')} in A and {windows[1]:,} in B"
    if tally.renumbered:
        yield renumbered(tally)


def renumbered(tally: Tally, would: str = "") -> str:
    """Say how many windows differ in their number alone. ``would``: before the verb, of an effect."""
    have = "have" if would or tally.renumbered > 1 else "has"
    return f"{count_of(tally.renumbered, 'window')} {would}{have} another number, and no other difference"


def _columns(diff: Diff) -> Iterator[str]:
    for side, names in (("A", _names(diff, "only_in_a")), ("B", _names(diff, "only_in_b"))):
        if names:
            yield f"columns only in {side}: {', '.join(names)}"
    for name, (one, other) in _retyped(diff).items():
        yield f"column {name} is {one} in A and {other} in B, and was not compared"


def _names(diff: Diff, attribute: str) -> list[str]:
    found = (getattr(unit.columns, attribute) for unit in diff.units if unit.columns is not None)
    return list(dict.fromkeys(name for names in found for name in names))


def _retyped(diff: Diff) -> dict[str, tuple[str, str]]:
    return {name: both for unit in diff.units if unit.columns for name, both in unit.columns.retyped.items()}


def _units(diff: Diff, words: tuple[str, str]) -> list[str]:
    if [unit.unit for unit in diff.units] == [""]:
        return []
    different = [unit for unit in diff.units if unit.differs]
    lines = ["", *(f"{unit.unit}: {_unit(unit, words)}" for unit in different[:_MOST_UNITS])]
    if more := different[_MOST_UNITS:]:
        lines.append(f"and {count_of(len(more), 'unit')} more, up to {more[-1].unit}")
    equal = len(diff.units) - len(different)
    return [*lines, f"{count_of(equal, 'unit')} {'is' if equal == 1 else 'are'} equal"] if equal else lines


def _unit(unit: UnitDiff, words: tuple[str, str]) -> str:
    if unit.windows_a is None or unit.windows_b is None:
        side, rows = ("B", unit.windows_b) if unit.windows_a is None else ("A", unit.windows_a)
        return f"only {side} has it, with {count_of(rows or 0, 'row')}"
    tally = unit.tally
    return f"{tally.changed:,} changed, {tally.only_in_a:,} {words[0]}, {tally.only_in_b:,} {words[1]}"


def _sums(tally: Tally) -> list[str]:
    """Return a line for each column that differs: in how many changed windows, and by how much its sum."""
    lines = []
    for name in dict.fromkeys([*tally.change, *tally.windows]):
        words = [f"differs in {count_of(tally.windows[name], 'window')}"] if name in tally.windows else []
        words += [f"its sum by {_signed(change)}"] if (change := tally.change.get(name)) else []
        lines += [f"{name}: {', '.join(words)}"] if words else []
    return ["", *lines] if lines else []


def _line(difference: Difference) -> str:
    identity = [f"{name}={_text(value)}" for name, value in _identity(difference)]
    unit = [difference.unit] if difference.unit else []
    values = [_change(name, *both) for name, both in difference.values.items()]
    return f"{_SIGNS[difference.kind]} {' '.join([*unit, *identity])}: {', '.join(values)}"


def _identity(difference: Difference) -> list[tuple[str, pa.Scalar]]:
    return [(name, value) for name, value in difference.identity.items() if name != WINDOW or value.is_valid]


def _change(name: str, a: pa.Scalar | None, b: pa.Scalar | None) -> str:
    if a is None or b is None:
        return f"{name} {_text(b if a is None else a)}"
    text = f"{name} {_text(a)} -> {_text(b)}"
    if is_number(a.type) and a.is_valid and b.is_valid:
        text += f" ({_signed(b.as_py() - a.as_py())})"
    return text


def _signed(number: Number) -> str:
    return f"{number:+,.6g}" if isinstance(number, float) else f"{number:+,}"


def _text(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "null"
    return str(value) if not pa.types.is_nested(value.type) else str(value.as_py())


def diff_json(diff: Diff) -> dict[str, Any]:
    """Return a comparison as plain JSON values; numbers that JSON lacks, times and others as texts."""
    return {
        "a": redacted_path(diff.request.a),
        "b": redacted_path(diff.request.b),
        "differ": diff.differs,
        **tally_json(diff.tally),
        "columns_only_in_a": _names(diff, "only_in_a"),
        "columns_only_in_b": _names(diff, "only_in_b"),
        "types": {name: {"a": both[0], "b": both[1]} for name, both in _retyped(diff).items()},
        **details_json(diff),
    }


def details_json(diff: Diff) -> dict[str, Any]:
    """Return the units and the listed windows of a comparison as plain JSON values."""
    units = [
        {
            "unit": unit.unit or None,
            "rows_a": unit.windows_a,
            "rows_b": unit.windows_b,
            "by_digest": unit.by_digest,
            **tally_json(unit.tally),
        }
        for unit in diff.units
    ]
    return {"units": units, "sorted_by": list(diff.sort), "listed": [_listed(each) for each in diff.listed]}


def tally_json(tally: Tally) -> dict[str, Any]:
    """Return counts and changes of sums as plain JSON values."""
    change = {name: float(value) if isinstance(value, Decimal) else value for name, value in tally.change.items()}
    counts = {"changed": tally.changed, "only_in_a": tally.only_in_a, "only_in_b": tally.only_in_b}
    counts["renumbered"] = tally.renumbered
    return {**counts, "changed_by_column": dict(tally.windows), "change_of_sums": change}


def _listed(difference: Difference) -> dict[str, Any]:
    return {
        "unit": difference.unit or None,
        "kind": difference.kind,
        "window": {name: _plain(value) for name, value in _identity(difference)},
        "values": {name: {"a": _plain(a), "b": _plain(b)} for name, (a, b) in difference.values.items()},
    }


def _plain(value: pa.Scalar | None) -> Any:
    if value is None or not value.is_valid:
        return None
    found = value.as_py() if _is_plain(value.type) else str(value)
    return str(found) if isinstance(found, float) and not math.isfinite(found) else found


def _is_plain(kind: pa.DataType) -> bool:
    is_plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string)
    return any(each(kind) for each in is_plain)


# ``wincli diff`` and ``wincli verify``: from their options to stdout and an exit code.


DIFFERENT = 1
"""The exit code for results that differ, as that of ``diff`` and ``cmp``."""


def print_diff(request: DiffRequest, as_json: bool) -> int:
    """Print how two results differ; return the exit code. Raises what `compare` raises."""
    found = compare(request)
    say(json_text(diff_json(found), 2) if as_json else diff_text(found))
    return DIFFERENT if found.differs else OK


def print_verification(path: str, as_json: bool) -> int:
    """Print what is damaged of a result or a state; return the exit code. Raises what `verify` raises."""
    found = verify(path)
    say(json_text(verification_json(found), 2) if as_json else verification_text(found))
    return DATA if found.damage else OK
