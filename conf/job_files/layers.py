"""The layers of settings: a flag (or its environment variable) overrides the job file, and that the defaults.

Only this module merges them. All values are plain values that are not checked yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..job import PIPE, SHARED_KEYS, SINGLE_KEYS, defaults

Values = Mapping[str, Any]
_TO_STDOUT = {"output_format": "csv", "plain": True}  # a pipe is for rows, and marks have no meaning there
ONLY = "window"
"""The name of the stage in a job without ``stages``."""


def layered(flags: Values, in_file: Values) -> dict[str, Any]:
    """Return the values of a whole job: ``flags`` over the values ``in_file`` of a job file, over the defaults.

    Settings of Spark are merged one by one. With a state the default of ``at_end`` is ``hold`` for all stages. A result
    that goes to stdout is plain CSV by default.
    """
    given = {**in_file, **flags}
    base = {**defaults(), **({"at_end": "hold"} if given.get("state") else {})}
    last = {**base, **(_TO_STDOUT if given.get("output") == PIPE else {})}
    options = {**last, **given}
    if "spark_conf" in options:
        options["spark_conf"] = {**in_file.get("spark_conf", {}), **flags.get("spark_conf", {})}
    job = {key: value for key, value in options.items() if key not in SINGLE_KEYS and key != "stages"}
    if "stages" not in in_file:
        return {**job, "stages": [{"name": ONLY, **_window(options)}]}
    return {**job, "stages": _stages(flags, in_file, _window(base), _window(last))}


def _window(options: Values) -> dict[str, Any]:
    return {key: options[key] for key in SINGLE_KEYS if key in options}


def _stages(flags: Values, in_file: Values, base: Values, base_of_last: Values) -> list[dict[str, Any]]:
    """Return the values of all stages: a flag overrides a stage's own key, which overrides a key beside ``stages``."""
    last = len(in_file["stages"]) - 1
    made = []
    for index, own in enumerate(in_file["stages"]):
        shared = [key for key in SHARED_KEYS if key == "at_end" or index == last]
        beside, above = ({key: layer[key] for key in shared if key in layer} for layer in (in_file, flags))
        made.append(
            {**(base_of_last if index == last else base), **beside, "name": f"stage-{index + 1}", **own, **above}
        )
    return made
