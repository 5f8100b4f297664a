"""Run every benchmark module of this folder, one after the other, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HELPERS = {"__init__", "__main__", "peers", "timing"}


def main() -> int:
    """The number of modules that failed."""
    names = sys.argv[1:] or sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in HELPERS)
    failed = 0
    for name in names:
        print(f"== {name}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
