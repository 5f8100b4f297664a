"""Models: accuracy and AUC (or R^2) at three epsilons on some tasks, diffprivlib's and InterpretML's beside them.

python -m benchmarks.learning install              the rivals, each in an environment of its own
python -m benchmarks.learning [draws=20] [epsilons=0.1,1,10] [TASK ...] [rivals] [newton] [pairs] [bins] [clusters]
    [speed] [synthetic] [halfspaces]

rivals: as many fits of each rival as of ours. newton: LogisticRegression(method="newton") beside the others. pairs: the
additive model without pairs, and with named pairs of columns (of adult and doctor), beside the one that looks for them.
bins: the additive model of 16 equal bins, and of those that are cut, both without pairs. clusters: k-means and
principal components. synthetic: the same model trained on a synthetic table of the same cost. halfspaces: the error of
learning a halfspace by trying every one, and by descent. Without a task all are fitted, or none where one of the last
four is asked for.

Same splits for all: 80 % of a permutation of seed 0. delta is 1e-5 whole, which is DP-EBM's default. The number of rows
is bought by ours, and public for the rivals. The tasks and what is declared of them: `benchmarks.learning_tasks`.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import hubbub as hb
from benchmarks import learning_rivals as rivals, peers
from benchmarks.learning_tasks import FRESH, TASKS, Task, acs, adult, digits
from benchmarks.timing import table
from hubbub.accounting import rho_of_epsilon
from hubbub.learning import (
    PCA,
    AdditiveModel,
    CategoricalNB,
    FiniteClassLearner,
    KMeans,
    LogisticRegression,
    halfspaces as all_halfspaces,
)

DELTA = "1e-5"
EPSILONS = ("0.1", "1", "10")

GOALS: dict[str, list[tuple[float, float]]] = {
    "adult": [(0.828, 0.872), (0.851, 0.905), (0.857, 0.911)],
    "acs": [(0.775, 0.838), (0.808, 0.880), (0.812, 0.887)],
    "fair": [(0.682, 0.67), (0.72, 0.735), (0.730, 0.748)],
    "bc": [(0.588, 0.85), (0.912, 0.970), (0.930, 0.989)],
    "income": [(0.33, 0.33), (0.51, 0.51), (0.525, 0.525)],
    "income_160": [(0.33, 0.33), (0.51, 0.51), (0.525, 0.525)],
    "hours": [(0.155, 0.155), (0.24, 0.24), (0.256, 0.256)],
    "diabetes": [(0.0, 0.0), (0.18, 0.18), (0.33, 0.33)],
}


def chosen(task: Task, epsilon: str) -> Any:
    """The model for a task, from public things alone: kinds of columns, about how many rows, the amount.

    kappa is how many rows stand against the noise of one step; k, the number of columns, is about N. Below 5 k nothing
    but counts can be learned; below 50 k a line through numbers is all; else an effect for each bin.
    """
    columns = {n: c for n, c in task.columns.items() if n != task.target}
    kappa = 0.8 * task.rows.num_rows * math.sqrt(2 * float(rho_of_epsilon(epsilon, DELTA)))
    numbers = not any(c.__class__.__name__ == "OneOf" for c in columns.values())
    if task.positive is None:
        return AdditiveModel(target=task.target, pairs="auto")
    if kappa < 5 * len(columns):
        return CategoricalNB(target=task.target)
    if numbers and kappa < 50 * len(columns):
        return LogisticRegression(target=task.target)
    return AdditiveModel(target=task.target, pairs="auto")


PAIRS = {
    "adult": [("hours", "relationship"), ("education_num", "occupation"), ("age", "workclass")],
    "doctor": [("disea", "hlthf"), ("disea", "hlthp"), ("disea", "physlm")],
}
"""Pairs that act together: looked up once in the rows, which no release may do, so these figures flatter."""


def by_pairs(task: Task, _: str) -> Any:
    """The additive model with the pairs of `PAIRS`."""
    return AdditiveModel(target=task.target, pairs=PAIRS[task.name])


def alone(task: Task, _: str) -> Any:
    """The additive model without pairs."""
    return AdditiveModel(target=task.target)


def in_equal_bins(task: Task, _: str) -> Any:
    """The additive model of 16 equal bins, without pairs."""
    return AdditiveModel(target=task.target, bins=16)


def by_newton(task: Task, _: str) -> Any:
    """Few passes, with the bins of the additive model."""
    return LogisticRegression(target=task.target, bins=16, method="newton")


def auc(scores: Any, truth: Any) -> float:
    """The area under the receiver's curve."""
    from scipy.stats import rankdata

    ranks, ones = rankdata(scores), int(truth.sum())
    return float((ranks[truth].sum() - ones * (ones + 1) / 2) / ones / (len(truth) - ones))


