"""`wincli.windows` where there is no pandas: an error that says how to get it, and nothing else that fails."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from types import SimpleNamespace


class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


sys.meta_path.insert(0, NoPandas())
import wincli
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

frame = SimpleNamespace(schema=StructType().add("t", LongType()).add("user", StringType()).add("x", DoubleType()))
print(wincli.windows(frame, "delta(t, 60)", key="user", order_by="t", plan=True))
for state in (None, "new"):
    try:
        wincli.windows(frame, "delta(t, 60)", key="user", order_by="t", state=state)
    except wincli.ConfigError as error:
        print(f"error: {error}")
"""


def test_windows_without_pandas_say_how_to_install_it() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    error = (
        "wincli.windows needs pandas, which is not installed; in the folder of wincli, run: pip install '.[dataframes]'"
    )
    assert ran.stdout.splitlines() == ["partitions: by user", "order: user, t", f"error: {error}", f"error: {error}"]
