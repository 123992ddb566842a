"""Options of `wincli.aggregate` for windows over random logs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.window_cases import AGGREGATES, OF_LASTING, OF_MATCHES, OVER_TIME, T, WindowCase, output_options, overlaps


@st.composite
def options_of(draw: st.DrawFn, case: WindowCase, keyed: bool) -> dict[str, Any]:
    """Options of `wincli.aggregate` for a window over `logs`."""
    window, order_by, options = case
    options = options | draw(st.composite(output_options)(window))
    if "partitioned" in window and options.get("emit") in {"entered", "left"}:
        options["emit"] = "rows"
    calls: Any = None
    if options.get("emit", "aggregates") == "aggregates":  # floats of groups may differ in their last bits
        calls = AGGREGATES[:4] if options.get("group_by") else AGGREGATES
        if order_by == T and not (overlaps(case) or options.get("group_by")):
            calls = [*calls, *draw(st.just([]) | st.lists(st.sampled_from(OVER_TIME), unique=True, max_size=2))]
        calls = [*calls, *OF_LASTING] if "ends" in options else calls
        calls = [*calls, *draw(st.sampled_from([[], OF_MATCHES]))] if "p = " in window else calls
    marks = "flag" if window.startswith("punct()") else None
    given_options = {"key": ["k"] if keyed else [], "order_by": order_by, "aggregates": calls, "marks": marks}
    return given_options | {"at_end": draw(st.sampled_from(["flush", "drop"])), "rejected": "drop", **options}


def is_by_key(case: WindowCase) -> bool:
    """Whether no key of the window depends on another but by the clock."""
    couples = ("partitioned", "timeInterval", "punct()", "table")  # a table has one state for all keys
    return not any(word in case[0] for word in couples) and case[2].get("empty") != "mark"
