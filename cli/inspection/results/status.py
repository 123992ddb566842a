"""``wincli status``: units, row counts and damage of a state, of the outputs of a range, or of one result."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ....conf.ranges import Kind, Unit, compact, kind_of, unit_at, unit_of
from ....readers.files.walk import MANIFEST
from ....windowing.errors import shown
from ....windowing.language.joins import LEFT, parse_join
from ....windowing.planning.sides import SIDES
from ....windowing.ports import Counts, InputFile
from ....windowing.support.amounts import count_of, reason_counts
from ....windowing.support.redaction import redacted, redacted_path
from ....writers.commit.result_files import missing_file
from ....writers.places.lock import Owner, is_dead
from ....writers.places.place import Place
from ....writers.state.layout import is_state
from ....writers.state.state import read_state
from ....writers.state.unit_record import StageRecord, UnitRecord
from ...console.messages import Messages
from ...console.row_account import WORDS, are_joined, equation, is_mostly_late, sum_consecutive
from ...console.streams import clean, json_text, say
from ...console.table import side_by_side
from ...run.units import local_loss_of
from .result import ResultFolder, results_at_path

# The status of a folder, read from the unit records of a state or from the manifests of results.


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a state, of a folder of results, or of one result.

    ``path``: the folder, as the user wrote it.
    ``units``: the finished units, oldest first.
    ``gaps``: the units that are missing between the first and the last.
    ``accounts``: stage name to the account of all units together.
    ``unbalanced``: the stages in whose account, or from one unit to the next, rows are missing or too many.
    ``at_work``: the run that holds the lock, None where none does.
    ``to_complete``: the label of the unit whose commit is under way, or was interrupted by a kill.
    ``killed``: the label of the unit that a killed run had begun and not finished.
    ``last_error``: ``when``, ``unit`` and ``message`` of the last error.
    ``lost``: label of each unit of a state whose local outputs are no longer as the unit wrote them, and their loss
        in words.
    ``damage``: a line for each other file that is not as it was written.
    """

    path: str
    what: Literal["state", "range", "result"]
    units: tuple[UnitRecord, ...]
    gaps: tuple[Unit, ...]
    accounts: Mapping[str, Counts]
    unbalanced: frozenset[str] = frozenset()
    at_work: Owner | None = None
    to_complete: str | None = None
    killed: str | None = None
    last_error: Mapping[str, str] | None = None
    lost: Sequence[tuple[str, str]] = ()
    damage: Sequence[str] = ()

    @property
    def last_stages(self) -> tuple[StageRecord, ...]:
        return self.units[-1].stages if self.units else ()


def read_status(path: str, host: str) -> Status:
    """Read the status of a state, of the outputs of a range below ``path``, or of a result; change nothing.

    ``host``: the name of this machine, by which a lock of a dead process is recognised. Raises `InputError` where
    the path is none of these, or is damaged, `ConfigError` for a state of a newer wincli.
    """
    return _of_state(path, host) if is_state(path) else _of_results(path)


def _of_state(path: str, host: str) -> Status:
    view = read_state(path)
    owner = None if view.owner is None or is_dead(view.owner, host) else view.owner
    kind = kind_of(view.records[0].label, view.records[0].ordinal) if view.records else None
    settled = [record for record in view.records if record.label not in (view.pending, view.running)]
    stages = _by_stage(view.records)
    accounts = {name: sum_consecutive(own) for name, own in stages.items()}
    found = [(record.label, local_loss_of(record.outputs, record.run)) for record in settled]
    return Status(
        path,
        "state",
        tuple(view.records),
        _gaps([record.ordinal for record in view.records], kind),
        accounts,
        frozenset(name for name, own in stages.items() if not (accounts[name].balanced and are_joined(own))),
        owner,
        view.pending,
        None if owner else view.running,
        view.last_error,
        tuple((label, loss.text) for label, loss in found if loss),
        view.damage,
    )


