"""``wincli schema``: the form of job files, for editors."""

from __future__ import annotations

import json

from ...conf.job_files.schema import file_schema


def schema_text() -> str:
    """Return the JSON Schema of job files, indented."""
    return json.dumps(file_schema(), indent=2)
