"""The setup of one Spark: its settings, the environment of its processes, and folders that are removed when it ends."""

from __future__ import annotations

import base64
import os
import resource
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError, SparkError
from ..support.modules import FOLDER as WORKING_FOLDER
from ..support.modules import pass_path_to_workers
from ..support.trusted_folders import way_in
from .code_archive import FOLDER, ORDERS, USER_CODE
from .fork_server import FORK_SERVER, LOCK, NO_PANDAS, STORE_VARIABLES, WORKER_CALLS
from .java import spark_home
from .temporary_folders import CHILDREN, LockedFolder, new_folder, remove_leftovers

# Masters on this machine: one Java (``local[N]``), or a small cluster of processes (``local-cluster[N,CORES,MB]``).
#
# Every user of a machine can connect to its ports. Spark's ports are on the loopback interface only, and Spark
# refuses every message without this run's secret before it reads any. With ``local[N]`` Spark makes the secret and
# keeps it in memory; a small cluster gets it by file, and its executors by their environment.


AUTHENTICATE = "spark.authenticate"
"""The setting with which Spark refuses messages from everybody without its secret."""

_SECRET = "spark.authenticate.secret"
_LOOPBACK = "127.0.0.1"
_FILTERS = "spark.ui.filters"
_FILTER = "org.apache.spark.ui.JWSFilter"


def is_local(master: str) -> bool:
    """Whether a master runs its tasks on this machine, in the driver's Java process."""
    return master == "local" or master.startswith("local[")


def is_small_cluster(master: str) -> bool:
    """Whether a master is a cluster of processes on this machine, which Spark starts for one run."""
    return master.startswith("local-cluster[")


def closed_to_others(master: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that close a Spark on this machine to all but its own processes; none for a Spark elsewhere.

    Raises `ConfigError` where ``settings`` would leave it open.
    """
    if not is_local(master) and not is_small_cluster(master):
        return {}
    if settings.get(AUTHENTICATE, "true").strip().lower() != "true":
        raise ConfigError(
            f"{AUTHENTICATE} cannot be switched off on one machine, where all its users could send messages to Spark",
            "leave it out",
        )
    if is_local(master):
        return {AUTHENTICATE: "true"}
    locked_pages = {}
    if _FILTERS not in settings:  # pages of a small cluster cannot be switched off: they require a key that nobody has
        key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
        locked_pages = {_FILTERS: _FILTER, f"spark.{_FILTER}.param.secretKey": key}
    return {
        AUTHENTICATE: "true",
        _SECRET: settings.get(_SECRET) or secrets.token_hex(32),
        "spark.driver.host": settings.get("spark.driver.host", _LOOPBACK),
        "spark.driver.bindAddress": settings.get("spark.driver.bindAddress", _LOOPBACK),
        "spark.ui.enabled": settings.get("spark.ui.enabled", "false"),
        **locked_pages,
    }


def cluster_environment(environ: dict[str, str], home: Path, folder: Path) -> None:
    """Add to the environment of a small cluster what Spark's own scripts would set; all its files go to ``folder``.

    ``home``: the Spark to run; without a home of our own, workers would write their files below it. Raises `SparkError`
    where there is no Spark.
    """
    own = folder / "home"
    own.mkdir()
    (own / "jars").symlink_to(home / "jars")
    environ["SPARK_HOME"] = str(own)
    # The version of Scala that Spark was built with, from the name of a jar: ``spark-core_2.13-4.0.0.jar``
    jars = home / "jars"
    names = [path.name for path in jars.glob("spark-core_*.jar")]
    if not names:
        raise SparkError(f"no Spark in {jars}: there is no spark-core_*.jar", "install pyspark, or correct SPARK_HOME")
    environ["SPARK_SCALA_VERSION"] = names[0].removeprefix("spark-core_").partition("-")[0]
    environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)


_PATIENCE = 2.0
_LONGEST_END = 4.0  # seconds that the Java of a killed driver takes to end, on a machine with other work
_USUAL = ("/tmp", "/var/tmp")
_POLL = 0.05
_SOCKETS = "spark.python.unix.domain.socket.enabled"  # of Spark 4.1 and later; others do not know it
_LONGEST = 60  # bytes of a folder: a socket has at most 107, and Spark's names have 42


@dataclass(frozen=True, slots=True)
class Setup:
    """The setup of one Spark.

    ``folder``: the temporary folder of its Java.
    ``scratch``: folders for Spark's own blocks; empty on a cluster.
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
        return is_local(self.master)

    @property
    def on_this_machine(self) -> bool:
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
        scratch: tuple[Path, ...] = ()  # our own folders for Spark's blocks: it leaves its files behind
        if is_local(master):
            scratch = tuple(own.path for own in held[1:]) or (folder / "spark",)
        if not named and scratch:
            scratch[0].mkdir()
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
    named = environ.pop("SPARK_LOCAL_DIRS", "") or settings.get("spark.local.dir", "")
    parents = [parent.strip() for parent in named.split(",")] if named else []
    for parent in parents:
        if why := way_in(Path(parent), may_be_shared=True):
            raise _open_folder("spark.local.dir", why)
    return parents


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


# The limit of open files of a process. Java alone has some 280 open, one for each of Spark's jars.


NEEDED = 512
"""The least limit. Measured: Java with a job of 1,000 rows on two cores fails with 320 and runs with 400."""


def allow_open_files() -> None:
    """Raise this process's own limit where it is too low, also for the processes that it starts.

    Raises `SparkError` where the system does not allow it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _is_enough(soft):
        return
    if not _is_enough(hard):
        raise too_few_files()
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, hard))


def too_few_files() -> SparkError:
    """Return the error to raise where the limit is too low or a system call met it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return SparkError(
        f"too few files may be open at once: {soft}, and Spark needs {NEEDED} or more",
        "raise the limit: ulimit -n 4096",
    )


def _is_enough(limit: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= NEEDED
