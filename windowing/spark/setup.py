"""The setup of one Spark: its settings, the environment of its processes, and folders that are removed when it ends."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import SparkError
from ..support.module_path import FOLDER as WORKING_FOLDER
from ..support.module_path import pass_path_to_workers
from ..support.trusted_folders import way_in
from .java import spark_home
from .masters import closed_to_others, cluster_environment, is_local, is_small_cluster
from .temporary_folders import CHILDREN, LockedFolder, new_folder, remove_leftovers
from .workers.code_archive import FOLDER, ORDERS, USER_CODE
from .workers.environment import FORK_SERVER, LOCK, STORE_VARIABLES, WORKER_CALLS
from .workers.no_pandas import NO_PANDAS

_PATIENCE = 2.0
_LONGEST_END = 4.0  # seconds that the Java of a killed driver takes to end, on a machine with other work
_USUAL = ("/tmp", "/var/tmp")
_POLL = 0.05
_SOCKETS = "spark.python.unix.domain.socket.enabled"  # of Spark 4.1 and later; others do not know it
_LONGEST = 60  # bytes of a folder: a socket has at most 107, and Spark's names have 42


@dataclass(frozen=True, slots=True)
class Setup:
    """The setup of one Spark.

    ``master``: its master URL.
    ``settings``: all its settings.
    ``environ``: the environment of this process.
    ``folder``: the temporary folder of its Java.
    ``scratch``: folders for Spark's own blocks; empty on a cluster.
    ``notes``: notes for the user on these folders.
    ``locked``: the temporary folders of this run, which contain the others.
    """

    master: str
    settings: Mapping[str, str]
    environ: Mapping[str, str]
    folder: Path
    scratch: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    locked: tuple[LockedFolder, ...] = ()

    @property
    def local(self) -> bool:
        """Whether tasks run on this machine under this driver's Java."""
        return is_local(self.master)

    @property
    def on_this_machine(self) -> bool:
        """Whether tasks run on this machine, under this driver's Java or in a small cluster of processes."""
        return self.local or is_small_cluster(self.master)


def make_setup(master: str, settings: Mapping[str, str], environ: Mapping[str, str]) -> Setup:
    """Make the folders and the settings that name them; remove leftovers of runs that were killed.

    Raises `SparkError` where a folder cannot be made or others could replace it, and `ConfigError` where others could
    send messages to Spark.
    """
    env, merged = dict(environ), {**settings, "spark.master": master, **closed_to_others(master, settings)}
    place, notes = temporary_place()
    named = _disks(merged, env) if is_local(master) else []
    remove_leftovers([place, *named])
    held: list[LockedFolder] = []
    try:
        for parent in (place, *named):
            held.append(new_folder(parent))
        folder = held[0].path
        scratch = _scratch(folder, held[1:]) if is_local(master) else ()
    except OSError as error:
        _remove(held, 0)
        raise SparkError(
            f"no folder for Spark's temporary files: {error.strerror}: {error.filename}",
            "name one that is there and can be written: --spark-conf spark.local.dir=FOLDER",
        ) from None
    if scratch:
        merged["spark.local.dir"] = ",".join(map(str, scratch))
    if (is_local(master) or is_small_cluster(master)) and len(os.fsencode(folder)) < _LONGEST:
        merged = {_SOCKETS: "true", f"{_SOCKETS.removesuffix('enabled')}dir": str(folder), **merged}
    return Setup(master, merged, env, folder, scratch, notes, tuple(held))


