"""Runs statements of Flink SQL for `flink`: a program of its own, in an environment that has apache-flink.

A line of stdin is a list of statements as JSON, the last of them a query; a line of stdout is ``{"columns", "rows"}``
or ``{"error"}``. Times are ISO 8601.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment


def as_json(value: Any) -> Any:
    """A value as JSON writes it."""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def main() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        tables.get_config().set("parallelism.default", "1").set("table.local-time-zone", "UTC")
        if "FLINK_ADDRESS" in os.environ:  # of a cluster that runs: jobs start sooner
            host, _, port = os.environ["FLINK_ADDRESS"].partition(":")
            tables.get_config().set("execution.target", "remote").set("rest.address", host).set("rest.port", port)
        *before, query = json.loads(line)
        try:
            for statement in before:
                tables.execute_sql(statement)
            found = tables.execute_sql(query)
            columns = found.get_table_schema().get_field_names()
            with found.collect() as rows:
                told = {"columns": columns, "rows": [[as_json(value) for value in row] for row in rows]}
        except Exception as error:
            told = {"error": str(error)}
        print("answer:" + json.dumps(told), flush=True)


main()
