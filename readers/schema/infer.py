"""Infer the kinds of all columns of a buffer of text, from what the parser infers and from the texts themselves.

The head of the buffer gives a guess. The whole buffer is then parsed once with the guessed types, which costs no more
than reading it. Only if that fails does inference start again over the whole buffer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import pyarrow as pa

from .kinds import BOOL, FLOAT, INT, TEXT, Kind, kind_of, kind_of_texts, type_of

Types = Mapping[str, pa.DataType]


class Parse(Protocol):
    """Parse a buffer of text.

    ``types``: the types by column; a value of another type raises `pa.ArrowInvalid`.
    ``others``: whether to return the columns that are not in ``types``, too, with inferred types.
    ``drop``: columns that the parser may leave out.
    ``head``: whether to parse only the beginning of the buffer.
    """

    def __call__(
        self, types: Types, *, others: bool = True, drop: Collection[str] = (), head: bool = False
    ) -> pa.Table:
        """Return the table."""
        ...


def infer(parse: Parse) -> dict[str, Kind]:
    """Return the kind of each column of a buffer. Raises `pa.ArrowInvalid` where no single type fits a column."""
    try:
        return _by_head(parse)
    except pa.ArrowInvalid:
        return _settle_types(_first_look(parse({}), ()), parse, head=False)


def _by_head(parse: Parse) -> dict[str, Kind]:
    guess = _settle_types(_first_look(parse({}, head=True), ()), parse, head=True)
    texts = [name for name, kind in guess.items() if kind == TEXT]
    hints = {name: hint for name, kind in guess.items() if (hint := _hint(kind)) is not None}
    look = _first_look(parse(hints, drop=texts), [name for name in hints if hints[name] == pa.string()])
    return {**guess, **_settle_types({**look, **dict.fromkeys(texts, TEXT)}, parse, head=False)}


def _hint(kind: Kind) -> pa.DataType | None:
    """Return the type to parse with, or None to infer it; times are parsed as text: the parser knows fewer formats."""
    if kind in (INT, FLOAT, BOOL):
        return type_of(kind)
    return pa.string() if isinstance(kind, int) and kind not in (0, TEXT) else None


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
