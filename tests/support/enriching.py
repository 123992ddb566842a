"""Sources that are enriched in memory, in each of the ways in which a table can be reached."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import pyarrow as pa

from support.in_memory_engine import MemorySink, MemorySource
from wincli.windowing.engine import enrich
from wincli.windowing.engine.enrich import TableState, load_tables
from wincli.windowing.enrichment.binding import bind_enrichment
from wincli.windowing.enrichment.step import Enrich
from wincli.windowing.language.enrichment import parse_enrichment
from wincli.windowing.local_executor import LocalExecutor


def enriched(
    texts: Sequence[str],
    left: pa.Table,
    tables: Sequence[pa.Table],
    cuts: Sequence[int] = (),
    right_cuts: Sequence[int] = (),
    *,
    is_large: bool = False,
    state: TableState | None = None,
    seed: int | None = None,
) -> MemorySource:
    """The rows of ``left`` with columns of each table; ``is_large``: through an exchange."""
    source = MemorySource([left], [cuts])
    sources = tuple(MemorySource([table], [right_cuts]) for table in tables)
    for text, table in zip(texts, sources, strict=True):
        one = Enrich(bind_enrichment(parse_enrichment(text), source.schema, table.schema), table)
        source = source.with_steps([*source.steps, one])
    executor = LocalExecutor(2, pickles=True, seed=seed, is_one_machine=seed is None)
    with mock.patch.object(enrich, "SMALL_TABLE", -1 if is_large else 1 << 20):
        return load_tables(source, MemorySink(), executor, state, 200)[0]


def broadcast(
    text: str, left: pa.Table, right: pa.Table, cuts: Sequence[int] = (), right_cuts: Sequence[int] = ()
) -> MemorySource:
    """A table that tasks read whole."""
    return enriched([text], left, [right], cuts, right_cuts)


def read_all(source: MemorySource, columns: Sequence[str] | None = None, dictionary: Sequence[str] = ()) -> pa.Table:
    names = list(columns or source.schema.names)
    tables = [source.read(split, names, dictionary).rows for split in source.splits]
    schema = pa.schema([source.schema.field(name) for name in names])
    return pa.concat_tables([table.cast(schema) for table in tables])
