"""A comparison as text for people, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from ....readers.files.walk import MANIFEST
from ....windowing.columns.row_digest import RowDigest
from ....windowing.columns.row_hashes import hasher_of, type_text
from ....windowing.errors import DamagedError, WincliError
from ....windowing.ports import Counts
from ....windowing.support.amounts import count_of
from ....windowing.support.checksum import CHECKSUM, checksum_of_blocks
from ....windowing.support.file_systems import check_file
from ....windowing.support.redaction import redacted, redacted_path
from ....writers.commit.contract import Table
from ....writers.commit.result_files import damaged_manifest
from ....writers.commit.store_objects import run_of
from ....writers.commit.tables import is_by_version, table_of
from ....writers.places.os_errors import reason
from ....writers.places.place import SUCCESS, Place, is_local
from ....writers.state.layout import is_state
from ....writers.state.stage_files import digest_of
from ....writers.state.state import read_state
from ...console.messages import DATA, OK
from ...console.streams import clean, json_text, say
from ...console.table import is_number
from ...run.units import loss_of
from ..results.result import ResultFolder, open_result_folder, results_at_path
from .changes import Difference, Number, Tally
from .compare import WINDOW, Diff, DiffRequest, UnitDiff, compare, schema_of, without_files

# Check results and window states against what their runs recorded: files, checksums, rows, digests, row accounts.


_OTHER_ROWS = "its rows are not those that were written: their digest is"
_BLOCK = 1 << 23  # bytes: in a store each block is a request


@dataclass(slots=True)
class Verification:
    """What a check has found, as ``verify --json`` prints it.

    ``path``: what was checked, as the user wrote it.
    ``results``, ``files``, ``rows``: how many were checked.
    ``states``: how many units of a state have a window state that was checked.
    ``without_checksums``: how many results have files without a checksum, so that damage to bytes that hold no value is
        not found.
    ``without_digests``: how many results have no digests that could be compared, so that rows were only counted.
    ``damage``: a line for each thing that is not as it was written.
    """

    path: str
    results: int = 0
    files: int = 0
    rows: int = 0
    states: int = 0
    without_checksums: int = 0
    without_digests: int = 0
    damage: list[str] = field(default_factory=list)


def verify(path: str) -> Verification:
    """Check a result, the results of a range, or a state with the outputs of its units; change nothing.

    All damage is collected. Raises `InputError` where the path is none of these.
    """
    found = Verification(path)
    if not is_state(path):
        for each in results_at_path(path):
            _verify_result(each.shown, found)
        return found
    try:
        view = read_state(path)
    except DamagedError as error:
        found.damage.append(str(error.what))
        return found
    found.damage += view.damage
    for record in view.records:
        if record.label in (view.pending, view.running):
            continue
        if view.storage.has_data(record):
            found.states += 1
            for stage in record.stages:  # each file of a window state is read whole
                files = view.storage.files(record, stage.name)
                for part in stage.parts:
                    try:
                        table = files.read_part(part)
                    except DamagedError as error:
                        found.damage.append(error.what)
                        continue
                    if part.digest is not None and (digest := digest_of(table)) != part.digest:
                        found.damage.append(f"{files.shown}/{part.name}: {_OTHER_ROWS} {digest}")
        if loss := loss_of(record.outputs, record.run):
            found.damage.append(f"{record.label}: {loss.text}")
            continue
        for output, digest in zip_longest(record.outputs, record.digests):
            _verify_result(output.path, found, output.shown, digest)
    return found


def _verify_result(path: str, found: Verification, shown: str | None = None, digest: str | None = None) -> None:
    """Check one result: the manifest, the files and their bytes, the account, then the rows, if nothing is damaged.

    ``digest``: that of its rows in the record of its unit; None where there is none.
    Bytes that are not those that were written are not decoded: a decoder may do anything with them.
    """
    table = table_of(path, shown)
    place, manifest = table.place, table.manifest()
    found.results += 1
    if manifest is None:
        name = damaged_manifest(place) or MANIFEST
        found.damage.append(f"{place.shown}/{name}: it is not the manifest that was written there")
        return
    try:
        files = [*manifest["parts"], *manifest["rejects"]]
        damage = [*_damage_of_files(table, manifest), *_changed_files(place, files)]
        damage += _damage_of_account(place, manifest)
        own = manifest.get("digest")  # the first releases wrote none
        if digest not in (None, own):
            damage.append(f"{place.shown}/{MANIFEST}: its digest is {own}, in the record it is {digest}")
        found.files += len(files)
        found.without_checksums += any(part.get(CHECKSUM) is None for part in files)
        found.damage += damage
        if damage:
            return
        try:
            result = open_result_folder(path)
        except WincliError as error:
            found.damage.append(error.what)
            return
        found.damage += [*_damage_of_rows(place, result, found), *_damage_of_rejects(place, manifest["rejects"])]
        found.rows += manifest["rows_out"]
    except (KeyError, TypeError, ValueError, AttributeError):
        found.damage.append(f"{place.shown}/{MANIFEST}: it is no manifest of wincli")


def _damage_of_files(table: Table, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the names and sizes of files; of a table by version the first thing."""
    place = table.place
    if is_by_version(table):
        if (missing := table.missing(manifest)) is not None:
            yield f"{place.shown} {missing}"
        elif gone := {field["name"] for field in manifest["schema"]} - {*table.columns()}:
            yield f"{place.shown}: the table no longer has the column {min(gone)!r}"
        return
    selector = fs.FileSelector(place.path, recursive=True)
    infos = [info for info in place.fs.get_file_info(selector) if info.type == fs.FileType.File]
    there = {info.path.removeprefix(f"{place.path}/"): int(info.size) for info in infos}
    recorded = {part["name"]: int(part["bytes"]) for part in (*manifest["parts"], *manifest["rejects"])}
    expected = {SUCCESS: 0, **recorded} if is_local(place.fs) else recorded  # in a store the manifest alone completes
    for name, nbytes in expected.items():
        if name not in there:
            yield f"{place.shown}/{name}: it is gone"
        elif there[name] != nbytes:
            yield f"{place.shown}/{name}: it has {there[name]:,} bytes, not {nbytes:,}"
    for name in sorted(there.keys() - recorded.keys()):
        is_hidden = any(part.startswith(("_", ".")) for part in name.split("/"))
        if not is_hidden and (is_local(place.fs) or run_of(name) is None):  # a run may not have committed in a store
            yield f"{place.shown}/{name}: no run has written it there"


