"""How one Spark is set up: its settings, the environment of its processes, and folders that go when it ends."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from windowing.engine.bare import BARE
from windowing.engine.daemon import LOCK, ORDERED
from windowing.engine.java import new_folder, spark_home
from windowing.engine.masters import closed_to_others, cluster_environment, is_local, is_small_cluster
from windowing.engine.module_path import tell_workers
from windowing.engine.seed import SEED
from windowing.engine.shipping import FOLDER, ORDERS
from windowing.errors import SparkError
from windowing.others import way_in

_PATIENCE = 2.0
_USUAL = ("/tmp", "/var/tmp")
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Setup:
    """How Spark is to run: its ``master``, all ``settings``, and the folders that are removed in the end.

    ``notes``: what the user should know of these.
    """

    master: str
    settings: Mapping[str, str]
    environ: Mapping[str, str]
    folder: Path
    scratch: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether tasks run on this machine under this driver's Java."""
        return is_local(self.master)

    @property
    def on_this_machine(self) -> bool:
        """Whether tasks run on this machine, under this driver's Java or in a cluster in miniature."""
        return self.local or is_small_cluster(self.master)


def make_setup(master: str, settings: Mapping[str, str], environ: Mapping[str, str]) -> Setup:
    """Make the folders, and settings that name them.

    Raises `SparkError` where a folder cannot be made or others could replace it, and `ConfigError` where others could
    speak to Spark.
    """
    env, merged = dict(environ), {**settings, "spark.master": master, **closed_to_others(master, settings)}
    place, notes = _place()
    folder = new_folder(place)
    try:
        scratch = _scratch(merged, env, folder) if is_local(master) else ()
    except OSError as error:
        shutil.rmtree(folder)
        raise SparkError(
            f"no folder for Spark's temporary files: {error.strerror}: {error.filename}",
            "name one that is there and can be written: --spark-conf spark.local.dir=FOLDER",
        ) from None
    if scratch:
        merged["spark.local.dir"] = ",".join(map(str, scratch))
    return Setup(master, merged, env, folder, scratch, notes)


def _scratch(settings: Mapping[str, str], environ: dict[str, str], folder: Path) -> tuple[Path, ...]:
    """Folders of our own for Spark's blocks: one in each that the user named, for Spark would leave its files there."""
    named = environ.pop("SPARK_LOCAL_DIRS", "") or settings.get("spark.local.dir", "")
    if named:
        parents = [parent.strip() for parent in named.split(",")]
        for parent in parents:
            if why := way_in(Path(parent), may_be_shared=True):
                raise _open_folder("spark.local.dir", why)
        return tuple(map(new_folder, parents))
    (folder / "spark").mkdir()
    return (folder / "spark",)


def _place() -> tuple[str, tuple[str, ...]]:
    """Where this run's folder is made, and what is to be told of that: where no other user can take its place.

    Raises `SparkError` where there is no such place.
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
    """The environment of Java. On one machine the workers get it too, and see the modules that the driver sees."""
    env = dict(setup.environ)
    if not setup.on_this_machine:
        env.setdefault("SPARK_HOME", str(spark_home(env)))
        return env
    tell_workers(env)
    home = env.pop("SPARK_HOME", None)  # with it the workers would import pyspark from a zip: 0.6 s each
    if home is not None:
        env.setdefault("SPARK_CONF_DIR", str(Path(home) / "conf"))
    if not setup.local:
        cluster_environment(env, spark_home(setup.environ), setup.folder)
        return env
    env[LOCK] = str(setup.folder / "workers.lock")
    env[SEED] = str(seed_place(setup))
    return env


def worker_environment(setup: Setup, asked: Mapping[str, str]) -> dict[str, str]:
    """What workers on other machines are to have in their environment, where ``asked`` is what the user wants there.

    Our code comes before what is on the path there. Paths are seen from where executors, and so their workers, run.
    """
    path = [FOLDER, *filter(None, [asked.get("PYTHONPATH")])]
    bare = {BARE: setup.environ[BARE]} if BARE in setup.environ else {}
    return {"PYTHONPATH": os.pathsep.join(path), ORDERED: f"{FOLDER}/{ORDERS}", **bare}


def seed_place(setup: Setup) -> Path:
    """Where a seed waits for Java to start a daemon, if there is one."""
    return setup.folder / "seed"


def remove(setup: Setup) -> None:
    """Remove the folders of a setup, when nothing uses them any more.

    A Java that is just being ended by a signal of its own may still write into one, so that it cannot be removed yet.
    """
    patience = time.monotonic() + _PATIENCE
    for folder in (*setup.scratch, setup.folder):
        shutil.rmtree(folder, ignore_errors=True)
        while Path(folder).exists() and time.monotonic() < patience:
            time.sleep(_POLL)
            shutil.rmtree(folder, ignore_errors=True)
