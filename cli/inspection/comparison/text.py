"""A comparison as text for people, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import fs

from ....readers.files.walk import MANIFEST
from ....windowing.columns.row_hashes import RowDigest, RowHasher, hasher_of, type_text
from ....windowing.errors import DamagedError, WincliError, shown
from ....windowing.support.checksum import CHECKSUM, checksum_of_blocks
from ....windowing.support.file_systems import check_file
from ....windowing.support.redaction import redacted, redacted_path
from ....writers.commit.contract import Table
from ....writers.commit.store_objects import run_of
from ....writers.commit.tables import is_by_version, table_of
from ....writers.places.os_errors import reason
from ....writers.places.place import SUCCESS, Place, is_local
from ....writers.state.layout import is_state
from ....writers.state.state import StateView, read_state
from ....writers.state.unit_record import UnitRecord
from ...console.amounts import account_of, count_of
from ...console.messages import DATA, OK
from ...console.streams import json_text, say
from ...console.table import is_number
from ...run.units import loss_of
from ..results.result import ResultFolder, StoredRows, open_result_folder, results_at_path
from .changes import Difference, Number, Tally
from .compare import WINDOW, Diff, DiffRequest, UnitDiff, compare, schema_of, without_files

# Check results and window states against what their runs recorded: files, checksums, rows, digests, row accounts.


_BLOCK = 1 << 23  # bytes: in a store each block is a request


@dataclass(slots=True)
class Verification:
    """What a check has found.

    ``path``: what was checked, as the user wrote it.
    ``results``, ``files``, ``rows``: how many were checked.
    ``states``: how many units of a state have a window state that was checked.
    ``unsummed``: how many results have files without a checksum, so that damage to bytes that hold no value is not
        found.
    ``undigested``: how many results have no digests that could be compared, so that rows were only counted.
    ``damage``: a line for each thing that is not as it was written.
    """

    path: str
    results: int = 0
    files: int = 0
    rows: int = 0
    states: int = 0
    unsummed: int = 0
    undigested: int = 0
    damage: list[str] = field(default_factory=list)


def verify(path: str) -> Verification:
    """Check a result, the results of a range, or a state with the outputs of its units; change nothing.

    All damage is collected. Raises `InputError` where the path is none of these.
    """
    found = Verification(path)
    if is_state(path):
        _verify_state(path, found)
        return found
    for _, folder in results_at_path(path):
        _verify_result(folder, found)
    return found


def _verify_state(path: str, found: Verification) -> None:
    try:
        view = read_state(path)
    except DamagedError as error:
        found.damage.append(str(error.what))
        return
    found.damage += view.damage
    for record in view.records:
        if record.label in (view.pending, view.running):
            continue
        if view.storage.has_data(record):
            found.states += 1
            found.damage += _damage_of_state(view, record)
        if loss := loss_of(record.outputs, record.run):
            found.damage.append(f"{record.label}: {loss.text}")
            continue
        for output in record.outputs:
            _verify_result(output.path, found, output.shown)


def _damage_of_state(view: StateView, record: UnitRecord) -> Iterator[str]:
    """Yield what is wrong with the window state of a unit: each of its files is read whole."""
    for stage in record.stages:
        files = view.storage.files(record, stage.name)
        for part in stage.parts:
            try:
                files.read_part(part)
            except DamagedError as error:
                yield error.what


def _verify_result(path: str, found: Verification, shown: str | None = None) -> None:
    """Check one result: the manifest, the files and their bytes, the account, then the rows, if nothing is damaged.

    Bytes that are not those that were written are not decoded: a decoder may do anything with them.
    """
    table = table_of(path, shown)
    place, manifest = table.place, table.manifest()
    found.results += 1
    if manifest is None:
        found.damage.append(f"{place.shown}/{MANIFEST}: it is not the manifest that was written there")
        return
    try:
        damage = [*_damage_of_table(table, manifest), *_changed_files(place, manifest)]
        damage += _damage_of_account(place, manifest)
        found.files += len(_files_of(manifest))
        found.unsummed += any(part.get(CHECKSUM) is None for part in _files_of(manifest))
        found.damage += damage
        if damage:
            return
        try:
            result = open_result_folder(path)
        except WincliError as error:
            found.damage.append(error.what)
            return
        found.damage += [*_damage_of_rows(place, result, found), *_damage_of_rejects(place, manifest)]
        found.rows += manifest["rows_out"]
    except (KeyError, TypeError, ValueError, AttributeError):
        found.damage.append(f"{place.shown}/{MANIFEST}: it is no manifest of wincli")


def _damage_of_table(table: Table, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the files of a result; of a table by version the first thing."""
    if not is_by_version(table):
        yield from _damage_of_files(table.place, manifest)
    elif (missing := table.missing(manifest)) is not None:
        yield f"{table.place.shown} {missing}"


