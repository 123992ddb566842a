"""Parse CSV records to columns of given types, and find the rows that do not fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from ..schema.infer import infer
from ..schema.kinds import DATE, FLOAT, INT, STAMP, TEXT, ZONED, Kind
from ..schema.types import ColumnType, is_text
from ..text.csv_fields import csv_fields
from ..text.json_lines import is_utf8
from ..text.record_bounds import Dialect, tally
from ..values.casts import convert
from ..values.text_casts import caster
from .split_rows import TypeErrors

_TRUE = ["true", "True", "TRUE"]
_FALSE = ["false", "False", "FALSE"]
_MAX_BLOCK = 2**31 - 1
_HEAD = 64 << 10
_SMALL = 256 << 10  # bytes: so little is read sooner than the parser has begun
_KINDS = ((pa.string(), TEXT), (pa.float64(), INT | FLOAT), (pa.int64(), INT), (pa.date32(), DATE))


def parse_csv(
    data: bytes,
    dialect: Dialect,
    names: Sequence[str],
    types: Mapping[str, pa.DataType],
    only: Sequence[str],
    *,
    quoted_nulls: bool = False,
) -> pa.Table:
    """Parse records that all have as many fields as ``names``.

    ``types``: the types by column; other types are inferred. ``only``: the columns to return. An empty field is null; a
    quoted empty field is an empty text, or with ``quoted_nulls`` also null.
    Raises `pa.ArrowInvalid` where a value does not fit its type.
    """
    if not data:
        return pa.table({name: pa.array([], types.get(name, pa.null())) for name in only})
    bools = ([], []) if quoted_nulls else (["1"], ["0"])  # inference must not take 0 and 1 for booleans
    return pcsv.read_csv(
        pa.BufferReader(data),
        pcsv.ReadOptions(use_threads=False, column_names=list(names), block_size=min(len(data) + 1, _MAX_BLOCK)),
        pcsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=dialect.multiline),
        pcsv.ConvertOptions(
            column_types={name: types[name] for name in only if name in types},
            include_columns=list(only),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=quoted_nulls,
            true_values=_TRUE + bools[0],
            false_values=_FALSE + bools[1],
        ),
    )


def infer_csv(data: bytes, dialect: Dialect, names: Sequence[str], wanted: Sequence[str]) -> dict[str, Kind]:
    """Return the kinds of the ``wanted`` columns of a buffer; quoted empty fields count as nulls."""
    beginning = data[: tally(data[:_HEAD].removesuffix(b"\r"), dialect, 0).whole] if len(data) > _HEAD else b""

    def parse(
        types: Mapping[str, pa.DataType], *, others: bool = True, drop: Collection[str] = (), head: bool = False
    ) -> pa.Table:
        only = [name for name in wanted if name not in drop and (others or name in types)]
        text = (beginning or data) if head else data
        return parse_csv(text, dialect, names, types, only, quoted_nulls=True) if only else pa.table({})

    kinds = infer(parse)
    whole = [name for name, kind in kinds.items() if kind == INT]
    if whole and (b"0x" in data or b"0X" in data):  # the parser reads 0x1F as an integer, but not next to 1.5
        texts = parse(dict.fromkeys(whole, pa.string()), others=False)
        for name in whole:
            if pc.any(pc.match_substring_regex(texts[name], "^[ \t]*-?0[xX]")).as_py():
                kinds[name] = TEXT
    return kinds


def read_typed(
    data: bytes, dialect: Dialect, names: Sequence[str], want: Mapping[str, ColumnType]
) -> tuple[pa.Table, list[TypeErrors]]:
    """Parse to exactly the wanted types; a value that does not fit is null in the table and a type error."""
    if not want:
        return pa.table({}), []
    plain = _plain(data, dialect, names, want) if len(data) <= _SMALL and not dialect.multiline else None
    if plain is not None:
        return plain, []
    try:
        raw = _quick(data, dialect, names, want)
    except pa.ArrowInvalid:
        raw = _texts(data, dialect, names, want)
    columns, type_errors = {}, []
    for name, kind in want.items():
        column = raw[name]
        if pa.types.is_string(column.type) and not is_text(kind.type):
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        columns[name], mask = convert(column, kind)
        if mask is not None:
            type_errors.append(TypeErrors(name, kind, column, mask))
    return pa.table(columns), type_errors


def _plain(data: bytes, dialect: Dialect, names: Sequence[str], want: Mapping[str, ColumnType]) -> pa.Table | None:
    """Read plain records without a parser; None where one is not plain, or a value might not fit its type."""
    allowed = {name: _kinds_of(kind) for name, kind in want.items()}
    if not all(allowed.values()):
        return None
    fields = csv_fields(data, dialect.delimiter, names, {name: kinds & TEXT for name, kinds in allowed.items()})
    if fields is None or (fields.kinds & ~np.array([*allowed.values()])).any() or not is_utf8(data):
        return None
    return pa.table({name: pc.cast(fields.texts(data, name), kind.type) for name, kind in want.items()})


def _kinds_of(kind: ColumnType) -> int:
    """Return the kinds of the texts that Arrow casts to a type as its parser reads them; 0 where that is not sure."""
    if kind.format is None:
        if pa.types.is_timestamp(kind.type) and kind.type.unit in ("us", "ns"):
            return STAMP | DATE if kind.type.tz is None else ZONED
        return next((kinds for known, kinds in _KINDS if kind.type == known), 0)
    return 0


def _quick(data: bytes, dialect: Dialect, names: Sequence[str], want: Mapping[str, ColumnType]) -> pa.Table:
    """Parse directly to the types; on failure try again with quoted empty fields as null where the type is not text.

    Raises `pa.ArrowInvalid` where that fails, too.
    """
    types = {name: _parse_as(kind) for name, kind in want.items()}
    try:
        return parse_csv(data, dialect, names, types, list(want))
    except pa.ArrowInvalid:
        texts = [name for name, kind in types.items() if pa.types.is_string(kind)]
        others = [name for name in types if name not in texts]
        if not others or b'""' not in data:
            raise
        table = parse_csv(data, dialect, names, types, others, quoted_nulls=True)
        if texts:
            strings = parse_csv(data, dialect, names, types, texts)
            table = pa.table({name: (strings if name in texts else table)[name] for name in want})
        return table


def _parse_as(kind: ColumnType) -> pa.DataType:
    """Return the type that the parser gets: text where it does not know the wanted type or format."""
    if kind.format is not None or caster(kind.type) is not None:
        return pa.string()
    return kind.type


def _texts(data: bytes, dialect: Dialect, names: Sequence[str], want: Mapping[str, ColumnType]) -> pa.Table:
    """Parse the columns as text, or as bytes where they are not UTF-8."""
    columns = {}
    for name in want:
        try:
            columns[name] = parse_csv(data, dialect, names, {name: pa.string()}, [name])[name]
        except pa.ArrowInvalid:
            columns[name] = parse_csv(data, dialect, names, {name: pa.binary()}, [name])[name]
    return pa.table(columns)