def _of_results(path: str) -> Status:
    results = results_at_path(path)
    units = tuple(map(_read_unit, results))
    kind: Kind = results[0].manifest["job"].get("unit", "day")
    dated = [unit_of(unit.label, kind) for unit in units]
    damage = []
    for each in results:
        place = each.file.place
        folder = Place(each.folder, place.fs, each.file.folder.rstrip("/"))
        if missing := missing_file(folder, each.manifest, has_success=place.path.endswith(MANIFEST)):
            damage.append(f"{folder.shown} {missing}; write the result again")
    accounts = {name: sum(own, Counts()) for name, own in _by_stage(units).items()}
    return Status(
        path,
        "result" if results[0].is_single else "range",
        units,
        _gaps([unit.ordinal for unit in dated if unit], kind),
        accounts,
        frozenset(name for name, account in accounts.items() if not account.balanced),
        damage=damage,
    )


def _read_unit(result: ResultFolder) -> UnitRecord:
    try:
        return UnitRecord.of_result(result.label, 0, result.manifest)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise result.no_manifest() from error


def _gaps(ordinals: Sequence[int], kind: Kind | None) -> tuple[Unit, ...]:
    if kind is None or not ordinals:
        return ()
    missing = set(range(min(ordinals), max(ordinals))) - set(ordinals)
    return tuple(unit_at(ordinal, kind) for ordinal in sorted(missing))


def _by_stage(units: Sequence[UnitRecord]) -> dict[str, list[Counts]]:
    found: dict[str, list[Counts]] = {}
    for unit in units:
        for stage in unit.stages:
            found.setdefault(stage.name, []).append(Counts.of(stage.counts))
    return found