def figures(task: Task, model: Any, test: pa.Table) -> list[float]:
    """Accuracy and AUC, or R^2 twice."""
    if task.positive is None:
        truth = np.array(test[task.target].to_pylist(), float)
        left = 1 - ((model.predict(test) - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
        return [left, left]
    truth = np.array(test[task.target].to_pylist()) == task.positive
    score = model.predict_proba(test)[:, list(model.classes_).index(task.positive)]
    return [float(((score > 0.5) == truth).mean()), auc(score, truth)]


def spread(each: Any) -> str:
    """Means and standard deviations, to four digits."""
    columns = np.array(each).T
    return " / ".join(
        f"{c.mean():.4f} +- {c.std():.4f}" for c in (columns[:1] if np.ptp(columns, 0).max() == 0 else columns)
    )


def ours(
    task: Task, draws: int, pick: Callable[[Task, str], Any] = chosen, epsilons: Sequence[str] = EPSILONS
) -> list[list[list[float]]]:
    """A line for each epsilon: the mean and spread over draws, the goal, seconds a fit. Returns the figures."""
    train, test = task.parts
    lines, all_of_them = [], []
    for epsilon in epsilons:
        each, start = [], time.process_time()
        for _ in range(draws):
            model = pick(task, epsilon).fit(train, columns=task.columns, epsilon=epsilon, delta=DELTA)
            each.append(figures(task, model, test))
        seconds = (time.process_time() - start) / draws
        lines.append(
            [epsilon, type(model).__name__, spread(each), *_against_goal(task, epsilon, each), f"{seconds:.2f}"]
        )
        all_of_them.append(each)
    what = "accuracy / AUC" if task.positive else "R^2"
    said = f"{task.name} {task.rows.num_rows}{', fresh' if task.name in FRESH else ''}"
    print(table([said, "model", what, "goal", "reached", "CPU s"], lines), flush=True)
    return all_of_them


def _against_goal(task: Task, epsilon: str, each: list[list[float]]) -> tuple[str, str]:
    if task.name not in GOALS or epsilon not in EPSILONS:
        return "-", "-"
    goal = GOALS[task.name][EPSILONS.index(epsilon)]
    wanted = " / ".join(f"{g:.3f}" for g in (goal if task.positive else goal[:1]))
    return wanted, "yes" if all(m >= g for m, g in zip(np.mean(each, axis=0), goal, strict=True)) else "no"


def beside(task: Task, own: list[list[list[float]]], draws: int, epsilons: Sequence[str] = EPSILONS) -> None:
    """Every rival's mean and spread, and whether the best of each figure is above ours by more than ours' spread."""
    lines: dict[str, list[str]] = {}
    verdicts = []
    for at, (epsilon, each) in enumerate(zip(epsilons, own, strict=True)):
        theirs = rivals.of_task(task, epsilon, draws)
        for name, measured in theirs.items():
            count = "" if len(measured) == draws else f" ({len(measured)})"
            lines.setdefault(name, ["-"] * len(epsilons))[at] = spread(measured) + count
        verdicts.append(_verdict(each, theirs))
    rows = [[n, *cells] for n, cells in lines.items()] + [["a rival above by an sd", *verdicts]]
    print(table([f"{task.name}, rivals", *epsilons], rows), flush=True)


def _verdict(own: list[list[float]], theirs: Mapping[str, list[list[float]]]) -> str:
    mean, deviation = np.mean(own, axis=0), np.std(own, axis=0)
    if not theirs:
        return "-"
    best = np.max([np.mean(each, axis=0) for each in theirs.values()], axis=0)
    return " / ".join("yes" if b > m + s else "no" for b, m, s in zip(best, mean, deviation, strict=True))


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


def _sets() -> dict[str, tuple[pa.Table, dict[str, Any], int, int]]:
    """What is clustered and projected: rows, declarations, how many centres, how many components (0: none)."""
    census, survey, income = adult(), acs(), acs("income")
    names = ["age", "education_num", "gain", "loss", "hours"]
    five = {n: hb.between(census.columns[n].low, census.columns[n].high, nullable=False) for n in names}
    three = {n: income.columns[n] for n in ("AGEP", "DENSITY", "income")}
    pixels = digits()
    pictures = pa.table({f"p{i}": pixels[:, i] for i in range(pixels.shape[1])})
    whole = {f"p{i}": hb.between(0, 16, nullable=False) for i in range(pixels.shape[1])}
    without = {n: c for n, c in census.columns.items() if n != "income"} | five
    seen = {n: c for n, c in survey.columns.items() if n not in ("high", "INDP")}
    return {
        "adult, 5 numbers": (census.rows, five, 8, 0),
        "ACS, 3 numbers": (income.rows, three, 8, 0),
        "digits": (pictures, whole, 10, 10),
        "adult": (census.rows, without, 0, 5),
        "ACS": (survey.rows, seen, 0, 5),
    }


PARTS: dict[str, tuple[list[float], list[float]]] = {
    "adult, 5 numbers": ([0.0435, 0.0386, 0.0390], []),
    "digits": ([9.3, 4.62, 2.64], [0.168, 0.341, 0.694]),
    "adult": ([], [0.393, 0.478, 0.479]),
    "ACS": ([], [0.193, 0.352, 0.355]),
}
"""Figures of the prototypes, of k-means and of components; the goal is these less 3 %."""


def _moved(rows: pa.Table, columns: Mapping[str, Any], low_end: float) -> Any:
    """Numbers in [low_end, 1], NULL in the middle, and a column for each value."""
    parts = []
    for name, declared in columns.items():
        values = rows[name].to_pylist()
        if hasattr(declared, "low"):
            low, high = float(declared.low), float(declared.high)
            numbers = np.array([(low + high) / 2 if v is None else float(v) for v in values])
            share = (np.clip(numbers, low, high) - low) / (high - low)
            parts.append((share * (1 - low_end) + low_end)[:, None])
        else:
            parts.append(np.array([[float(v == u) for u in declared.values] for v in values]))
    return np.hstack(parts)


def components(draws: int, with_rivals: bool) -> None:
    """Mean inertia of k-means, of numbers in [0, 1]; and the share of variance that principal components keep, of
    numbers in [-1, 1], as they are to ours, and values with a column each."""
    for name, (rows, columns, centres, parts) in _sets().items():
        if centres:
            lines = [_clusters_line(name, at, rows, columns, centres, draws, with_rivals) for at in range(3)]
            _show(f"k-means, {centres} centres, {name}", lines, with_rivals)
        if parts:
            lines = [_parts_line(name, at, rows, columns, parts, draws, with_rivals) for at in range(3)]
            _show(f"PCA, {parts} components, {name}", lines, with_rivals)


def _show(said: str, lines: list[list[str]], with_rivals: bool) -> None:
    head = [said, "ours", "goal", "reached", "without privacy", *(["diffprivlib"] if with_rivals else [])]
    print(table(head, lines), flush=True)


def _theirs(measured: rivals.Figures, draws: int) -> str:
    said = (spread(each) + ("" if len(each) == draws else f" ({len(each)})") for each in measured.values())
    return next(said, "-")


def _clusters_line(
    name: str, at: int, rows: pa.Table, columns: Mapping[str, Any], many: int, draws: int, with_rivals: bool
) -> list[str]:
    from sklearn.cluster import KMeans as Plain

    epsilon, x = EPSILONS[at], _moved(rows, columns, 0.0)

    def inertia(centres: Any) -> float:
        return float(np.min([((x - c) ** 2).sum(axis=1) for c in centres], axis=0).mean())

    each = []
    for _ in range(draws):
        model = KMeans(list(columns), n_clusters=many).fit(rows, columns=columns, epsilon=epsilon, delta=DELTA)
        each.append([inertia((model.cluster_centers_ + 1) / 2)])
    goals = PARTS.get(name, ([], []))[0]
    goal = f"{goals[at] * 1.03:.4f}" if goals else "-"
    reached = "-" if not goals else "yes" if np.mean(each) <= float(goal) else "no"
    ceiling = f"{inertia(Plain(many, n_init=3, random_state=0).fit(x).cluster_centers_):.4f}"
    line = [epsilon, spread(each), goal, reached, ceiling]
    if with_rivals:
        line.append(_theirs(rivals.of_components(x, "clusters", many, 0.0, len(columns), epsilon, draws), draws))
    return line


def _parts_line(
    name: str, at: int, rows: pa.Table, columns: Mapping[str, Any], many: int, draws: int, with_rivals: bool
) -> list[str]:
    epsilon, x = EPSILONS[at], _moved(rows, columns, -1.0)
    z = x - x.mean(axis=0)

    def kept(directions: Any) -> float:
        q = np.linalg.qr(directions.T)[0]
        return float(((z @ q) ** 2).sum() / (z**2).sum())

    each = []
    for _ in range(draws):
        model = PCA(list(columns), n_components=many).fit(rows, columns=columns, epsilon=epsilon, delta=DELTA)
        each.append([kept(model.components_)])
    goals = PARTS.get(name, ([], []))[1]
    goal = f"{goals[at] * 0.97:.4f}" if goals else "-"
    reached = "-" if not goals else "yes" if np.mean(each) >= float(goal) else "no"
    ceiling = f"{kept(np.linalg.eigh(z.T @ z)[1][:, -many:].T):.4f}"
    line = [epsilon, spread(each), goal, reached, ceiling]
    if with_rivals:
        low = [-1.0 if hasattr(c, "low") else 0.0 for c in columns.values()]
        ends = [e for e, c in zip(low, columns.values(), strict=True) for _ in range(len(getattr(c, "values", "1")))]
        line.append(_theirs(rivals.of_components(x, "components", many, ends, len(columns), epsilon, draws), draws))
    return line


def synthetic(draws: int) -> None:
    """The additive model of adult's income, trained on a synthetic table, and directly at the same cost."""
    task = adult()
    train, test = task.parts
    lines = []
    for epsilon in EPSILONS:
        each = [figures(task, _from_synthetic(task, train, epsilon), test) for _ in range(draws)]
        direct = [
            figures(
                task,
                AdditiveModel(target="income").fit(train, columns=task.columns, epsilon=epsilon, delta=DELTA),
                test,
            )
            for _ in range(draws)
        ]
        lines.append([epsilon, spread(each), spread(direct)])
    print(table(["adult, accuracy / AUC", "trained on a synthetic table", "directly"], lines), flush=True)


def _from_synthetic(task: Task, train: pa.Table, epsilon: str) -> Any:
    """The additive model of synthetic rows, which are public: so it is fitted with hardly any noise."""
    budget, private = hb.Budget(epsilon=epsilon, delta=DELTA), hb.table(train, unit=hb.EACH_ROW, columns=task.columns)
    with tempfile.TemporaryDirectory() as folder:
        with hb.Session({"t": private}, budget=budget, ledger=f"{folder}/ledger.db") as session:
            drawn = session.synthesize("t", epsilon=epsilon, target=task.target).to_pandas()
    rows = pa.Table.from_pandas(drawn, preserve_index=False)
    return AdditiveModel(target=task.target).fit(rows, columns=task.columns, epsilon=10_000, delta=DELTA)


def halfspaces(draws: int) -> None:
    """S4: the error of a halfspace with a margin, learned by trying every one on a grid (7 values for each weight) and
    by descent, and how long each takes; epsilon 1."""
    rng = np.random.default_rng(0)
    lines = []
    for d, n in ((1, 1000), (2, 1000), (3, 250), (3, 1000), (3, 4000), (4, 1000), (10, 1000), (10, 4000), (10, 16_000)):
        cells = [str(d), str(n)]
        for learn in (_by_enumeration, _by_descent) if d < 5 else (None, _by_descent):
            if learn is None:
                cells += ["-", f"{7**d:,} x 7 to try"]
                continue
            start, errors = time.process_time(), []
            for _ in range(draws):
                normal = rng.integers(-3, 4, d)
                normal[0] = 3
                x, more = _with_margin(rng, normal, n), _with_margin(rng, normal, 4000)
                errors.append([float((learn(x, x @ normal >= 0, more) != (more @ normal >= 0)).mean())])
            cells += [spread(errors), f"{(time.process_time() - start) / draws:.2f}"]
        lines.append(cells)
    print(table(["d", "rows", "error, every one", "CPU s", "error, descent", "CPU s"], lines), flush=True)


def _with_margin(rng: Any, normal: Any, n: int) -> Any:
    """Points of the cube at a distance of at least a tenth from the plane."""
    x = rng.uniform(-1, 1, (4 * n, len(normal)))
    return x[np.abs(x @ normal) >= 0.1 * np.linalg.norm(normal)][:n]


def _by_enumeration(x: Any, label: Any, more: Any) -> Any:
    every = all_halfspaces(x.shape[1], steps=3)
    learner = FiniteClassLearner(hypotheses=every, epsilon=1, neighbours="add_remove")
    return every[learner.release(x, label)](more)


def _by_descent(x: Any, label: Any, more: Any) -> Any:
    names = [f"x{i}" for i in range(x.shape[1])]
    columns: dict[str, Any] = {name: hb.between(-1, 1, nullable=False) for name in names}
    rows = dict(zip(names, x.T, strict=True)) | {"above": np.where(label, "yes", "no")}
    model = LogisticRegression(target="above")
    model.fit(rows, columns=columns | {"above": hb.one_of("no", "yes")}, epsilon=1, delta=DELTA)
    return model.predict(dict(zip(names, more.T, strict=True))) == "yes"


def _others(task: Task, arguments: list[str]) -> list[tuple[str, Callable[[Task, str], Any]]]:
    """The other models that are asked for beside the one of the rule."""
    others: list[tuple[str, Callable[[Task, str], Any]]] = []
    if "newton" in arguments and task.positive is not None:
        others.append(("by newton", by_newton))
    if {"pairs", "bins"} & set(arguments):
        others.append(("without pairs", alone))
    if "bins" in arguments:
        others.append(("16 equal bins, without pairs", in_equal_bins))
    if "pairs" in arguments and task.name in PAIRS:
        others.append(("with named pairs", by_pairs))
    return others


def main(arguments: list[str]) -> int:
    """The command line of this module."""
    if arguments[:1] == ["install"]:
        for name in rivals.NAMES:
            peers.install(name)
        return 0
    parts = {"speed", "clusters", "synthetic", "halfspaces"}
    known = {*parts, *TASKS, "rivals", "newton", "pairs", "bins"}
    unknown = [a for a in arguments if a not in known and not a.startswith(("draws=", "epsilons="))]
    if unknown:
        print(__doc__)
        return 0 if unknown[0] in ("-h", "--help") else 2
    more = parts & set(arguments)
    options = dict(a.split("=", 1) for a in arguments if "=" in a)
    draws, epsilons = int(options.get("draws", 20)), tuple(options.get("epsilons", ",".join(EPSILONS)).split(","))
    asked = [a for a in arguments if a in TASKS] or ([] if more else list(TASKS))
    print(json.dumps({"delta": DELTA, "rho": [float(rho_of_epsilon(e, DELTA)) for e in epsilons], "draws": draws}))
    for name in asked:
        try:
            task = TASKS[name]()
        except (ImportError, FileNotFoundError) as error:
            print(f"({name}: its rows are not here: {error})", flush=True)
            continue
        own = ours(task, draws, epsilons=epsilons)
        for said, pick in _others(task, arguments):
            print(f"{said}:")
            ours(task, draws, pick, epsilons)
        if "rivals" in arguments:
            beside(task, own, draws, epsilons)
    if "speed" in more:
        speed()
    if "clusters" in more:
        components(draws, "rivals" in arguments)
    if "synthetic" in more:
        synthetic(draws)
    if "halfspaces" in more:
        halfspaces(draws)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
