"""The enrich tables of a run, read before its windows: a small one whole by every task, a large one by an exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..enrichment.binding import BoundEnrichment
from ..enrichment.read_table import read_all, table_of
from ..enrichment.source import Enriched, EnrichedSource, Matches
from ..enrichment.stored_table import store
from ..enrichment.table import last_rows
from ..ports import Executor, Part, Sink, Source, StateFiles
from .exchange.enrich_pass import exchange_table, state_name
from .tasks.sizing import row_width, slice_count

SMALL_TABLE = 64 << 20
"""The bytes of needed columns up to which every task reads a table whole."""


@dataclass(frozen=True, slots=True)
class TableState:
    """Where the rows that were seen last are kept from run to run.

    ``before``: the files of the run before; None for the first.
    ``files``: the files for the next run.
    """

    before: StateFiles | None
    files: StateFiles


@dataclass(frozen=True, slots=True)
class LoadedTables:
    """A source whose enriched columns can be read, and the ``parts`` that its tables have left in a state."""

    source: EnrichedSource
    parts: tuple[Part, ...] = ()


def load_tables(
    source: EnrichedSource,
    sink: Sink,
    executor: Executor,
    state: TableState | None,
    slice_bytes: int,
    small: int | None = None,
) -> LoadedTables:
    """Read the tables of a source, one after the other.

    ``sink``: keeps what tasks share until `Sink.drop_scratch`. ``executor``: used only for a table of more than
    ``small`` bytes, by default `SMALL_TABLE`. ``slice_bytes``: bound on the bytes of a table that one task gets.
    Raises as `read_table` does.
    """
    most = SMALL_TABLE if small is None else small
    loaded = LoadedTables(replace(source, enriched=(), tables=source.tables))
    for one, table in zip(source.enriched, source.tables, strict=True):
        matches, parts = _load(one.bound, loaded.source, table, sink, executor, state, slice_bytes, most)
        enriched = (*loaded.source.enriched, Enriched(one.bound, matches))
        loaded = LoadedTables(replace(loaded.source, enriched=enriched), (*loaded.parts, *parts))
    return loaded


def _load(
    bound: BoundEnrichment,
    source: Source,
    table: Source,
    sink: Sink,
    executor: Executor,
    state: TableState | None,
    slice_bytes: int,
    small: int,
) -> tuple[Matches, Sequence[Part]]:
    """Read one table; return what finds its values, and what it has left in a state. Only as-of tables leave rows."""
    before = state.before if state is not None and bound.asof is not None else None
    files = state.files if state is not None and bound.asof is not None else None
    seen = before.tables(state_name(bound.enrichment.name)) if before is not None else ()
    width = row_width(table.schema, table.splits, bound.right)
    nbytes = width * sum(split.rows for split in table.splits) + width * sum(part.rows for part in seen)
    if nbytes > small:
        count = slice_count(nbytes, slice_bytes, executor.parallelism)
        earlier = (before, seen) if before is not None else None
        return exchange_table(bound, source, table, sink, earlier, files, executor, count)
    carried = None
    if before is not None and seen:
        carried = pa.concat_tables([before.read_part(part) for part in seen])
    rows, pos = read_all(bound, table, carried)
    found = table_of(bound, table, rows, pos)
    found.match(pa.schema([source.schema.field(name) for name in bound.left]).empty_table())  # compiles its kernels
    parts = [files.write_table(f"{state_name(bound.enrichment.name)}00000", last_rows(found, rows))] if files else []
    return store(found, sink), parts
