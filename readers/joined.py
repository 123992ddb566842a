"""Both sides of a join as one input: the files of the right before those of the left, with the columns of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..windowing.enrichment.binding import ComparedPair, common_type
from ..windowing.language.joins import LEFT, RIGHT
from ..windowing.language.spec import HIDDEN
from ..windowing.planning.result_schema import MARK
from ..windowing.planning.sides import Sides
from ..windowing.ports import Batch, InputFile, Looks, Source, Split
from ..windowing.support.value_table import share, value_table
from .files.file import Located
from .source import FileSource

_OF_RIGHT = f"{HIDDEN}right."  # before the names of the right, so that no column of the left has its name


@dataclass(frozen=True, slots=True)
class BothSides:
    """A `windowing.ports.Step`: the columns of the one sequence, of files of both sides.

    ``sides``: the join.
    ``has_marks``: whether the right is a result of wincli: rows of it that are marks only are none.
    """

    skips: ClassVar[bool] = False  # a column of one side says nothing of the rows of the other
    looks: ClassVar[Looks] = "all"

    sides: Sides
    has_marks: bool = False

    def schema_after(self, before: pa.Schema) -> pa.Schema:  # noqa: ARG002 - the sides were bound to it
        return self.sides.schema

    def read(self, before: Source, split: Split, columns: Sequence[str], dictionary: Sequence[str]) -> Batch:
        assert isinstance(before, FileSource)
        side, begin = (RIGHT, _OF_RIGHT) if is_right(before, split.file) else (LEFT, "")
        names = [name for name in columns if name not in dictionary]
        own = self.sides.reads(side, columns)
        marks = [MARK] if self.has_marks and side == RIGHT else []
        read = list(dict.fromkeys([*own, *marks]))
        encoded = [name for name in self.sides.reads(side, dictionary) if name not in self.sides.reads(side, names)]
        batch = before.read(split, [begin + name for name in read], [begin + name for name in encoded])
        counted = [*batch.rows.columns, pa.nulls(len(batch.pos))]  # where nothing is read, it says how many there are
        rows = pa.table(counted, names=[*read, HIDDEN])  # "" is the name of a column where a file says so
        found = replace(batch, rows=self.sides.padded(rows, side, columns))
        if not marks:
            return found
        kept = np.asarray(rows.column(MARK).to_numpy() != "only", np.bool_)
        elsewhere = batch.elsewhere + len(kept) - int(kept.sum())
        return replace(found, rows=found.rows.filter(pa.array(kept)), pos=batch.pos[kept], elsewhere=elsewhere)


def is_right(source: FileSource, file: int) -> bool:
    """Whether a file of an input is of the right side of a join. ``file``: its index."""
    return source.kinds[file].stored is not None


def sides_of(source: Source) -> Sides | None:
    """Return the sides of an input; None where it has one."""
    return next((step.sides for step in source.steps if isinstance(step, BothSides)), None)


def left_files(source: FileSource) -> Sequence[InputFile]:
    """Return the files of an input that are not of the right side of a join."""
    if sides_of(source) is None:
        return source.files
    return [file for at, file in enumerate(source.files) if not is_right(source, at)]


def join_sources(left: FileSource, right: FileSource, sides: Sides) -> FileSource:
    """Return both sides, without steps, as one input: the right arrives first, or last where the join is strict."""
    parts = [_as_right(right), left]
    found = _concatenated(parts[::-1] if sides.join.strict else parts, left)
    has_marks = right.stream is not None and MARK in right.stored.names
    return replace(found, rights={**left.rights, sides.join.name: right}, steps=(BothSides(sides, has_marks),))


def _as_right(source: FileSource) -> FileSource:
    def own(found: Mapping[str, Any]) -> dict[str, Any]:
        return {_OF_RIGHT + name: value for name, value in found.items()}

    kinds = tuple(
        replace(kind, of_folders=frozenset(own(dict.fromkeys(kind.of_folders))), stored=_stored(source))
        for kind in source.kinds.distinct
    )
    return replace(
        source,
        stored=pa.schema([field.with_name(_OF_RIGHT + field.name) for field in source.stored]),
        kinds=replace(source.kinds, distinct=kinds),
        constants=own(source.constants),
        text_at=own(source.text_at),
        type_places=own(source.type_places),
    )


def _stored(source: FileSource) -> dict[str, str]:
    return {_OF_RIGHT + name: name for name in source.stored.names}


def _concatenated(sources: Sequence[FileSource], main: FileSource) -> FileSource:
    """Return sources with different columns one after the other; ``main``: that which is a stream, or cut."""
    splits: list[Split] = []
    text_at: dict[str, int] = {}
    constants: dict[str, pa.Array] = {}
    file, whole, files = 0, main.whole, sum(len(source.files) for source in sources)
    for source in sources:
        first, base = len(splits), splits[-1].base + splits[-1].rows if splits else 0
        if source is main and whole is not None:
            whole = replace(whole, index=whole.index + first, file=whole.file + file, base=whole.base + base)
        for split in source.splits:
            splits.append(replace(split, index=split.index + first, file=split.file + file, base=split.base + base))
        text_at |= {name: at + first for name, at in source.text_at.items()}
        for name, values in source.constants.items():
            after = files - file - len(values)
            constants[name] = pa.concat_arrays([pa.nulls(file, values.type), values, pa.nulls(after, values.type)])
        file += len(source.files)
    return replace(
        main,
        stored=pa.schema(chain.from_iterable(source.stored for source in sources)),
        files=value_table(InputFile, chain.from_iterable(source.files for source in sources)),
        splits=value_table(Split, splits),
        kinds=share(chain.from_iterable(source.kinds for source in sources)),
        places=value_table(Located, chain.from_iterable(source.places for source in sources)),
        constants=constants,
        text_at=text_at,
        names=list(chain.from_iterable(source.names for source in sources)),
        skipped=tuple(dict.fromkeys(chain.from_iterable(source.skipped for source in sources))),
        type_places={name: place for source in sources for name, place in source.type_places.items()},
        whole=whole,
    )


def rebound(step: BothSides, stored: pa.Schema) -> BothSides:
    """Return the step over files with other, wider types, or with more columns of the left."""
    sides = step.sides
    named = [(field.name.removeprefix(_OF_RIGHT), field) for field in stored if field.name.startswith(_OF_RIGHT)]
    right = pa.schema([field.with_name(name) for name, field in named])
    left = pa.schema([field for field in stored if not field.name.startswith(_OF_RIGHT)])

    def wider(pair: ComparedPair) -> ComparedPair:
        return replace(pair, type=common_type(left.field(pair.left).type, right.field(pair.right).type) or pair.type)

    keys, orders = (tuple(map(wider, pairs)) for pairs in (sides.keys, sides.orders))
    fields = {field.name: field for field in (*sides.schema, *left)}
    fields |= {name: fields[name].with_type(right.field(own).type) for name, own in sides.of_right.items()}
    fields |= {field.name: field for field in left}
    fields |= {pair.left: fields[pair.left].with_type(pair.type) for pair in (*keys, *orders)}
    schema = pa.schema(fields.values())
    return replace(step, sides=replace(sides, keys=keys, orders=orders, left=left, right=right, schema=schema))
