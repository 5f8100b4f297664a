"""The rivals, each at a pinned version in an environment of its own, run as a subprocess that prints JSON.

python -m benchmarks.peers install [NAME ...]
python -m benchmarks.peers list
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent / ".venvs"

PEERS: dict[str, list[str]] = {
    "opendp": ["opendp[polars]==0.16.0"],
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn>=1.4,<1.6"],
    "dp-accounting": ["dp-accounting==0.6.0"],
    "prv-accountant": ["prv-accountant==0.2.0"],
    # Beside them what hubbub itself needs: `benchmarks.opacus_history` trains through it.
    "opacus": [
        "torch==2.13.0",
        "opacus==1.6.0",
        "dp-accounting==0.6.0",
        "cryptography>=43",
        "duckdb>=2.0,<2.0.1",
        "pyarrow>=18",
        "sqlglot>=30.30,<30.31",
    ],
    "pipelinedp": ["pipeline-dp==0.3.1"],
    "smartnoise": ["smartnoise-sql==1.0.10", "pandas<3"],
    # Its Spark is 3.5 up to Python 3.11 and 4 from 3.12 on; both run on Java 17.
    "tumult": ["tmlt.analytics==0.21.0"],
}


class MissingPeer(Exception):
    """The rival is not installed."""


def interpreter(name: str) -> Path:
    """The rival's Python. Raises MissingPeer where there is none."""
    for tail in ("bin/python", "Scripts/python.exe"):
        path = ROOT / name / tail
        if path.exists():
            return path
    raise MissingPeer(f"{name} is not installed; run: python -m benchmarks.peers install {name}")


def run(name: str, code: str, *arguments: object, timeout: float = 600) -> Any:
    """Run code under the rival's Python and return what its last line of output holds, as JSON."""
    done = subprocess.run(
        [str(interpreter(name)), "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def install(name: str) -> None:
    """Make the rival's environment, or bring it to the pinned version."""
    home = ROOT / name
    if not home.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(interpreter(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PEERS[name]], check=True)


def main(arguments: list[str]) -> int:
    """The command line of this module."""
    if arguments[:1] == ["list"]:
        for name, packages in PEERS.items():
            print(f"{name:16s} {' '.join(packages):40s} {'installed' if (ROOT / name).exists() else '-'}")
        return 0
    if arguments[:1] == ["install"] and set(arguments[1:]) <= set(PEERS):
        for name in arguments[1:] or PEERS:
            print(f"installing {name} ...", file=sys.stderr, flush=True)
            install(name)
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
