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


class Odd(Plain):
    gives: ClassVar[Any] = None

    def checkpoint(self) -> Any:
        if self.gives is None:
            raise OSError("no disk")
        return self.gives


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


def test_attributes_are_kept_and_a_full_window_stays_full() -> None:
    one = life(Slotted, saved_by(Slotted, full=True, count=3, last=2.5))
    again: Any = one.operator
    assert (again.count, again.last, again.pairs, again.more) == (3, 2.5, [(1, "a")], b"x")
    assert (again.key, again.saved_version, one.full) == ({"user": "ann"}, 1, True)


def test_what_is_not_called_stays_as_it_is() -> None:
    assert life(Plain, "{anything}").text == "{anything}"
    assert (life(Plain).text, life(Plain).exists) == (None, False)


@pytest.mark.parametrize("version", [1, 7])
def test_own_checkpoint_and_restore_may_migrate_another_version(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = saved_by(Own, counts=Counter(a=2))
    monkeypatch.setattr(Own, "version", version)
    one = life(Own, saved)
    again: Any = one.operator
    assert again.counts == Counter(a=2)
    assert f'"version",{version}' in str(one.text)


def test_another_version_is_refused_without_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = saved_by(Plain)
    monkeypatch.setattr(Plain, "version", 2)
    with pytest.raises(ConfigError) as caught:
        assert life(Plain, saved).operator
    assert str(caught.value) == (
        "version 1 of operator Plain saved the state of key user='ann', and it is version 2 now, without a restore; "
        "migrate it in Plain.restore, which finds 1 in self.saved_version, or begin with a new state"
    )


NO_DICT = "which is no dict with texts as keys; mend the operator, or begin again with a new state"


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        ([], f" failed for the operator of key user='ann': it gave [], {NO_DICT}"),
        ({1: 2}, f" failed for the operator of key user='ann': it gave {{1: 2}}, {NO_DICT}"),
        ({"a": [{1}]}, " gave a set at ['a'][0] for the operator of key user='ann'; a state holds None, bool"),
        (None, " failed for the operator of key user='ann': OSError: no disk"),
    ],
)
def test_what_a_checkpoint_may_not_do(gives: Any, words: str) -> None:
    Odd.gives = gives
    with pytest.raises(DataError) as caught:
        saved_by(Odd)
    assert str(caught.value).startswith(f"Odd.checkpoint{words}")


def test_a_restore_that_fails_names_operator_method_and_key() -> None:
    with pytest.raises(DataError, match=r"^Own\.restore failed for the operator of key user='ann': KeyError: 'counts'"):
        assert life(Own, saved_by(Plain)).operator


@pytest.mark.parametrize("saved", ["", "{", "[1]", '{"dict":[["version",1]]}', '{"dict":[["version","1"],["full",0]]}'])
def test_damage(saved: str) -> None:
    with pytest.raises(DataError, match="what operator Plain saved of key user='ann' cannot be read"):
        assert life(Plain, saved).operator


def test_the_check_before_a_run() -> None:
    for kind in (Plain, Slotted, Own):
        check_saves(kind)
    with pytest.raises(ConfigError) as caught:
        check_saves(Counting)
    assert str(caught.value) == (
        "operator Counting keeps counts, a Counter, which a state cannot hold; define checkpoint and restore, or keep "
        "None, bool, int, float, str, bytes, dates, times, Decimal, and lists, tuples and dicts of these"
    )
    with pytest.raises(ConfigError, match="operator Wrong has version '2', which is no int; say version = 2"):
        check_saves(type("Wrong", (Plain,), {"version": "2"}))