@contextmanager
def sweeping(master: str, settings: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[None]:
    """Remove the temporary folders of runs that were killed when the context ends, whether a Spark was needed or not.

    The Java of a killed driver may live on for seconds, so that a run which begins at once finds its folder in use; at
    its end, this run waits for that Java.
    """
    try:
        yield
    finally:
        with suppress(SparkError):
            named = _disks(settings, dict(environ)) if is_local(master) else []
            remove_leftovers([temporary_place()[0], *named], _LONGEST_END)


def _disks(settings: Mapping[str, str], environ: dict[str, str]) -> list[str]:
    """Return the folders where the user wants Spark's blocks."""
    named = environ.pop("SPARK_LOCAL_DIRS", "") or settings.get("spark.local.dir", "")
    parents = [parent.strip() for parent in named.split(",")] if named else []
    for parent in parents:
        if why := way_in(Path(parent), may_be_shared=True):
            raise _open_folder("spark.local.dir", why)
    return parents


def _scratch(folder: Path, own: Sequence[LockedFolder]) -> tuple[Path, ...]:
    """Return our own folders for Spark's blocks, below those the user named if any: Spark leaves its files behind."""
    if own:
        return tuple(held.path for held in own)
    (folder / "spark").mkdir()
    return (folder / "spark",)


def temporary_place() -> tuple[str, tuple[str, ...]]:
    """Return the folder in which temporary folders are made, one that no other user can replace, and notes on it.

    Raises `SparkError` where there is none.
    """
    first = tempfile.gettempdir()
    why = way_in(Path(first), may_be_shared=True)
    if why is None:
        return first, ()
    for place in _USUAL:
        if os.access(place, os.W_OK) and way_in(Path(place), may_be_shared=True) is None:
            return place, (f"temporary files go to {place}, for {why}; name a folder of your own: TMPDIR=FOLDER",)
    raise _open_folder("TMPDIR", why)


def _open_folder(name: str, why: str) -> SparkError:
    return SparkError(
        f"others could replace temporary files, for {why}", f"chmod +t helps, or name a folder of your own with {name}"
    )


def java_environment(setup: Setup) -> dict[str, str]:
    """Return the environment of Java. On one machine workers inherit it, with the import path of the driver."""
    env = dict(setup.environ)
    if not setup.on_this_machine:
        env.setdefault("SPARK_HOME", str(spark_home(env)))
        return env
    pass_path_to_workers(env)
    home = env.pop("SPARK_HOME", None)  # with it the workers would import pyspark from a zip: 0.6 s each
    if home is not None:
        env.setdefault("SPARK_CONF_DIR", str(Path(home) / "conf"))
    if not setup.local:
        cluster_environment(env, spark_home(setup.environ), setup.folder)
        return env
    env[LOCK] = str(setup.folder / CHILDREN)
    env[FORK_SERVER] = str(fork_server_socket(setup))
    return env


def worker_environment(setup: Setup, requested: Mapping[str, str], has_user_code: bool = False) -> dict[str, str]:
    """Return additions to the environment of workers on other machines.

    ``requested``: the environment that the user has set for them. Our code comes before the rest of its path. Paths are
    relative to the folder where executors, and so their workers, run. ``has_user_code``: whether the user's modules are
    with our code. As Spark itself does, a store that this process finds by its environment is passed on with its keys.
    """
    path = [FOLDER, *filter(None, [requested.get("PYTHONPATH")])]
    no_pandas = {NO_PANDAS: setup.environ[NO_PANDAS]} if NO_PANDAS in setup.environ else {}
    stores = {name: setup.environ[name] for name in STORE_VARIABLES if name in setup.environ and name not in requested}
    users = {WORKING_FOLDER: f"{FOLDER}/{USER_CODE}"} if has_user_code else {}
    return {"PYTHONPATH": os.pathsep.join(path), WORKER_CALLS: f"{FOLDER}/{ORDERS}", **no_pandas, **users, **stores}


def fork_server_socket(setup: Setup) -> Path:
    """Return the path of the socket on which a fork server waits for Java to start a daemon."""
    return setup.folder / "seed"


def remove(setup: Setup) -> None:
    """Remove the folders of a setup when nothing uses them any more.

    A Java that is just being ended by a signal of its own may still write into a folder; then removal is tried again.
    """
    _remove(setup.locked, _PATIENCE)


def _remove(held: Sequence[LockedFolder], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for folder in reversed(held):
        folder.remove()
        while folder.path.exists() and time.monotonic() < deadline:
            time.sleep(_POLL)
            folder.remove()
        folder.release()
