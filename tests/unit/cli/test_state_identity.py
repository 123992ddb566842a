"""The identity of a state compared with that of a job."""

from typing import Any

from wincli.cli.run.incremental_run import identity_changes

NOW: dict[str, Any] = {
    "window": "tumbling, count(3)",
    "key": [],
    "order": [],
    "empty": "skip",
    "lag": "0",
    "columns": {},
}


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in NOW.items() if name not in names}


def test_an_option_that_an_older_state_lacks_had_its_default() -> None:
    assert identity_changes({"1": without("lag", "empty")}, {"1": NOW}) == []


def test_another_value_than_the_default_of_an_option_that_an_older_state_lacks_is_a_change() -> None:
    assert identity_changes({"1": without("lag")}, {"1": {**NOW, "lag": "5"}}) == ["its lag is 0, not 5"]


def test_equal_identities_do_not_differ() -> None:
    assert identity_changes({"1": NOW}, {"1": NOW}) == []
