"""The package: what is built is the same each time, installs alone, resolves at both ends, and has its types.

A stage of its own, as it makes environments and asks a package index: `make package`. Each environment is empty but for
what a test puts there, and stands outside the checkout. What was built is left in `dist`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TOOLS = ("test", "lint", "docs", "dev", "package")
"""Extras of those who work on hubbub; the others are for those who use it."""
IMPORTS = {
    "collect": ("hubbub.collect", "Crypto"),
    "demo": ("statsmodels.api",),
    "excel": ("python_calamine", "hubbub.engines.duckdb.sheets"),
    "learn": ("hubbub.learning", "sklearn", "pandas"),
    "oidc": ("authlib.oidc.core", "hubbub.service.people.oidc"),
    "plot": ("hubbub.plots", "matplotlib.figure"),
    "postgres": ("psycopg", "hubbub.engines.postgres.engine"),
    "serve": ("starlette.applications", "uvicorn", "hubbub.service.front"),
    "spark": ("pyspark.sql",),
}
pytestmark = [
    pytest.mark.package,
    pytest.mark.skipif("HUBBUB_PACKAGE" not in os.environ, reason="a stage of its own: make package"),
]


def run(*words: str | Path, cwd: Path, **environment: str) -> str:
    """A command in a clean environment: no path of the checkout is on Python's own."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | environment
    done = subprocess.run([*map(str, words)], cwd=cwd, env=clean, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def made(folder: Path, *wanted: str | Path, constraints: Path | None = None, below: Path | None = None) -> Path:
    """The Python of a new environment with what is wanted. below: another one, whose packages it has too."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    python = folder / "bin/python"
    if below is not None:
        (packages,) = (below.parents[1] / "lib").glob("python*/site-packages")
        (mine,) = (folder / "lib").glob("python*/site-packages")
        (mine / "below.pth").write_text(f"{packages}\n")
    limits = ["-c", str(constraints)] if constraints else []
    if wanted:
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *limits, *wanted, cwd=folder.parent)
    return python


def lowest(requirements: list[str]) -> list[str]:
    """Each requirement at the version of its lower bound."""
    found = [re.match(r"([\w.-]+)(?:\[[\w,]+\])?\s*>=\s*([\w.]+)", one) for one in requirements]
    assert all(found), "a requirement without a lower bound"
    return [f"{one[1]}=={one[2]}" for one in found if one]


def bounds(extra: str | None = None) -> list[str]:
    """The lower bounds of the core; of what an extra names too, that one's, which may be higher."""
    core = dict(line.split("==") for line in lowest(PROJECT["dependencies"]))
    more = dict(line.split("==") for line in lowest(PROJECT["optional-dependencies"][extra])) if extra else {}
    return [f"{name}=={version}" for name, version in (core | more).items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("package")


@pytest.fixture(scope="module")
def built(folder: Path) -> dict[str, Path]:
    """The wheel and the sdist of what git tracks, from one of two copies; both copies give the same bytes."""
    python = made(folder / "builder", "build>=1.2", *PROJECT_BUILD)
    tracked = run("git", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]
    hashes = []
    for i, copy in enumerate((folder / "one", folder / "another/with a longer name")):
        for name in tracked:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
            os.utime(copy / name, (1e9 + i, 1e9 + i))
        run(python, "-m", "build", "--no-isolation", "-o", copy / "dist", cwd=copy, SOURCE_DATE_EPOCH="1700000000")
        hashes.append({f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in (copy / "dist").iterdir()})
    assert len(hashes[0]) == 2
    assert hashes[0] == hashes[1]
    (ROOT / "dist").mkdir(exist_ok=True)
    for file in (folder / "one/dist").iterdir():
        shutil.copyfile(file, ROOT / "dist" / file.name)
    (wheel,) = (folder / "one/dist").glob("*.whl")
    (sdist,) = (folder / "one/dist").glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


PROJECT_BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]


def test_two_builds_are_the_same_and_hold_what_they_should(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = wheel.namelist()
    assert "hubbub/py.typed" in names
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert {n.split("/")[0] for n in names} == {"hubbub", f"hubbub-{PROJECT['version']}.dist-info"}
    tracked = {n.removeprefix("src/") for n in run("git", "ls-files", "src", cwd=ROOT).split()}
    assert tracked <= set(names)
    with tarfile.open(built["sdist"]) as sdist:
        names = sdist.getnames()
    for name in ("SECURITY.md", "CHANGELOG.md", "LICENSE", "tests/test_session.py", "docs/index.md"):
        assert f"hubbub-{PROJECT['version']}/{name}" in names


@pytest.mark.parametrize("what", ["wheel", "sdist"])
def test_it_installs_into_an_empty_environment_and_runs_the_demo(
    built: dict[str, Path], folder: Path, what: str
) -> None:
    python = made(folder / f"of the {what}", f"{built[what]}[demo]")
    place = folder / f"elsewhere {what}"
    place.mkdir()
    screen = run(python.parent / "hubbub", "demo", cwd=place)
    assert "epsilon" in screen
    assert run(python, "-c", "import hubbub; print(hubbub.__file__)", cwd=place).startswith(str(folder))


@pytest.fixture(scope="module")
def at_lowest(built: dict[str, Path], folder: Path) -> Path:
    limits = folder / "lowest.txt"
    limits.write_text("\n".join(bounds()))
    return made(folder / "lowest", built["wheel"], constraints=limits)


@pytest.fixture(scope="module")
def at_newest(built: dict[str, Path], folder: Path) -> Path:
    return made(folder / "newest", built["wheel"])


SMOKE = """
import importlib, sys, pathlib
import pyarrow as pa, pyarrow.parquet as pq
import hubbub as hb
pq.write_table(pa.table({"id": list(range(500)), "w": ["a", "b"] * 250, "x": [1.5] * 500}), "t.parquet")
columns = {"w": hb.one_of("a", "b"), "x": hb.between(0, 2)}
t = hb.table("t.parquet", unit="id", max_groups=1, max_rows=1, columns=columns)
with hb.Session({"t": t}, budget=hb.Budget(epsilon=50, delta=1e-6), ledger="b.db") as s:
    for noise in ("gaussian", "laplace"):
        n = s.sql("SELECT w, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY w", epsilon=5, noise=noise)["n"].values
        assert all(abs(v - 250) < 50 for v in n), n
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


@pytest.mark.parametrize("end", ["lowest", "newest"])
@pytest.mark.parametrize("extra", [None, *sorted(IMPORTS)])
def test_every_extra_works_at_both_ends_of_its_versions(
    built: dict[str, Path], folder: Path, request: pytest.FixtureRequest, extra: str | None, end: str
) -> None:
    core: Path = request.getfixturevalue(f"at_{end}")
    place = folder / f"{extra} at {end}"
    place.mkdir()
    python = core
    if extra:
        limits = place / "limits.txt"
        limits.write_text("\n".join(bounds(extra)) if end == "lowest" else "")
        python = made(place / "env", f"{built['wheel']}[{extra}]", constraints=limits, below=core)
    run(python, "-c", SMOKE, *IMPORTS.get(extra or "", ()), cwd=place)


def test_every_extra_of_users_is_tried() -> None:
    assert set(IMPORTS) | set(TOOLS) == set(PROJECT["optional-dependencies"])


def test_those_who_write_with_it_have_its_types(built: dict[str, Path], folder: Path, at_newest: Path) -> None:
    tools = [w for w in PROJECT["optional-dependencies"]["package"] if "build" not in w]
    place = folder / "downstream"
    place.mkdir()
    shutil.copyfile(Path(__file__).with_name("downstream.py"), place / "downstream.py")
    python = made(place / "env", *tools)
    run(python.parent / "mypy", "--strict", "--python-executable", at_newest, "downstream.py", cwd=place)
    (place / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    run(python.parent / "basedpyright", "--pythonpath", at_newest, "downstream.py", cwd=place)


def test_the_classifiers_say_what_is_tried() -> None:
    """The suite runs on one version; types are checked for two, which is no promise that it runs."""
    said = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert said == {PROJECT["requires-python"].removeprefix(">=")}
