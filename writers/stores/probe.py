"""The probe of a store: does it refuse a put whose condition does not hold?

Some stores and gateways ignore the condition. There two runs could both believe to have committed, so a state is
refused and an output needs ``--unsafe-commit``.
"""

from __future__ import annotations

from ..folders.place import Place, new_token
from .conditional import ConditionalStore, ConditionFailedError, Version

_PROBED: dict[str, bool] = {}  # by bucket: whether it keeps conditions


def keeps_conditions(store: ConditionalStore, place: Place) -> bool:
    """Whether the store of an output does what `refuses_stale_puts` tries; tried once for each bucket.

    ``store``: the objects below the folder above the output. Raises `OSError` where the store does not answer.
    """
    bucket = f"{place.fs.type_name}://{place.path.partition('/')[0]}"
    if bucket not in _PROBED:
        beside = place.beside("gone", new_token()).rpartition("/")[2]
        _PROBED[bucket] = refuses_stale_puts(store, f"{beside}/probe")
    return _PROBED[bucket]


def refuses_stale_puts(store: ConditionalStore, beside: str) -> bool:
    """Whether a store keeps both conditions that commits need; costs six requests and leaves nothing.

    ``beside``: the begin of the name of the object that is tried. Raises `OSError` where the store does not answer.
    """
    name = f"{beside}-{new_token()}"
    try:
        first = store.create(name, b"first")
        return _refuses_creation(store, name) and _refuses_replacement(store, name, first)
    except ConditionFailedError:  # it refuses what it must take
        return False
    finally:
        store.delete([name])


def _refuses_creation(store: ConditionalStore, name: str) -> bool:
    try:
        store.create(name, b"second")
    except ConditionFailedError:
        return True
    return False


def _refuses_replacement(store: ConditionalStore, name: str, first: Version) -> bool:
    store.replace(name, b"third", first)
    try:
        store.replace(name, b"fourth", first)
    except ConditionFailedError:
        return True
    return False
