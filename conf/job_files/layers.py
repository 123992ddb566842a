"""What wins over what: a flag (or its environment variable), then the job file, then ``defaults.yaml``.

Decided here and nowhere else. Everything is plain values, not checked yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..job import PIPE, SHARED_KEYS, SINGLE_KEYS, defaults

Values = Mapping[str, Any]
_TO_STDOUT = {"output_format": "csv", "plain": True}  # who reads a pipe wants rows, and marks mean nothing there
ONLY = "window"
"""The name of a window that is not said in ``stages``."""


def layered(flags: Values, said: Values) -> dict[str, Any]:
    """Return the values of a whole job: what ``flags`` give over what a job file ``said``, over the defaults.

    Settings of Spark are merged one by one. What ends at ``hold`` if nobody says anything: all stages, where there is
    a state. What goes to stdout is plain CSV then.
    """
    asked = {**said, **flags}
    base = {**defaults(), **({"at_end": "hold"} if asked.get("state") else {})}
    last = {**base, **(_TO_STDOUT if asked.get("output") == PIPE else {})}
    options = {**last, **asked}
    if "spark_conf" in options:
        options["spark_conf"] = {**said.get("spark_conf", {}), **flags.get("spark_conf", {})}
    job = {key: value for key, value in options.items() if key not in SINGLE_KEYS and key != "stages"}
    if "stages" not in said:
        return {**job, "stages": [{"name": ONLY, **_window(options)}]}
    return {**job, "stages": _stages(flags, said, _window(base), _window(last))}


def _window(options: Values) -> dict[str, Any]:
    return {key: options[key] for key in SINGLE_KEYS if key in options}


def _stages(flags: Values, said: Values, base: Values, base_of_last: Values) -> list[dict[str, Any]]:
    """What is said beside ``stages`` counts where a stage says nothing; a flag counts in any case."""
    last = len(said["stages"]) - 1
    made = []
    for index, own in enumerate(said["stages"]):
        shared = [key for key in SHARED_KEYS if key == "at_end" or index == last]
        beside, above = ({key: layer[key] for key in shared if key in layer} for layer in (said, flags))
        made.append(
            {**(base_of_last if index == last else base), **beside, "name": f"stage-{index + 1}", **own, **above}
        )
    return made
