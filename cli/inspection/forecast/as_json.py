"""A forecast for programs: one JSON object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ....windowing.support.addresses.redaction import redacted
from .forecast import Forecast


def forecast_as_json(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast as plain JSON values, its keys always in the same order."""
    fields = asdict(forecast)
    problem, way = fields.pop("problem"), fields.pop("way")
    counts = {action: len(forecast.having(action)) for action in ("run", "may run", "skip", "gap", "stop")}
    text = None if problem is None else redacted(str(problem))
    return {"way": way, "counts": counts, **fields, "problem": text}
