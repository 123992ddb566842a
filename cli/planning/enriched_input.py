"""The input of a job with the columns of its enrich tables: these are opened and bound, but not read yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from ...readers.merged_source import MergedSource
from ...readers.open import open_source
from ...readers.schema.unify import Named
from ...readers.source import FileSource
from ...windowing.enrichment.binding import bind_enrichment
from ...windowing.enrichment.source import Enriched, EnrichedSource
from ...windowing.errors import WincliError
from ...windowing.language.enrichment import Enrichment
from ...windowing.ports import Executor
from ..request.request import JobRequest
from .open_input import NOTHING_KNOWN, KnownColumns

AnySource = FileSource | MergedSource | EnrichedSource
"""The input of a job's first stage."""


def enriched_input(
    request: JobRequest,
    source: FileSource | MergedSource,
    executor: Executor,
    known: KnownColumns = NOTHING_KNOWN,
) -> AnySource:
    """Return the input with the columns of the job's enrich tables, if it has any.

    ``known``: what earlier runs say of the columns of these. Raises what `open_source` raises for a table, and
    `ConfigError` where a table does not fit the rows.
    """
    enriched = EnrichedSource(source, (), (), source.splits)
    for enrichment in request.enrichments:
        table = _open_table(request, enrichment, executor, known.tables.get(enrichment.name, ()))
        own = [name for name in table.stream.own if name.startswith("_")] if table.stream is not None else []
        bound = bind_enrichment(enrichment, enriched.schema, table.schema, own)
        one = Enriched(bound)
        enriched = replace(enriched, enriched=(*enriched.enriched, one), tables=(*enriched.tables, table))
    return enriched if enriched.enriched else source


def _open_table(request: JobRequest, enrichment: Enrichment, executor: Executor, known: Sequence[Named]) -> FileSource:
    """Open the files of a table. Types that ``--schema`` gives hold for its columns of text with these names, too."""
    reading = replace(
        request.reading, format="auto", schema=(), stdin=None, bases=(), skip_unreadable=False, version=None, limit=None
    )
    with _naming(enrichment):
        table = open_source([enrichment.path], reading, executor, known)
        given = [(name, text) for name, text in request.reading.schema if _is_text(table.schema, name)]
        if not given:
            return table
        return open_source([enrichment.path], replace(reading, schema=tuple(given)), executor, known)


def _is_text(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and pa.types.is_string(schema.field(name).type)


@contextmanager
def _naming(enrichment: Enrichment) -> Iterator[None]:
    """Add the name of an enrichment to every `WincliError` of the body."""
    try:
        yield
    except WincliError as error:
        error.what = f"--enrich {enrichment.name}: {error.what}"
        raise
