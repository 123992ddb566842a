"""Types of Spark and of Arrow, each as the other: what a DataFrame holds, and what tasks see of it."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from ..aggregates.inputs import plain_type
from ..errors import ConfigError

_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
"""What makes instants have UTC: PySpark 4.0 gives it to all."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the plain Arrow types of the columns of a DataFrame; instants are in UTC.

    Raises `ConfigError` for types that Arrow does not have, and where two columns have one name.
    """
    names = schema.names
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"the DataFrame has two columns {name!r}", "rename one of them, as with toDF")
    return pa.schema([pa.field(field.name, _arrow_type(field)) for field in schema])


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark types of a result. Raises `ConfigError` for a type that Spark does not have."""
    return StructType([StructField(field.name, _spark_type(field)) for field in schema])


def as_spark_has(schema: pa.Schema) -> pa.Schema:
    """Return a schema as Spark reads it back from tasks: its own types, in Arrow."""
    return arrow_schema(spark_schema(schema))


def _arrow_type(field: StructField) -> pa.DataType:
    try:
        if _has_variant(field.dataType):
            raise TypeError(field.dataType)
        return plain_type(to_arrow_type(field.dataType, **_UTC))
    except (PySparkException, TypeError):
        text = f"column {field.name!r} is {field.dataType.simpleString()}, which Arrow does not have"
        raise ConfigError(text, "drop or cast it before") from None


def _has_variant(dtype: DataType) -> bool:
    """Whether values of a type hold variants, which Spark passes to tasks in a form of its own."""
    match dtype:
        case VariantType():
            return True
        case ArrayType():
            return _has_variant(dtype.elementType)
        case MapType():
            return _has_variant(dtype.keyType) or _has_variant(dtype.valueType)
        case StructType():
            return any(_has_variant(field.dataType) for field in dtype)
    return False


def _spark_type(field: pa.Field) -> DataType:
    try:
        return from_arrow_type(field.type, prefer_timestamp_ntz=True)
    except (PySparkException, TypeError):
        text = f"column {field.name!r} of the result is {field.type}, which Spark does not have"
        raise ConfigError(text, "cast its argument with an expression") from None
