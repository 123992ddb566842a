"""The values of a result that expressions compute: arithmetic over aggregates, and the condition of ``--having``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..aggregates import Bound
from ..errors import naming_option
from ..expressions.binding import bind, bind_condition
from ..expressions.lags import check_no_lag
from ..expressions.nodes import walk
from ..expressions.syntax import Expression
from ..language.tokens import column_text
from ..projection.projection import ComputedColumn
from .lowering import LoweredAggregates


def result_columns(lowered: LoweredAggregates, aggregates: Sequence[Bound]) -> tuple[ComputedColumn, ...]:
    """Bind the expressions over aggregates. Raises `ConfigError` or `SpecError` where types do not fit."""
    schema = pa.schema([(bound.name, bound.type) for bound in aggregates])
    computed = [(name, each) for name, each in lowered.results if each is not None]
    for name, each in computed:
        check_no_lag(each, f"--agg {name}")
        _check_columns(each, schema)
    return tuple(ComputedColumn(name, bind(each, schema), f"--agg {name}") for name, each in computed)


def value_fields(
    lowered: LoweredAggregates, aggregates: Sequence[Bound], computed: Sequence[ComputedColumn]
) -> tuple[pa.Field, ...]:
    """Return the value columns of the result, in the order in which they were requested."""
    types = {bound.name: bound.type for bound in aggregates} | {each.name: each.value.type for each in computed}
    return tuple(pa.field(name, types[name]) for name, _ in lowered.results)


def condition_of(condition: Expression | None, schema: pa.Schema) -> ComputedColumn | None:
    """Bind ``--having`` to the columns of a result. Raises `ConfigError` or `SpecError` where it does not fit them."""
    if condition is None:
        return None
    check_no_lag(condition, "--having")
    with naming_option("--having"):
        return ComputedColumn("--having", bind_condition(condition, schema), "--having")


def _check_columns(expression: Expression, schema: pa.Schema) -> None:
    for node in walk(expression.root):
        if node.kind == "column" and node.value[0] not in schema.names:
            name = node.value[0]
            what = f"{name!r} is in no aggregate, and here each column must be in one"
            raise expression.error(what, node.span, f"write for example last({column_text(name)})")
