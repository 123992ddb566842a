"""The life of one operator: it is made, or restored, before its first call, and saved at the end of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ConfigError, DataError
from ...operator import Operator, Row, made, reason_of
from ...support.plain_values import PLAIN, NotPlainError, from_text, to_text

_AGAIN = "mend the operator, or begin again with a new state"


@dataclass(slots=True)
class OperatorLife:
    """The operator of one key, from the first call to the end of the run or the eviction of the key.

    ``kind``: its class.
    ``key``: the values of the key columns.
    ``words``: `` of key NAME=VALUE``, for messages.
    ``saved``: what it saved in the run before, as text; None where nothing was saved.
    ``full``: whether its window has been full, once it is made.
    """

    kind: type[Operator]
    key: Row
    words: str
    saved: str | None = None
    full: bool = False
    _operator: Operator | None = None

    @property
    def exists(self) -> bool:
        """Whether the key has an operator: it has been called, in this run or before."""
        return self._operator is not None or self.saved is not None

    @property
    def asks_eviction(self) -> bool:
        """Whether it has asked for the eviction of its key."""
        return self._operator is not None and self._operator._asks_eviction

    @property
    def operator(self) -> Operator:
        """The operator, made or restored where it has not been yet.

        Raises `ConfigError` where it cannot be made, or has another version than what was saved and no `restore`;
        `DataError` where it cannot be restored.
        """
        if self._operator is None:
            operator = made(self.kind)
            operator.key = self.key
            if self.saved is not None:
                self._restore(operator, self.saved)
            self._operator = operator
        return self._operator

    @property
    def text(self) -> str | None:
        """What the run leaves of the operator: what it saved before, where it was not called since.

        Raises `DataError` where it cannot be saved.
        """
        if self._operator is None:
            return self.saved
        try:
            state = self._operator.checkpoint()
        except Exception as error:  # a user's class can raise anything
            raise self._failed("checkpoint", reason_of(error)) from error
        if type(state) is not dict or not all(type(name) is str for name in state):
            raise self._failed("checkpoint", f"it gave {state!r:.60}, which is no dict with texts as keys")
        try:
            return to_text({"version": self.kind.version, "full": self.full, "state": state})
        except NotPlainError as error:
            place = error.place.removeprefix("['state']")
            what = f"{self.kind.__name__}.checkpoint gave a {error.kind} at {place} for the operator{self.words}"
            raise DataError(what, f"a state holds {PLAIN}") from None

    def _restore(self, operator: Operator, saved: str) -> None:
        version, self.full, state = self._read(saved)
        if version != self.kind.version and self.kind.restore is Operator.restore:
            name = self.kind.__name__
            what = f"version {version} of operator {name} saved the state{self.words}, and it is version "
            do = f"migrate it in {name}.restore, which finds {version} in self.saved_version, or begin with a new state"
            raise ConfigError(f"{what}{self.kind.version} now, without a restore", do)
        operator.saved_version = version
        try:
            operator.restore(state)
        except Exception as error:  # a user's class can raise anything
            raise self._failed("restore", reason_of(error)) from error

    def _read(self, saved: str) -> tuple[int, bool, dict[str, Any]]:
        try:
            value = from_text(saved)
            version, full, state = (value[name] for name in ("version", "full", "state"))
            if not (type(version) is int and type(full) is bool and type(state) is dict):
                raise ValueError("it is no saved operator")
        except (ValueError, KeyError, TypeError) as error:
            what = f"what operator {self.kind.__name__} saved{self.words} cannot be read: {reason_of(error)}"
            raise DataError(
                what, "the state is damaged: run the unit before again, or begin with a new state"
            ) from error
        return version, full, state

    def _failed(self, method: str, why: str) -> DataError:
        return DataError(f"{self.kind.__name__}.{method} failed for the operator{self.words}: {why}", _AGAIN)
