"""Masters on this machine: one Java (``local[N]``), or a small cluster of processes (``local-cluster[N,CORES,MB]``).

Every user of a machine can connect to its ports. Spark's ports are on the loopback interface only, and Spark refuses
every message without this run's secret before it reads any. With ``local[N]`` Spark makes the secret and keeps it in
memory; a small cluster gets it by file, and its executors by their environment.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConfigError, SparkError

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
    return {AUTHENTICATE: "true", **({} if is_local(master) else _of_a_cluster(settings))}


def _of_a_cluster(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings of a small cluster. Its web pages cannot be switched off; they require a key that nobody has."""
    locked_pages = {_FILTERS: _FILTER, f"spark.{_FILTER}.param.secretKey": _page_key()}
    return {
        _SECRET: settings.get(_SECRET) or secrets.token_hex(32),
        "spark.driver.host": settings.get("spark.driver.host", _LOOPBACK),
        "spark.driver.bindAddress": settings.get("spark.driver.bindAddress", _LOOPBACK),
        "spark.ui.enabled": settings.get("spark.ui.enabled", "false"),
        **({} if _FILTERS in settings else locked_pages),
    }


def _page_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def cluster_environment(environ: dict[str, str], home: Path, folder: Path) -> None:
    """Add to the environment of a small cluster what Spark's own scripts would set; all its files go to ``folder``.

    ``home``: the Spark to run; without a home of our own, workers would write their files below it. Raises `SparkError`
    where there is no Spark.
    """
    own = folder / "home"
    own.mkdir()
    (own / "jars").symlink_to(home / "jars")
    environ["SPARK_HOME"] = str(own)
    environ["SPARK_SCALA_VERSION"] = _scala(home / "jars")
    environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)


def _scala(jars: Path) -> str:
    """Return the version of Scala that Spark was built with, from the name of a jar: ``spark-core_2.13-4.0.0.jar``."""
    names = [path.name for path in jars.glob("spark-core_*.jar")]
    if not names:
        raise SparkError(f"no Spark in {jars}: there is no spark-core_*.jar", "install pyspark, or correct SPARK_HOME")
    return names[0].removeprefix("spark-core_").partition("-")[0]