def _damage_of_files(place: Place, manifest: Mapping[str, Any]) -> Iterator[str]:
    selector = fs.FileSelector(place.path, recursive=True)
    infos = [info for info in place.fs.get_file_info(selector) if info.type == fs.FileType.File]
    there = {info.path.removeprefix(f"{place.path}/"): int(info.size) for info in infos}
    recorded = {part["name"]: int(part["bytes"]) for part in _files_of(manifest)}
    expected = {SUCCESS: 0, **recorded} if is_local(place.fs) else recorded  # in a store the manifest alone completes
    for name, nbytes in expected.items():
        if name not in there:
            yield f"{place.shown}/{name}: it is gone"
        elif there[name] != nbytes:
            yield f"{place.shown}/{name}: it has {there[name]:,} bytes, not {nbytes:,}"
    strays = (
        name
        for name in there
        if name not in recorded
        and not any(part.startswith(("_", ".")) for part in name.split("/"))
        and (is_local(place.fs) or run_of(name) is None)  # in a store, files of a run that has not committed
    )
    yield from (f"{place.shown}/{name}: no run has written it there" for name in sorted(strays))


def _changed_files(place: Place, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield each file whose bytes are not those that were written.

    Files that are gone or have another size are left to `_damage_of_table`.
    """
    for part in _files_of(manifest):
        if part.get(CHECKSUM) is None:  # an older wincli wrote it
            continue
        file = f"{place.shown}/{part['name']}"
        try:
            nbytes, checksum = checksum_of_blocks(_blocks(place, part["name"]))
        except FileNotFoundError:
            continue
        except OSError as error:
            yield f"{file}: it cannot be read ({reason(error)})"
            continue
        if checksum != part[CHECKSUM] and nbytes == part["bytes"]:
            yield f"{file}: its checksum is {checksum}, not {part[CHECKSUM]}"


def _files_of(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*manifest["parts"], *manifest["rejects"]]


def _blocks(place: Place, name: str) -> Iterator[bytes]:
    if is_local(place.fs):
        check_file(f"{place.path}/{name}")
    with place.fs.open_input_stream(f"{place.path}/{name}", compression=None) as file:
        while block := file.read(_BLOCK):
            yield block


def _damage_of_account(place: Place, manifest: Mapping[str, Any]) -> Iterator[str]:
    file = f"{place.shown}/{MANIFEST}"
    stages = [*((stage["name"], stage) for stage in manifest.get("stages") or ()), ("", manifest)]
    for name, stage in stages:
        if not account_of(stage["counts"]).balanced:
            yield f"{file}: the row accounting{f' of stage {name}' if name else ''} does not balance"
    if (rows := sum(part["rows"] for part in manifest["parts"])) != manifest["rows_out"]:
        yield f"{file}: its parts have {rows:,} rows, and rows_out is {manifest['rows_out']:,}"
    here = [stage["counts"]["rejected"] for name, stage in stages if not name or stage["output"] is None]
    expected = sum(sum(reasons.values()) for reasons in here)
    if (rejects := sum(part["rows"] for part in manifest["rejects"])) != expected:
        yield f"{file}: {rejects:,} rows are in the rejects, and {expected:,} were rejected"


def _damage_of_rows(place: Place, result: ResultFolder, found: Verification) -> Iterator[str]:
    schema, parts = schema_of(result), result.manifest["parts"]
    digests = [RowDigest.parse(part.get("digest")) for part in parts]
    hasher = hasher_of(schema) if _has_types(result, schema) and None not in digests else None
    found.undigested += hasher is None
    names = [part["name"] for part in parts]
    for part in parts:
        only = without_files(result.rows, [name for name in names if name != part["name"]])
        yield from _damage_of_part(f"{place.shown}/{part['name']}", part, only, schema, hasher)
    whole = sum(filter(None, digests), RowDigest())
    if hasher is not None and whole != RowDigest.parse(result.manifest["digest"]):
        yield f"{place.shown}/{MANIFEST}: its digest is not the sum of those of its parts"


def _damage_of_part(
    file: str, part: Mapping[str, Any], only: StoredRows, schema: pa.Schema, hasher: RowHasher | None
) -> Iterator[str]:
    """Yield how the rows of a part differ from those that were written. ``hasher``: None: they are only counted."""
    rows, digest = 0, RowDigest()
    try:
        for table in only.tables(schema.names):
            rows += table.num_rows
            if hasher is not None:
                digest += hasher.digest(table.cast(schema))
    except (WincliError, OSError, ValueError, pa.ArrowException) as error:
        what = error.what if isinstance(error, WincliError) else str(error).partition("\n")[0]
        yield f"{file}: it cannot be read ({what})"
        return
    if rows != part["rows"]:
        yield f"{file}: it has {rows:,} rows, not {part['rows']:,}"
    elif hasher is not None and digest != RowDigest.parse(part["digest"]):
        yield f"{file}: its rows are not those that were written: their digest is {digest}"


def _has_types(result: ResultFolder, schema: pa.Schema) -> bool:
    """Whether files give the columns in the types of the manifest; from CSV a struct is read as text."""
    return all(
        type_text(schema.field(each["name"]).type) == type_text(each["type"]) for each in result.manifest["schema"]
    )


def _damage_of_rejects(place: Place, manifest: Mapping[str, Any]) -> Iterator[str]:
    for part in manifest["rejects"]:
        lines = sum(block.count(b"\n") for block in _blocks(place, part["name"]))
        if lines != part["rows"]:
            yield f"{place.shown}/{part['name']}: it has {lines:,} lines, not {part['rows']:,}"


def verification_text(found: Verification) -> str:
    """Return what was found, as lines for people."""
    many = [(found.results, "result"), (found.files, "file"), (found.rows, "row")]
    many += [(found.states, "window state")] if found.states else []
    words = ", ".join(count_of(count, name) for count, name in many)
    lines = [f"damaged: {each}" for each in found.damage]
    if found.unsummed:
        results = count_of(found.unsummed, "result")
        lines.append(
            f"{results} of an older wincli, without checksums: damage to bytes that hold no value is not found"
        )
    if found.undigested:
        results = count_of(found.undigested, "result")
        lines.append(f"{results} of an older wincli, or of types without a digest: the rows were only counted")
    outcome = f"{len(found.damage):,} damaged" if found.damage else "all as it was written"
    return "\n".join(redacted(shown(line)) for line in [*lines, f"{found.path}: {words}: {outcome}"])


def verification_json(found: Verification) -> dict[str, Any]:
    """Return what was found as plain JSON values."""
    return {
        "path": redacted_path(found.path),
        "results": found.results,
        "files": found.files,
        "rows": found.rows,
        "states": found.states,
        "without_checksums": found.unsummed,
        "without_digests": found.undigested,
        "damage": list(map(redacted, found.damage)),
    }


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
    plain_types = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string)
    found = value.as_py() if any(is_type(value.type) for is_type in plain_types) else str(value)
    return str(found) if isinstance(found, float) and not math.isfinite(found) else found


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
