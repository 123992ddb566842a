"""Kinds: what inference knows about the values of a text column, as a set of bits.

Each value has its own bits, a column has the union over its values, and the column type follows from the union alone.
So the type cannot depend on how the input is divided into splits. Nested JSON values have an Arrow type instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...windowing.support.column_types import common_type, plain

NOTHING = 0  # only nulls
INT = 1
FLOAT = 2
BOOL = 4
DATE = 8
STAMP = 16
STAMP_NS = 32  # a timestamp with digits below the microsecond
STAMP_FAR = 64  # a timestamp outside the years that 64 bits of nanoseconds reach
ZONED = 128
ZONED_NS = 256
ZONED_FAR = 512
TEXT = 1024
DATE_FAR = 2048

Kind: TypeAlias = "int | pa.DataType"

_NUMBERS = INT | FLOAT
_DATES = DATE | DATE_FAR
_STAMPS = _DATES | STAMP | STAMP_NS | STAMP_FAR
_ZONES = ZONED | ZONED_NS | ZONED_FAR
_NS_FROM, _NS_TO = -(2**63) // 1000 + 1, (2**63 - 1) // 1000 - 1


def join(a: Kind, b: Kind) -> Kind:
    """Return the kind of a column with the values of both; commutative and associative, `NOTHING` is neutral."""
    if isinstance(a, int) and isinstance(b, int):
        return a | b
    if isinstance(a, int) or isinstance(b, int):
        return b if a == NOTHING else a if b == NOTHING else TEXT
    wide = common_type(a, b)
    return TEXT if wide is None else wide  # not ``wide or TEXT``: an empty struct type is falsy


def type_of(kind: Kind) -> pa.DataType:
    """Return the narrowest type that holds every value of a kind."""
    if not isinstance(kind, int):
        return kind
    for group, narrow in ((NOTHING, pa.null()), (INT, pa.int64()), (_NUMBERS, pa.float64()), (BOOL, pa.bool_())):
        if kind | group == group:
            return narrow
    if kind | _DATES == _DATES:
        return pa.date32()
    if kind | _STAMPS == _STAMPS:
        return _stamp(kind, STAMP_NS, STAMP_FAR | DATE_FAR, None)
    if kind | _ZONES == _ZONES:
        return _stamp(kind, ZONED_NS, ZONED_FAR, "UTC")
    return pa.string()


def _stamp(kind: int, ns: int, far: int, zone: str | None) -> pa.DataType:
    if kind & ns:
        return pa.string() if kind & far else pa.timestamp("ns", zone)
    return pa.timestamp("us", zone)


def kind_of(kind: pa.DataType) -> Kind | None:
    """Return the kind of a type that a parser has inferred, None where it depends on the texts."""
    if pa.types.is_null(kind):
        return NOTHING
    if pa.types.is_integer(kind):
        return INT
    if pa.types.is_floating(kind):
        return FLOAT
    if pa.types.is_boolean(kind):
        return BOOL
    if pa.types.is_nested(kind):
        return _without_stamps(plain(kind))
    return TEXT if pa.types.is_binary(kind) else None


def _without_stamps(kind: pa.DataType) -> pa.DataType:
    """Return a nested type with strings for timestamps: the parser infers them from single values that look so."""
    if pa.types.is_list(kind):
        return pa.list_(_without_stamps(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _without_stamps(f.type)) for f in kind])
    return pa.string() if pa.types.is_timestamp(kind) else kind


def kind_of_texts(column: pa.ChunkedArray) -> int:
    """Return the kind of text values: dates, timestamps (ISO 8601) with or without a zone, else `TEXT`."""
    known = column.drop_null()
    if len(known) == 0:
        return NOTHING
    if _cast(known, pa.date32()) is not None:
        return DATE | (DATE_FAR if _is_far(pc.cast(known, pa.timestamp("us"))) else 0)
    for zone, near, ns, far in ((None, STAMP, STAMP_NS, STAMP_FAR), ("UTC", ZONED, ZONED_NS, ZONED_FAR)):
        stamps = _cast(known, pa.timestamp("us", zone))
        if stamps is not None:
            return near | (far if _is_far(stamps) else 0)
        if _cast(known, pa.timestamp("ns", zone)) is not None:
            return ns
    return TEXT


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        pc.cast(column[:1], kind)  # a failing cast of the whole column is slow, and the first value often fails, too
        return pc.cast(column, kind)
    except pa.ArrowInvalid:
        return None


def _is_far(stamps: pa.ChunkedArray) -> bool:
    bounds = pc.min_max(pc.cast(stamps, pa.int64()))
    return bool(bounds["min"].as_py() < _NS_FROM or bounds["max"].as_py() > _NS_TO)


# Infer the kinds of all columns of a buffer of text, from what the parser infers and from the texts themselves.
#
# The head of the buffer gives a guess. The whole buffer is then parsed once with the guessed types, which costs no
# more than reading it. Only if that fails does inference start again over the whole buffer.


class Parse(Protocol):
    """Parse a buffer of text.

    ``types``: the types by column; a value of another type raises `pa.ArrowInvalid`.
    ``others``: whether to return the columns that are not in ``types``, too, with inferred types.
    ``drop``: columns that the parser may leave out.
    ``head``: whether to parse only the beginning of the buffer.
    """

    def __call__(
        self, types: Mapping[str, pa.DataType], *, others: bool = True, drop: Collection[str] = (), head: bool = False
    ) -> pa.Table:
        """Return the table."""


def infer(parse: Parse) -> dict[str, Kind]:
    """Return the kind of each column of a buffer. Raises `pa.ArrowInvalid` where no single type fits a column."""
    try:
        guess = _settle_types(_first_look(parse({}, head=True), ()), parse, head=True)
        texts = [name for name, kind in guess.items() if kind == TEXT]
        # Times are parsed as text: the parser knows fewer formats. What is nested, or nothing, is inferred again.
        settled = {name: kind for name, kind in guess.items() if isinstance(kind, int) and kind not in (NOTHING, TEXT)}
        hints = {n: type_of(kind) if kind in (INT, FLOAT, BOOL) else pa.string() for n, kind in settled.items()}
        look = _first_look(parse(hints, drop=texts), [name for name in hints if hints[name] == pa.string()])
        return {**guess, **_settle_types({**look, **dict.fromkeys(texts, TEXT)}, parse, head=False)}
    except pa.ArrowInvalid:
        return _settle_types(_first_look(parse({}), ()), parse, head=False)


def _first_look(table: pa.Table, texts: Collection[str]) -> dict[str, Kind | None]:
    """Return the kind of each column, None where it depends on texts that are not parsed yet.

    ``texts``: the columns that were parsed as text.
    """
    return {
        name: kind_of_texts(table[name]) if name in texts else kind_of(table[name].type) for name in table.column_names
    }


def _settle_types(kinds: Mapping[str, Kind | None], parse: Parse, *, head: bool) -> dict[str, Kind]:
    unsure = [name for name, kind in kinds.items() if kind is None]
    texts = parse(dict.fromkeys(unsure, pa.string()), others=False, head=head) if unsure else pa.table({})
    return {name: kind_of_texts(texts[name]) if kind is None else kind for name, kind in kinds.items()}
