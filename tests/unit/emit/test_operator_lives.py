"""What operators save and restore: by default their attributes, by version, and with clear errors."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest

from wincli.windowing.emit.operator_calls import OperatorLife
from wincli.windowing.errors import ConfigError, DataError
from wincli.windowing.operator import Operator, check_saves


class Plain(Operator):
    output: ClassVar = {"n": int}

    def __init__(self) -> None:
        self.count, self.last, self.pairs = 0, None, [(1, "a")]


class Slotted(Plain):
    __slots__ = ("more",)

    def __init__(self) -> None:
        super().__init__()
        self.more = b"x"


class Counting(Plain):
    def __init__(self) -> None:
        self.counts: Any = Counter()


class Own(Counting):
    def checkpoint(self) -> dict[str, Any]:
        return {"counts": dict(self.counts)}

    def restore(self, saved: dict[str, Any]) -> None:
        assert self.saved_version == 1
        self.counts = Counter(saved["counts"])


def life(kind: type[Operator], saved: str | None = None) -> OperatorLife:
    return OperatorLife(kind, {"user": "ann"}, " of key user='ann'", saved)


def saved_by(kind: type[Operator], full: bool = False, **attributes: Any) -> str:
    one = life(kind)
    for name, value in attributes.items():
        setattr(one.operator, name, value)
    assert one.operator
    one.full = full
    assert one.text is not None
    return one.text


def test_attributes_are_kept() -> None:
    again = life(Slotted, saved_by(Slotted, full=True, count=3, last=2.5)).operator
    assert isinstance(again, Slotted)
    assert (again.count, again.last, again.pairs, again.more) == (3, 2.5, [(1, "a")], b"x")
    assert again.key == {"user": "ann"}
    assert again.saved_version == 1


def test_a_full_window_stays_full() -> None:
    one = life(Plain, saved_by(Plain, full=True))
    assert one.operator
    assert one.full


def test_what_is_not_called_stays_as_it_is() -> None:
    assert life(Plain, "{anything}").text == "{anything}"
    assert life(Plain).text is None
    assert not life(Plain).exists


def test_own_checkpoint_and_restore() -> None:
    again = life(Own, saved_by(Own, counts=Counter(a=2))).operator
    assert isinstance(again, Own)
    assert again.counts == Counter(a=2)


def test_another_version_is_refused_without_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = saved_by(Plain)
    monkeypatch.setattr(Plain, "version", 2)
    with pytest.raises(ConfigError) as caught:
        assert life(Plain, saved).operator
    assert str(caught.value) == (
        "version 1 of operator Plain saved the state of key user='ann', and it is version 2 now, without a restore; "
        "migrate it in Plain.restore, which finds 1 in self.saved_version, or begin with a new state"
    )


def test_another_version_is_migrated_by_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = saved_by(Own, counts=Counter(b=1))
    monkeypatch.setattr(Own, "version", 7)
    again = life(Own, saved)
    assert isinstance(again.operator, Own)
    assert again.operator.counts == Counter(b=1)
    assert again.text is not None
    assert '"version",7' in again.text


class Failing(Plain):
    def checkpoint(self) -> Any:
        raise OSError("no disk")


class Odd(Plain):
    gives: ClassVar[Any] = None

    def checkpoint(self) -> Any:
        return type(self).gives


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (
            [],
            "Odd.checkpoint failed for the operator of key user='ann': it gave [], which is no dict with texts as keys",
        ),
        (
            {1: 2},
            "Odd.checkpoint failed for the operator of key user='ann': it gave {1: 2}, which is no dict with texts",
        ),
        (
            {"a": [{1}]},
            "Odd.checkpoint gave a set at ['a'][0] for the operator of key user='ann'; a state holds None, bool",
        ),
    ],
)
def test_what_a_checkpoint_may_not_give(gives: Any, words: str) -> None:
    Odd.gives = gives
    with pytest.raises(DataError) as caught:
        saved_by(Odd)
    assert str(caught.value).startswith(words)


def test_errors_of_users_name_operator_method_and_key() -> None:
    with pytest.raises(DataError) as caught:
        saved_by(Failing)
    assert str(caught.value).startswith(
        "Failing.checkpoint failed for the operator of key user='ann': OSError: no disk"
    )
    with pytest.raises(DataError) as caught:
        assert life(Own, saved_by(Plain)).operator
    assert str(caught.value).startswith("Own.restore failed for the operator of key user='ann': KeyError: 'counts'")


@pytest.mark.parametrize("saved", ["", "{", "[1]", '{"dict":[["version",1]]}', '{"dict":[["version","1"],["full",0]]}'])
def test_damage(saved: str) -> None:
    with pytest.raises(DataError, match="what operator Plain saved of key user='ann' cannot be read"):
        assert life(Plain, saved).operator


def test_the_check_before_a_run() -> None:
    check_saves(Plain)
    check_saves(Slotted)
    check_saves(Own)
    with pytest.raises(ConfigError) as caught:
        check_saves(Counting)
    assert str(caught.value) == (
        "operator Counting keeps counts, a Counter, which a state cannot hold; define checkpoint and restore, or keep "
        "None, bool, int, float, str, bytes, dates, times, Decimal, and lists, tuples and dicts of these"
    )
    with pytest.raises(ConfigError, match="operator Wrong has version '2', which is no int; say version = 2"):
        check_saves(type("Wrong", (Plain,), {"version": "2"}))
