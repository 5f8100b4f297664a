"""Models: accuracy and AUC (or R^2) at three epsilons on ten tasks, diffprivlib's and InterpretML's beside them.

python -m benchmarks.learning install              the rivals, each in an environment of its own
python -m benchmarks.learning [draws=20] [TASK ...] [rivals] [speed] [clusters]

Same splits for all: 80 % of a permutation of seed 0. delta is 1e-5 whole, which is DP-EBM's default. The number of rows
is bought by ours, and public for the rivals. Declared ranges and values are those of each task's head; of `bc` and
`diabetes` they are the maxima rounded up, which a release could not do.
"""

from __future__ import annotations

import csv
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hubbub as hb
from benchmarks import peers
from benchmarks.timing import table
from hubbub.accounting import rho_of_epsilon
from hubbub.learning import AdditiveModel, CategoricalNB, KMeans, LogisticRegression

DATA = Path(os.environ.get("HUBBUB_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
DELTA = "1e-5"
EPSILONS = ("0.1", "1", "10")
peers.PEERS["diffprivlib"] = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
peers.PEERS["interpret"] = ["interpret-core==0.7.8", "scikit-learn"]

GOALS: dict[str, list[tuple[float, float]]] = {
    "adult": [(0.828, 0.872), (0.851, 0.905), (0.857, 0.911)],
    "acs": [(0.775, 0.838), (0.808, 0.880), (0.812, 0.887)],
    "fair": [(0.682, 0.67), (0.72, 0.735), (0.730, 0.748)],
    "bc": [(0.588, 0.85), (0.912, 0.970), (0.930, 0.989)],
}
LINES = {"income": [0.33, 0.51, 0.525], "hours": [0.155, 0.24, 0.256], "diabetes": [0.0, 0.18, 0.33]}


@dataclass
class Task:
    """Rows, what is declared of them, and what is learned. positive: the class whose AUC is told; None: a number."""

    name: str
    rows: pa.Table
    columns: dict[str, Any]
    target: str
    positive: str | None

    @property
    def parts(self) -> tuple[pa.Table, pa.Table]:
        """The rows to learn from, and to test on."""
        order, n = np.random.default_rng(0).permutation(self.rows.num_rows), self.rows.num_rows
        return self.rows.take(order[: int(0.8 * n)]), self.rows.take(order[int(0.8 * n) :])


def adult(target: str = "income") -> Task:
    """Census income: 32,561 rows, 12 columns. Public: what capital gains and losses are taxed by steps of."""
    names = (
        "age workclass fnlwgt education education_num marital occupation relationship race sex gain loss hours country"
    )
    lines = [line.strip().split(", ") for line in (DATA / "adult/adult.data").read_text().splitlines() if line.strip()]
    held = dict(zip([*names.split(), "income"], map(list, zip(*lines, strict=True)), strict=True))
    columns: dict[str, Any] = {
        "age": hb.between(17, 90, nullable=False),
        "education_num": hb.between(1, 16, nullable=False),
        "gain": hb.edges(0, 1, 3000, 5000, 7000, 10000, 20000, 99999, nullable=False),
        "loss": hb.edges(0, 1, 1500, 1800, 2000, 2500, 4356, nullable=False),
        "hours": hb.between(1, 99, nullable=False),
    }
    rows: dict[str, Any] = {}
    for name in [*names.split(), "income"]:
        if name in columns:
            rows[name] = np.array(held[name], int)
        elif name not in ("fnlwgt", "education"):
            rows[name] = held[name]
            columns[name] = hb.one_of(*sorted(set(held[name])))
    return Task(
        "adult" if target == "income" else target,
        pa.table(rows),
        columns,
        target,
        ">50K" if target == "income" else None,
    )


def acs(target: str = "high") -> Task:
    """NIST's excerpt of the American Community Survey: 23,006 rows with an income, 18 columns."""
    with (DATA / "acs/national2019.csv").open() as file:
        lines = [row for row in csv.DictReader(file) if row["PINCP"] != "N"]
    most = {"AGEP": 99, "DENSITY": 60_000, "NPF": 20, "NOC": 20}
    rows, columns = {}, {}
    for name in lines[0].keys() - {"PUMA", "PINCP", "PINCP_DECILE", "POVPIP", "PWGTP", "WGTP"}:
        values = [row[name] for row in lines]
        if name in most:
            rows[name] = [None if v == "N" else float(v) for v in values]
            columns[name] = hb.between(0, most[name])
        else:
            rows[name] = values
            columns[name] = hb.one_of(*sorted(set(values)))
    income = np.array([float(row["PINCP"]) for row in lines])
    if target == "high":
        rows["high"], columns["high"] = np.where(income > 50_000, "yes", "no").tolist(), hb.one_of("no", "yes")
        return Task("acs", pa.table(rows), columns, "high", "yes")
    rows["income"], columns["income"] = np.clip(income, 0, 200_000), hb.between(0, 200_000, nullable=False)
    return Task("income", pa.table(rows), columns, "income", None)


def fair() -> Task:
    """Fair's survey of 6,366 women, 8 columns (statsmodels)."""
    import statsmodels.api as sm

    held = sm.datasets.fair.load_pandas().data
    ends = {"rate_marriage": (1, 5), "age": (17, 42), "yrs_married": (0, 23), "children": (0, 6)}
    ends |= {"religious": (1, 4), "educ": (9, 20), "occupation": (1, 6), "occupation_husb": (1, 6)}
    rows: dict[str, Any] = {name: held[name].to_numpy() for name in ends}
    columns: dict[str, Any] = {name: hb.between(*e, nullable=False) for name, e in ends.items()}
    rows["any"], columns["any"] = np.where(held["affairs"] > 0, "yes", "no").tolist(), hb.one_of("no", "yes")
    return Task("fair", pa.table(rows), columns, "any", "yes")


LOAD = """
import json, sys, sklearn.datasets as d
b = getattr(d, "load_" + sys.argv[1])()
print(json.dumps([b.data.tolist(), b.target.tolist()]))
"""


def bc() -> Task:
    """Breast cancer, 569 rows, 30 columns (scikit-learn)."""
    x, y = map(np.array, peers.run("diffprivlib", LOAD, "breast_cancer"))
    rows: dict[str, Any] = {f"x{i}": x[:, i] for i in range(30)}
    columns: dict[str, Any] = {
        f"x{i}": hb.between(0, float(f"{x[:, i].max() * 1.05:.2g}"), nullable=False) for i in range(30)
    }
    rows["benign"], columns["benign"] = np.where(y == 1, "yes", "no").tolist(), hb.one_of("no", "yes")
    return Task("bc", pa.table(rows), columns, "benign", "yes")


def diabetes() -> Task:
    """Diabetes, 442 rows, 10 columns (scikit-learn)."""
    x, y = map(np.array, peers.run("diffprivlib", LOAD, "diabetes"))
    ends = [math.ceil(abs(x[:, i]).max() * 100) / 100 for i in range(10)]
    rows: dict[str, Any] = {f"x{i}": x[:, i] for i in range(10)} | {"y": y.astype(float)}
    columns = {f"x{i}": hb.between(-e, e, nullable=False) for i, e in enumerate(ends)}
    return Task("diabetes", pa.table(rows), columns | {"y": hb.between(0, 350, nullable=False)}, "y", None)


def _turned(task: Task, name: str, target: str, positive: str, without: set[str]) -> Task:
    """Another column of a task's rows as its target: whether it is `positive`."""
    is_it = [v == positive for v in task.rows[target].to_pylist()]
    kept = {n: c for n, c in task.columns.items() if n not in without | {target}}
    rows = task.rows.select(list(kept)).append_column("is it", pa.array(["yes" if i else "no" for i in is_it]))
    return Task(name, rows, kept | {"is it": hb.one_of("no", "yes")}, "is it", "yes")


def married() -> Task:
    """Whether somebody of adult is married; no constant was fitted to this."""
    return _turned(adult(), "married", "marital", "Married-civ-spouse", {"relationship"})


def owner() -> Task:
    """Whether somebody of the ACS owns the home."""
    return _turned(acs(), "owner", "OWN_RENT", "1", set())


def vote() -> Task:
    """The vote in an election study of 1996, 944 rows (statsmodels)."""
    import statsmodels.api as sm

    held = sm.datasets.anes96.load_pandas().data
    ends = {"TVnews": (0, 7), "selfLR": (1, 7), "ClinLR": (1, 7), "DoleLR": (1, 7), "age": (18, 95)}
    ends |= {"educ": (1, 7), "income": (1, 24), "popul": (0, 8000)}
    rows: dict[str, Any] = {n: held[n].to_numpy() for n in ends}
    rows["vote"] = np.where(held["vote"] == 1, "yes", "no").tolist()
    columns: dict[str, Any] = {n: hb.between(*e, nullable=False) for n, e in ends.items()}
    return Task("vote", pa.table(rows), columns | {"vote": hb.one_of("no", "yes")}, "vote", "yes")


TASKS: dict[str, Callable[[], Task]] = {
    "adult": adult, "acs": acs, "fair": fair, "bc": bc,
    "married": married, "owner": owner, "vote": vote,
    "income": lambda: acs("income"), "hours": lambda: adult("hours"), "diabetes": diabetes,
}  # fmt: skip


def chosen(task: Task, epsilon: str) -> Any:
    """The model for a task, from public things alone: kinds of columns, about how many rows, the amount.

    kappa is how many rows stand against the noise of one step; k, the number of columns, is about N. Below 5 k nothing
    but counts can be learned; below 50 k a line through numbers is all; else an effect for each bin.
    """
    columns = {n: c for n, c in task.columns.items() if n != task.target}
    kappa = 0.8 * task.rows.num_rows * math.sqrt(2 * float(rho_of_epsilon(epsilon, DELTA)))
    numbers = not any(c.__class__.__name__ == "OneOf" for c in columns.values())
    if task.positive is None:
        return AdditiveModel(target=task.target)
    if kappa < 5 * len(columns):
        return CategoricalNB(target=task.target)
    if numbers and kappa < 50 * len(columns):
        return LogisticRegression(target=task.target)
    return AdditiveModel(target=task.target)


def auc(scores: Any, truth: Any) -> float:
    """The area under the receiver's curve."""
    from scipy.stats import rankdata

    ranks, ones = rankdata(scores), int(truth.sum())
    return float((ranks[truth].sum() - ones * (ones + 1) / 2) / ones / (len(truth) - ones))


def figures(task: Task, model: Any, test: pa.Table) -> tuple[float, float]:
    """Accuracy and AUC, or R^2 twice."""
    if task.positive is None:
        truth = np.array(test[task.target].to_pylist(), float)
        left = 1 - ((model.predict(test) - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
        return left, left
    truth = np.array(test[task.target].to_pylist()) == task.positive
    score = model.predict_proba(test)[:, list(model.classes_).index(task.positive)]
    return float(((score > 0.5) == truth).mean()), auc(score, truth)


def ours(task: Task, draws: int) -> None:
    """A line for each epsilon: the mean and spread over draws, the goal, seconds a fit."""
    train, test = task.parts
    lines = []
    for at, epsilon in enumerate(EPSILONS):
        each, start = [], time.process_time()
        for _ in range(draws):
            model = chosen(task, epsilon).fit(train, columns=task.columns, epsilon=epsilon, delta=DELTA)
            each.append(figures(task, model, test))
        seconds = (time.process_time() - start) / draws
        mean, spread = np.mean(each, axis=0), np.std(each, axis=0)
        goal = GOALS.get(task.name, [(0.0, 0.5)] * 3)[at] if task.positive else (LINES[task.name][at],) * 2
        cells = [f"{m:.4f} +- {s:.4f}" for m, s in zip(mean, spread, strict=True)]
        wanted = " / ".join(f"{g:.3f}" for g in goal)
        reached = "yes" if all(m >= g for m, g in zip(mean, goal, strict=True)) else "no"
        lines.append([epsilon, type(model).__name__, *cells, wanted, reached, f"{seconds:.2f}"])
    two = ["accuracy", "AUC"] if task.positive else ["R^2", "(R^2)"]
    print(table([f"{task.name} {task.rows.num_rows}", "model", *two, "goal", "reached", "CPU s"], lines), flush=True)


RIVALS = {
    "diffprivlib": """
import json, sys, time, warnings, numpy as np
warnings.filterwarnings("ignore")
import diffprivlib.models as m
from sklearn.metrics import roc_auc_score
d = np.load(sys.argv[1]); draws = int(sys.argv[3]); eps = float(sys.argv[2])
X, y, A, b, k = d["X"], d["y"], d["A"], d["b"], int(d["k"])
def run(make, X, A):
    out = []
    for s in range(draws):
        f = make(s).fit(X, y); p = f.predict_proba(A)[:, 1]
        out.append([float((f.predict(A) == b).mean()), float(roc_auc_score(b, np.nan_to_num(p)))])
    return np.mean(out, axis=0).tolist()
def unit(Z): return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-9)
n, w = X.shape
ends = (np.zeros(w), np.ones(w))
def line(norm): return lambda s: m.LogisticRegression(epsilon=eps, data_norm=norm, max_iter=300, random_state=s)
def forest(s): return m.RandomForestClassifier(epsilon=eps, bounds=ends, classes=[0, 1], random_state=s)
res = {"LogReg sqrt k": run(line(k ** .5), X, A), "LogReg norm 1": run(line(1.0), unit(X), unit(A)),
 "GaussianNB": run(lambda s: m.GaussianNB(epsilon=eps, bounds=ends, random_state=s), X, A), "Forest": run(forest, X, A)}
print(json.dumps(res))
""",
    "interpret": """
import json, sys, warnings, numpy as np
warnings.filterwarnings("ignore")
from interpret.privacy import DPExplainableBoostingClassifier as E
from sklearn.metrics import roc_auc_score
d = np.load(sys.argv[1], allow_pickle=True); draws = int(sys.argv[3]); eps = float(sys.argv[2])
X, A, y, b = d["R"], d["S"], d["y"], d["b"]
types = ["nominal" if t else "continuous" for t in d["nominal"]]
bounds = {i: tuple(v) for i, v in enumerate(d["ends"].tolist()) if not d["nominal"][i]}
out = []
for s in range(draws):
    f = E(epsilon=eps, delta=1e-5, feature_types=types, privacy_bounds=bounds, random_state=None).fit(X, y)
    p = f.predict_proba(A)[:, 1]
    out.append([float(((p > .5) == b).mean()), float(roc_auc_score(b, p))])
print(json.dumps({"DP-EBM": np.mean(out, axis=0).tolist()}))
""",
}


def arrays(task: Task, path: Path) -> None:
    """The task as the rivals take it: one-hot with numbers in [0, 1], and raw columns."""
    parts = task.parts
    names = [n for n in task.columns if n != task.target]
    made, raw = [], []
    for part in parts:
        dense, plain = [], []
        for name in names:
            values, declared = part[name].to_pylist(), task.columns[name]
            if declared.__class__.__name__ == "OneOf":
                dense.append(np.array([[float(v == u) for u in declared.values] for v in values]))
                plain.append(np.array(values, object))
            else:
                low, high = float(declared.low), float(declared.high)
                middle = (low + high) / 2
                numbers = np.array([middle if v is None else float(v) for v in values])
                dense.append(((numbers - low) / (high - low))[:, None])
                plain.append(numbers.astype(object))
        made.append(np.hstack(dense))
        raw.append(np.stack(plain, axis=1))
    y, b = (np.array(p[task.target].to_pylist()) == task.positive for p in parts)
    nominal = [task.columns[n].__class__.__name__ == "OneOf" for n in names]
    ends = [
        [0.0, 1.0] if n else [float(task.columns[c].low), float(task.columns[c].high)]
        for n, c in zip(nominal, names, strict=True)
    ]
    held = {"X": made[0], "A": made[1], "R": raw[0], "S": raw[1], "y": y.astype(int), "b": b.astype(int)}
    np.savez(path, **held, k=len(names), nominal=nominal, ends=ends)


def rivals(task: Task, draws: int) -> None:
    """Every rival's mean accuracy and AUC."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.npz"
        arrays(task, path)
        lines: dict[str, list[str]] = {}
        for epsilon in EPSILONS:
            for peer, code in RIVALS.items():
                try:
                    measured = peers.run(peer, code, path, epsilon, draws)
                except (peers.MissingPeer, RuntimeError) as error:
                    print(f"({peer}: {str(error).strip().splitlines()[-1]})")
                    continue
                for name, (accuracy, area) in measured.items():
                    lines.setdefault(f"{peer} {name}", []).append(f"{accuracy:.3f} / {area:.3f}")
    print(table([f"{task.name}, rivals", *EPSILONS], [[n, *cells] for n, cells in lines.items()]), flush=True)


def speed() -> None:
    """A fit of 32 thousand rows, and of a million of 12 columns."""
    task = adult()
    for rows in (task.rows, pa.concat_tables([task.rows] * 31)):
        start, cpu = time.perf_counter(), time.process_time()
        model = AdditiveModel(target="income").fit(rows, columns=task.columns, epsilon=1, delta=DELTA)
        took = time.perf_counter() - start
        print(
            f"{rows.num_rows:,} rows, {model.n_iter_} steps: {took:.1f} s, {time.process_time() - cpu:.1f} CPU s",
            flush=True,
        )


def clusters(draws: int) -> None:
    """Mean inertia of k-means in [0, 1], of five numbers of adult. diffprivlib: .0767 / .0590 / .0417."""
    task = adult()
    names = ["age", "education_num", "gain", "loss", "hours"]
    ends = [(float(task.columns[n].low), float(task.columns[n].high)) for n in names]
    x = np.array([(np.array(task.rows[n]) - a) / (b - a) for n, (a, b) in zip(names, ends, strict=True)]).T
    columns = {n: hb.between(a, b, nullable=False) for n, (a, b) in zip(names, ends, strict=True)}
    for epsilon in EPSILONS:
        each = []
        for _ in range(draws):
            centres = KMeans(names).fit(task.rows, columns=columns, epsilon=epsilon, delta=DELTA).cluster_centers_
            each.append(((x[:, None] - (centres + 1)[None] / 2) ** 2).sum(axis=2).min(axis=1).mean())
        print(f"k-means, adult, k = 8, epsilon {epsilon}: {np.mean(each):.4f} +- {np.std(each):.4f}", flush=True)


def main(arguments: list[str]) -> int:
    """The command line of this module."""
    if arguments[:1] == ["install"]:
        for name in RIVALS:
            peers.install(name)
        return 0
    draws = next((int(a.partition("=")[2]) for a in arguments if a.startswith("draws=")), 20)
    asked = [a for a in arguments if a in TASKS] or ([] if {"speed", "clusters"} & set(arguments) else list(TASKS))
    print(json.dumps({"delta": DELTA, "rho": [float(rho_of_epsilon(e, DELTA)) for e in EPSILONS], "draws": draws}))
    for name in asked:
        task = TASKS[name]()
        ours(task, draws)
        if "rivals" in arguments and task.positive is not None:
            rivals(task, max(2, draws // 6))
    if "speed" in arguments:
        speed()
    if "clusters" in arguments:
        clusters(draws)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