def _changed_files(place: Place, files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each file whose bytes are not those that were written.

    Files that are gone or have another size are left to `_damage_of_files`.
    """
    for part in files:
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
        if not Counts.of(stage["counts"]).balanced:
            yield f"{file}: the row accounting{f' of stage {name}' if name else ''} does not balance"
    if (rows := sum(part["rows"] for part in manifest["parts"])) != manifest["rows_out"]:
        yield f"{file}: its parts have {rows:,} rows, and rows_out is {manifest['rows_out']:,}"
    here = [stage["counts"]["rejected"] for name, stage in stages if not name or stage["output"] is None]
    expected = sum(sum(reasons.values()) for reasons in here)
    if (rejects := sum(part["rows"] for part in manifest["rejects"])) != expected:
        yield f"{file}: {rejects:,} rows are in the rejects, and {expected:,} were rejected"


def _damage_of_rejects(place: Place, rejects: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield which files of rejects have not as many rows as were written."""
    for part in rejects:
        file, words = f"{place.shown}/{part['name']}", "lines"
        if part["name"].endswith(".parquet"):  # so they were in the first releases
            try:
                with place.fs.open_input_file(f"{place.path}/{part['name']}") as opened:
                    rows, words = pq.read_metadata(opened).num_rows, "rows"
            except (OSError, pa.ArrowException) as error:
                yield f"{file}: it cannot be read ({str(error).partition(chr(10))[0]})"
                continue
        else:
            rows = sum(block.count(b"\n") for block in _blocks(place, part["name"]))
        if rows != part["rows"]:
            yield f"{file}: it has {rows:,} {words}, not {part['rows']:,}"


def _damage_of_rows(place: Place, result: ResultFolder, found: Verification) -> Iterator[str]:
    """Yield how the rows of parts differ from those that were written; without digests rows are only counted."""
    schema, parts = schema_of(result), result.manifest["parts"]
    digests = [RowDigest.parse(part.get("digest")) for part in parts]
    # From CSV a struct is read as text: such files do not give the types of the manifest.
    types = {each["name"]: type_text(each["type"]) for each in result.manifest["schema"]}
    has_types = all(type_text(schema.field(name).type) == kind for name, kind in types.items())
    hasher = hasher_of(schema) if has_types and None not in digests else None
    found.without_digests += hasher is None
    names = [part["name"] for part in parts]
    for part in parts:
        file, rows, digest = f"{place.shown}/{part['name']}", 0, RowDigest()
        only = without_files(result.rows, [name for name in names if name != part["name"]])
        try:
            for table in only.tables(schema.names):
                rows += table.num_rows
                if hasher is not None:
                    digest += hasher.digest(table.cast(schema))
        except (WincliError, OSError, ValueError, pa.ArrowException) as error:
            what = error.what if isinstance(error, WincliError) else str(error).partition("\n")[0]
            yield f"{file}: it cannot be read ({what})"
            continue
        if rows != part["rows"]:
            yield f"{file}: it has {rows:,} rows, not {part['rows']:,}"
        elif hasher is not None and digest != RowDigest.parse(part["digest"]):
            yield f"{file}: {_OTHER_ROWS} {digest}"
    if hasher is not None and sum(filter(None, digests), RowDigest()) != RowDigest.parse(result.manifest["digest"]):
        yield f"{place.shown}/{MANIFEST}: its digest is not the sum of those of its parts"


def verification_text(found: Verification) -> str:
    """Return what was found, as lines for people."""
    many = [(found.results, "result"), (found.files, "file"), (found.rows, "row")]
    many += [(found.states, "window state")] if found.states else []
    words = ", ".join(count_of(count, name) for count, name in many)
    lines = [f"damaged: {each}" for each in found.damage]
    if found.without_checksums:
        results = count_of(found.without_checksums, "result")
        lines.append(
            f"{results} of an older wincli, without checksums: damage to bytes that hold no value is not found"
        )
    if found.without_digests:
        results = count_of(found.without_digests, "result")
        lines.append(f"{results} of an older wincli, or of types without a digest: the rows were only counted")
    outcome = f"{len(found.damage):,} damaged" if found.damage else "all as it was written"
    return "\n".join(clean(line) for line in [*lines, f"{found.path}: {words}: {outcome}"])


_SIGNS = {"only in A": "-", "only in B": "+", "changed": "~"}
SIDES = ("only in A", "only in B")
"""The words for windows that one side alone has."""
_MOST_UNITS = 20


def _outcome(diff: Diff) -> Iterator[str]:
    tally, units = diff.tally, diff.units
    rows_a, rows_b = (sum(unit.rows[side] or 0 for unit in units) for side in (0, 1))
    if diff.differs:
        parts = [f"{tally.changed:,} changed", f"{tally.only_in_a:,} only in A", f"{tally.only_in_b:,} only in B"]
        yield f"{count_of(tally.total, 'window')} differ{'s' if tally.total == 1 else ''}: {', '.join(parts)}"
        yield f"of {count_of(rows_a, 'row')} in A and {rows_b:,} in B"
    elif all(unit.by_digest for unit in units):
        yield f"equal: {count_of(rows_a, 'row')}, as the digests tell; no row was read"
    else:
        yield f"no window differs, of {count_of(rows_a, 'row')} in A and {rows_b:,} in B"
    if tally.renumbered:
        yield renumbered(tally)
    elif not diff.differs and any(unit.has_digests and not unit.by_digest for unit in units):
        yield "the digests differ: mark-only rows or columns that were not compared are others"
    for side, names in (("A", _names(diff, "only_in_a")), ("B", _names(diff, "only_in_b"))):
        if names:
            yield f"columns only in {side}: {', '.join(names)}"
    for name, (one, other) in _retyped(diff).items():
        yield f"column {name} is {one} in A and {other} in B, and was not compared"


def renumbered(tally: Tally, would: str = "") -> str:
    """Say how many windows differ in their number alone. ``would``: before the verb, of an effect."""
    have = "have" if would or tally.renumbered > 1 else "has"
    return f"{count_of(tally.renumbered, 'window')} {would}{have} another number, and no other difference"


def _names(diff: Diff, attribute: str) -> list[str]:
    found = (getattr(unit.columns, attribute) for unit in diff.units if unit.columns is not None)
    return list(dict.fromkeys(name for names in found for name in names))


def _retyped(diff: Diff) -> dict[str, tuple[str, str]]:
    return {name: both for unit in diff.units if unit.columns for name, both in unit.columns.retyped.items()}


def detail_lines(diff: Diff, words: tuple[str, str]) -> list[str]:
    """Return the units that differ, the changes of sums, and the listed windows.

    ``words``: what is said of windows that only the first side has, and of those that only the other has.
    """
    lines, tally = list[str](), diff.tally
    if tally.total and [unit.unit for unit in diff.units] != [""]:
        different = [unit for unit in diff.units if unit.differs]
        lines += ["", *(f"{unit.unit}: {_unit(unit, words)}" for unit in different[:_MOST_UNITS])]
        if more := different[_MOST_UNITS:]:
            lines.append(f"and {count_of(len(more), 'unit')} more, up to {more[-1].unit}")
        if equal := len(diff.units) - len(different):
            lines.append(f"{count_of(equal, 'unit')} {'is' if equal == 1 else 'are'} equal")
    sums = []  # of each column that differs: in how many changed windows, and by how much its sum
    for name in dict.fromkeys([*tally.change, *tally.windows]) if tally.total else ():
        told = [f"differs in {count_of(tally.windows[name], 'window')}"] if name in tally.windows else []
        told += [f"its sum by {_signed(change)}"] if (change := tally.change.get(name)) else []
        sums += [f"{name}: {', '.join(told)}"] if told else []
    lines += ["", *sums] if sums else []
    if diff.listed:
        left = f", the first {len(diff.listed):,} of {tally.total:,}" if tally.total > len(diff.listed) else ""
        by = f" by the change of {', then '.join(diff.sort)}" if diff.sort else ""
        lines += ["", f"windows{by}{left} (- {words[0]}, + {words[1]}, ~ changed)"]
        lines += [_line(each) for each in diff.listed]
    return lines


def _unit(unit: UnitDiff, words: tuple[str, str]) -> str:
    if None in unit.rows:
        side, rows = ("B", unit.rows[1]) if unit.rows[0] is None else ("A", unit.rows[0])
        return f"only {side} has it, with {count_of(rows or 0, 'row')}"
    tally = unit.tally
    return f"{tally.changed:,} changed, {tally.only_in_a:,} {words[0]}, {tally.only_in_b:,} {words[1]}"


def _line(difference: Difference) -> str:
    words = [difference.unit] if difference.unit else []
    words += [f"{name}={_text(value)}" for name, value in _identity(difference)]
    values = []
    for name, (a, b) in difference.values.items():
        if a is None or b is None:
            values.append(f"{name} {_text(b if a is None else a)}")
            continue
        text = f"{name} {_text(a)} -> {_text(b)}"
        if is_number(a.type) and a.is_valid and b.is_valid:
            text += f" ({_signed(b.as_py() - a.as_py())})"
        values.append(text)
    return f"{_SIGNS[difference.kind]} {' '.join(words)}: {', '.join(values)}"


def _identity(difference: Difference) -> list[tuple[str, pa.Scalar]]:
    return [(name, value) for name, value in difference.identity.items() if name != WINDOW or value.is_valid]


def _signed(number: Number) -> str:
    return f"{number:+,.6g}" if isinstance(number, float) else f"{number:+,}"


def _text(value: pa.Scalar | None) -> str:
    if value is None or not value.is_valid:
        return "null"
    return str(value) if not pa.types.is_nested(value.type) else str(value.as_py())


def details_json(diff: Diff) -> dict[str, Any]:
    """Return the units and the listed windows of a comparison as plain JSON values."""
    units = [
        {
            "unit": unit.unit or None,
            "rows_a": unit.rows[0],
            "rows_b": unit.rows[1],
            "by_digest": unit.by_digest,
            **tally_json(unit.tally),
        }
        for unit in diff.units
    ]
    listed = [
        {
            "unit": each.unit or None,
            "kind": each.kind,
            "window": {name: _plain(value) for name, value in _identity(each)},
            "values": {name: {"a": _plain(a), "b": _plain(b)} for name, (a, b) in each.values.items()},
        }
        for each in diff.listed
    ]
    return {"units": units, "sorted_by": list(diff.sort), "listed": listed}


def tally_json(tally: Tally) -> dict[str, Any]:
    """Return counts and changes of sums as plain JSON values."""
    change = {name: float(value) if isinstance(value, Decimal) else value for name, value in tally.change.items()}
    counts = {"changed": tally.changed, "only_in_a": tally.only_in_a, "only_in_b": tally.only_in_b}
    counts["renumbered"] = tally.renumbered
    return {**counts, "changed_by_column": dict(tally.windows), "change_of_sums": change}


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
    if as_json:  # numbers that JSON lacks, times and others are texts
        fields = {
            "a": redacted_path(request.a),
            "b": redacted_path(request.b),
            "differ": found.differs,
            **tally_json(found.tally),
            "columns_only_in_a": _names(found, "only_in_a"),
            "columns_only_in_b": _names(found, "only_in_b"),
            "types": {name: {"a": both[0], "b": both[1]} for name, both in _retyped(found).items()},
            **details_json(found),
        }
        say(json_text(fields, 2))
    else:
        lines = [f"A {request.a}", f"B {request.b}", *_outcome(found), *detail_lines(found, SIDES)]
        say(*map(clean, lines))
    return DIFFERENT if found.differs else OK


def print_verification(path: str, as_json: bool) -> int:
    """Print what is damaged of a result or a state; return the exit code. Raises what `verify` raises."""
    found = verify(path)
    if as_json:
        damage = list(map(redacted, found.damage))
        say(json_text({**asdict(found), "path": redacted_path(found.path), "damage": damage}, 2))
    else:
        say(verification_text(found))
    return DATA if found.damage else OK
