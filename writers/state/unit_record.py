"""The record of a unit: what one run onto a state was given, what it did, and what it left open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...windowing.errors import ConfigError, DamagedError
from ...windowing.ports import Counts, InputFile, Part
from ...windowing.support.checksum import CHECKSUM, read_object, seal, unseal

FORMAT = 2
"""Goes up when a key of the record changes its meaning. 1 had no checksums."""


@dataclass(frozen=True, slots=True)
class WrittenOutput:
    """An output of a unit: ``shown`` as the user wrote it, ``path`` absolute (or the URI of a store)."""

    shown: str
    path: str


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """What a stage left open: how many ``windows`` of how many ``keys``; ``oldest``: its first order value, as text."""

    windows: int
    keys: int
    oldest: str | None


@dataclass(frozen=True, slots=True)
class StageRecord:
    """What a unit says of one stage of its job.

    ``identity``: what must be the same for another unit to go on from this one. ``registers``: what the engine keeps
    beside the tables. ``counts``: the account of its rows. All three are plain JSON values. ``windows``: how many came
    out. ``parts``: the files of its rows and keys in the state.
    """

    name: str
    identity: Mapping[str, Any]
    registers: Mapping[str, Any]
    counts: Mapping[str, Any]
    windows: int
    parts: tuple[Part, ...]
    open: OpenWindows


@dataclass(frozen=True, slots=True)
class BorrowedRows:
    """Late rows of the unit ``label``, from its ``files``, that an earlier unit has read in their places."""

    label: str
    files: tuple[InputFile, ...]


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """A finished unit. As JSON it has a checksum of itself, and its parts have those of their files.

    ``start`` and ``end``: the half-open range that it covers, as ISO 8601, None for a plain run. ``previous``: the
    label of the unit that it began from, or None. ``stages``: in the order of the job. ``run``: an id that no other
    run has; the manifests of its outputs carry it too. ``started`` and ``finished``: ISO 8601. ``seconds``: per phase.
    ``state``: an id of what it left, the ``run`` that left it first: one that leaves the same again does not change it.
    ``began``: that of what it began from, None for nothing. ``job``: as run. ``lent``: the labels of the units that
    have read its late rows; it has read the rest of its ``inputs``. ``borrowed``: what it has read of later units.
    """

    label: str
    ordinal: int
    start: str | None
    end: str | None
    previous: str | None
    inputs: tuple[InputFile, ...]
    outputs: tuple[WrittenOutput, ...]
    stages: tuple[StageRecord, ...]
    run: str
    started: str
    finished: str
    seconds: Mapping[str, float]
    versions: Mapping[str, str | None]
    state: str
    began: str | None
    job: Mapping[str, Any]
    lent: tuple[str, ...] = ()
    borrowed: tuple[BorrowedRows, ...] = ()

    def to_json(self) -> str:
        """Return the record as readable JSON, its keys always in the same order."""
        return json.dumps(seal({"format": FORMAT, **asdict(self)}), indent=2, ensure_ascii=False) + "\n"

    def parts_of(self, stage: str) -> tuple[Part, ...]:
        """Return the files of a stage in the state."""
        return next(one.parts for one in self.stages if one.name == stage)

    @classmethod
    def from_json(cls, text: str | bytes, shown: str) -> UnitRecord:
        """Read what `to_json` has written; ``shown`` is the file, for messages.

        Raises `ConfigError` for the record of a newer wincli, `DamagedError` for what is no record, or not the one
        that was written. One of format 1 has no checksum: there, only what it lacks is found.
        """
        try:
            value = read_object(text)
            is_sealed, value = CHECKSUM in value, unseal(value)
            format = value.pop("format")
            if format in (1, FORMAT):
                return _record(value, format, is_sealed)
            if not isinstance(format, int):
                raise TypeError("its format is no number")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"{shown} is damaged: it is not the record that was written there"
            raise DamagedError(what, _RESTORE) from error
        raise newer(shown, format, FORMAT)


def newer(shown: str, format: object, known: int) -> ConfigError:
    """Return the error for something of a format that this version does not know."""
    what = f"{shown} was written by a newer wincli: it has format {format}, and this one knows {known}"
    return ConfigError(what, "use that version")


_RESTORE = (
    "restore it; a unit of a range, or the last plain run, may be deleted, folder and all, "
    "and run again with --mode overwrite"
)


def _record(value: dict[str, Any], format: int, is_sealed: bool) -> UnitRecord:
    """Raises what Python raises where something is missing, or is of another type."""
    if is_sealed != (format == FORMAT):
        raise ValueError("its checksum is gone")
    record = _built(value)
    _check_types(record)
    if not is_sealed:
        _check_keys(record)
    return record


def _check_types(record: UnitRecord) -> None:
    parts = [part for stage in record.stages for part in stage.parts]
    texts = (record.label, record.run, record.state, *(part.name for part in parts))
    numbers = (record.ordinal, *(part.rows for part in parts), *(part.nbytes for part in parts))
    maybe = (record.previous, record.began, record.start, record.end)
    is_right = all(isinstance(text, str) for text in texts) and all(type(n) is int for n in numbers)
    if not is_right or not all(text is None or isinstance(text, str) for text in maybe):
        raise TypeError("a value is of another type")


def _check_keys(record: UnitRecord) -> None:
    """Look at what a record without a checksum tells readers later on."""
    for stage in record.stages:
        counts = Counts(**stage.counts)
        numbers = (counts.rows_in, counts.windowed, counts.filtered, counts.dropped_at_end, counts.held, counts.carried)
        if not all(type(n) is int for n in (*numbers, *counts.rejected.values(), stage.windows)):
            raise TypeError("a count is no number")
        if not {"clock", "watermark"} <= stage.registers.keys() or len(stage.counts) != len(asdict(counts)):
            raise KeyError("a register or a count")
    if len(record.job["stages"]) != len(record.stages) or not {"input", "output"} <= record.job.keys():
        raise KeyError("a part of the job")


def _built(value: dict[str, Any]) -> UnitRecord:
    inputs = _files(value.pop("inputs"))
    outputs = tuple(WrittenOutput(**output) for output in value.pop("outputs"))
    stages = tuple(map(_stage, value.pop("stages")))
    lent = tuple(value.pop("lent", ()))
    borrowed = tuple(BorrowedRows(loan["label"], _files(loan["files"])) for loan in value.pop("borrowed", ()))
    return UnitRecord(**value, inputs=inputs, outputs=outputs, stages=stages, lent=lent, borrowed=borrowed)


def _files(value: list[dict[str, Any]]) -> tuple[InputFile, ...]:
    return tuple(InputFile(**file) for file in value)


def _stage(value: dict[str, Any]) -> StageRecord:
    parts = tuple(Part(**part) for part in value.pop("parts"))
    return StageRecord(**value | {"parts": parts, "open": OpenWindows(**value["open"])})