def print_status(path: str, as_json: bool, messages: Messages) -> None:
    """Print the status of ``path``, a state or an output, to stdout: a table, or one JSON object.

    Raises `ConfigError` or `InputError` where the path is neither of them, or is damaged.
    """
    status = read_status(path, socket.gethostname())
    messages.detail(f"{path} is {_WHAT[status.what]}", path=path, what=status.what)
    if not as_json:
        say(*map(clean, _lines(status)))
        return
    fields = _as_json(status)
    text = json_text(fields, 2, is_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json_text(fields, 2)
    say(text)


_WHAT = {"state": "a state", "range": "a folder of results", "result": "a result"}


def _as_json(status: Status) -> dict[str, Any]:
    units = [
        {
            "label": unit.label,
            "finished": unit.finished or None,  # a result does not say
            "rows_in": unit.rows_in,
            _OUT[status.what]: unit.out,
            "rejected": unit.rejected,
            "held": unit.held,
            **({"files": _paths(sides)} if (sides := _files_of_sides(unit)) else {}),
            **({"expectations": [dict(each) for each in unit.expectations]} if unit.expectations else {}),
            "stages": [
                {"name": stage.name, **_account_as_json(account, account.balanced)}
                for stage in unit.stages
                for account in [Counts.of(stage.counts)]
            ],
        }
        for unit in status.units
    ]
    return {
        "path": redacted_path(status.path),
        "what": status.what,
        "units": units,
        "gaps": [unit.label for unit in status.gaps],
        "mostly_late": _mostly_late(status),
        "open": [{"stage": stage.name, **asdict(stage.open)} for stage in status.last_stages if stage.open],
        "accounts": [
            {"stage": name, **_account_as_json(account, name not in status.unbalanced)}
            for name, account in status.accounts.items()
        ],
        "at_work": asdict(status.at_work) if status.at_work else None,
        "to_complete": status.to_complete,
        "killed": status.killed,
        "last_error": {key: redacted(text) for key, text in status.last_error.items()} if status.last_error else None,
        "lost": [{"unit": label, "what": what} for label, what in status.lost],
        "damage": list(status.damage),
    }


def _files_of_sides(unit: UnitRecord) -> list[tuple[str, tuple[InputFile, ...]]]:
    """Return the files that a unit has read of its input and of each log that it joins; none where it joins none."""
    joins = (parse_join(stage["join"]) for stage in unit.job.get("stages", ()) if stage.get("join"))
    logs = [(join.name, unit.enrich[join.name]) for join in joins if join.path is not None and join.name in unit.enrich]
    return [(SIDES[LEFT], unit.inputs), *logs] if logs else []


def _paths(sides: Sequence[tuple[str, Sequence[InputFile]]]) -> dict[str, list[str]]:
    return {side: [redacted_path(file.path) for file in files] for side, files in sides}


_OUT = {"state": "windows_out", "range": "rows_out", "result": "rows_out"}


def _account_as_json(account: Counts, balanced: bool) -> dict[str, Any]:
    return {**{name: getattr(account, name) for name in WORDS}, "balanced": balanced}


def _mostly_late(status: Status) -> list[str]:
    counts = ((unit.label, stage.counts) for unit in status.units for stage in unit.stages)
    return list(dict.fromkeys(label for label, each in counts if is_mostly_late(each["rejected"], each["rows_in"])))


def _lines(status: Status) -> list[str]:
    units = status.units
    span = f", {units[0].label}" + (f"..{units[-1].label}" if len(units) > 1 else "") if units else ""
    lines = [f"{status.path}: {count_of(len(units), 'unit')}{span}"] if status.what != "result" else []
    heads = ("unit", WORDS["rows_in"], _OUT[status.what].replace("_", " "), WORDS["held"], WORDS["rejected"])
    sides = [_files_of_sides(unit) for unit in units]
    rows: list[tuple[str, ...]] = [heads + (("files",) if any(sides) else ())]
    for unit, own in zip(units, sides, strict=True):
        counts = [f"{count:,}" for count in (unit.rows_in, unit.out, unit.held)]
        files = [", ".join(f"{len(each):,} {side}" for side, each in own)] if any(sides) else []
        rows.append((shown(unit.label), *counts, shown(reason_counts(unit.rejected)) or "0", *files))
    lines += side_by_side(rows, right=(1, 2, 3)) if units else []
    lines += [f"gaps: {compact(status.gaps)}"] if status.gaps else []
    several = len(status.last_stages) > 1
    for stage in status.last_stages:
        if stage.open and stage.open.windows:
            oldest = f", the oldest from {stage.open.oldest}" if stage.open.oldest else ""
            words = f"{count_of(stage.open.windows, 'window')} of {count_of(stage.open.keys, 'key')}{oldest}"
            lines.append(f"open{f' in stage {stage.name}' if several else ''}: {words}")
    for name, account in status.accounts.items():
        which = f"row accounting of stage {name}" if len(status.accounts) > 1 else "row accounting"
        lines.append(f"{which}: {equation(account)}" + ("; this does not balance" if name in status.unbalanced else ""))
    return [*lines, *_findings(status)]


def _findings(status: Status) -> Iterator[str]:
    """Yield what there is to say of rows, expectations, the run at work, and damage."""
    if late := _mostly_late(status):
        which = "" if status.what == "result" else f" of {_few(late)}"
        what = f"late: more than half of the rows{which} came late, as behind one row from the future"
        yield f"{what}; a run that rejects them names that row in a note"
    for text, found in expectations_of(status).items():
        broken = [label for label, holds in found if not holds]
        words = f"does not hold in {_few(broken)}" if broken else f"holds in {count_of(len(found), 'unit')}"
        yield f"expected: {text} {words}"
    if who := status.at_work:
        yield f"at work: process {who.pid} on {who.host}, started {who.started}"
    if status.to_complete:
        todo = "is being put in place" if status.at_work else "was killed while it was put in place; run again"
        yield f"commit: {status.to_complete} {todo}"
    elif status.killed:
        yield f"killed: {status.killed} was not finished, and nothing of it was written; run it again"
    if error := status.last_error:
        yield f"last error: {error['unit']} at {error['when']}: {error['message']}"
    lots: dict[str, list[str]] = {}
    for label, what in status.lost:
        lots.setdefault(what if not what.endswith(" is gone") else "its output is gone", []).append(label)
    yield from (f"lost: {_few(labels)}: {what}; run it again with --redo" for what, labels in lots.items())
    yield from (f"damaged: {text}" for text in status.damage)


def expectations_of(status: Status) -> dict[str, list[tuple[str, bool]]]:
    """Return each expectation with the units that had it, and whether it holds in these."""
    told: dict[str, list[tuple[str, bool]]] = {}
    for unit in status.units:
        for each in unit.expectations:
            told.setdefault(each["expect"], []).append((unit.label, each["holds"]))
    return told


def _few(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - 3:,} more" if len(labels) > 4 else ""
    return ", ".join(labels[:3] if more else labels) + more
