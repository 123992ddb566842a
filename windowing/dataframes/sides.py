"""Both sides of a join as one DataFrame: the rows of the right and of the left, in the columns of the one sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import ByteType, StructType

from ..arguments import joined_rows, sides_of_call
from ..errors import ConfigError
from ..language.joins import LEFT, RIGHT, SIDE
from ..planning.result_schema import MARK, stream_of_columns
from ..planning.sides import SIDES, Sides
from .layout import FIRST, by_place


def merged_frames(
    left: DataFrame, schemas: tuple[pa.Schema, pa.Schema], types: Any, given: Mapping[str, Any]
) -> tuple[DataFrame, dict[str, Any]]:
    """Return the rows of both sides as one DataFrame, and the arguments of a call over both.

    ``schemas``: of the left and of the right. ``types``: a function that returns the Spark types of a schema.
    ``given``: the arguments with the DataFrame of the right under ``join``. Raises as `sides_of_call` does, and
    `ConfigError` for a left side that is a result.
    """
    text, right = joined_rows(given)
    sides, now = sides_of_call(*schemas, text, given)
    if sides.least is not None:
        do = "write it, and join it with wincli run, or drop the columns that begin with _"
        raise ConfigError(f"--join {sides.join.name}: a result in a DataFrame is no left side of a join", do)
    if stream_of_columns(schemas[1]) is not None:
        right = right.filter(functions.coalesce(right[MARK], functions.lit("")) != "only")
    spark = types(sides.schema)
    parts = [_padded(rows, schema, sides, side, spark) for rows, schema, side in
             ((right, schemas[1], RIGHT), (left, schemas[0], LEFT))]  # fmt: skip
    return parts[0].unionAll(parts[1]), now


def _padded(rows: DataFrame, schema: pa.Schema, sides: Sides, side: int, spark: StructType) -> DataFrame:
    """Return rows of one side with the columns of the one sequence, in its types, and `FIRST`."""
    placed, columns = by_place(rows, schema)
    own = {name: name for name in sides.left.names} if side == LEFT else sides.of_right
    found = []
    for field in spark:
        if field.name == SIDE:
            column: Column = functions.lit(SIDES[side] if sides.join.how == "union" else side)
        elif field.name in own:
            column = columns[own[field.name]]
        else:
            column = functions.lit(None)
        found.append(column.cast(field.dataType).alias(field.name))
    is_later = (side == LEFT) is not sides.join.strict
    return placed.select(*found, functions.lit(int(is_later)).cast(ByteType()).alias(FIRST))
