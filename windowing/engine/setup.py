"""How one Spark is set up: its settings, the environment of its processes, and folders that go when it ends."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from windowing.engine.bare import BARE
from windowing.engine.daemon import LOCK, ORDERED
from windowing.engine.java import new_folder, spark_home
from windowing.engine.seed import SEED
from windowing.engine.shipping import FOLDER, ORDERS
from windowing.errors import SparkError

_PATIENCE = 2.0
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Setup:
    """How Spark is to run: its ``master``, all ``settings``, and the folders that are removed in the end."""

    master: str
    settings: Mapping[str, str]
    environ: Mapping[str, str]
    folder: Path
    scratch: tuple[Path, ...]

    @property
    def local(self) -> bool:
        """Whether tasks run on this machine under this driver's Java."""
        return is_local(self.master)


def make_setup(master: str, settings: Mapping[str, str], environ: Mapping[str, str]) -> Setup:
    """Make the folders, and settings that name them. Raises `SparkError` where a folder cannot be made."""
    env, merged = dict(environ), {**settings, "spark.master": master}
    folder = new_folder()
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
    return Setup(master, merged, env, folder, scratch)


def is_local(master: str) -> bool:
    """Whether a master runs its tasks on this machine, in the driver's Java process."""
    return master == "local" or master.startswith("local[")


def _scratch(settings: Mapping[str, str], environ: dict[str, str], folder: Path) -> tuple[Path, ...]:
    """Folders of our own for Spark's blocks: one in each that the user named, for Spark would leave its files there."""
    named = environ.pop("SPARK_LOCAL_DIRS", "") or settings.get("spark.local.dir", "")
    if named:
        return tuple(new_folder(parent.strip()) for parent in named.split(","))
    (folder / "spark").mkdir()
    return (folder / "spark",)


def java_environment(setup: Setup) -> dict[str, str]:
    """The environment of Java. On one machine the workers get it too, and see the modules that the driver sees."""
    env = dict(setup.environ)
    if not setup.local:
        env.setdefault("SPARK_HOME", str(spark_home(env)))
        return env
    home = env.pop("SPARK_HOME", None)  # with it the workers would import pyspark from a zip: 0.6 s each
    if home is not None:
        env.setdefault("SPARK_CONF_DIR", str(Path(home) / "conf"))
    env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*filter(None, sys.path), str(Path.cwd())]))
    env["PYTHONSAFEPATH"] = "1"  # or a file in the working folder could take the place of a module of ours
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
