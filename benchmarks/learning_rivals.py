"""The rivals of `benchmarks.learning`: diffprivlib's and InterpretML's models, in environments of their own.

Each fits as often as ours do, each time with other noise, unless that takes more than two CPU minutes a model and
epsilon; then as often as the time allows, and the line says how often. A model that fails, or does not finish one fit,
is named and left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.learning_tasks import Task

__all__ = ["NAMES", "Figures", "of_components", "of_task"]

peers.PEERS["diffprivlib"] = ["diffprivlib==0.6.6", "scikit-learn==1.6.1"]
peers.PEERS["interpret"] = ["interpret-core==0.7.8", "scikit-learn"]
NAMES = ("diffprivlib", "interpret")

Figures = dict[str, list[list[float]]]
"""By the name of a model: the figures of each of its fits."""

_RUN = """
import json, signal, sys, warnings, numpy as np
warnings.filterwarnings("ignore")
d = np.load(sys.argv[1], allow_pickle=True); eps = float(sys.argv[2]); draws = int(sys.argv[3])
res = {}
def stop(*_): raise TimeoutError
signal.signal(signal.SIGPROF, stop)
def run(name, one):
    out = []
    signal.setitimer(signal.ITIMER_PROF, 120)
    try:
        for s in range(draws):
            out.append(one(s))
    except TimeoutError:
        pass
    except Exception as error:
        print(name, type(error).__name__, error, file=sys.stderr)
    signal.setitimer(signal.ITIMER_PROF, 0)
    res[name] = out
def r2(p, b): return [float(1 - ((p - b) ** 2).sum() / ((b - b.mean()) ** 2).sum())] * 2
"""

_CLASSES = {
    "diffprivlib": """
import diffprivlib.models as m
from sklearn.metrics import roc_auc_score
X, y, A, b, k = d["X"], d["y"], d["A"], d["b"], int(d["k"])
def told(make, X, A):
    def one(s):
        f = make(s).fit(X, y); p = f.predict_proba(A)[:, 1]
        return [float((f.predict(A) == b).mean()), float(roc_auc_score(b, np.nan_to_num(p)))]
    return one
def unit(Z): return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-9)
ends = (np.zeros(X.shape[1]), np.ones(X.shape[1]))
def line(norm, c): return lambda s: m.LogisticRegression(epsilon=eps, data_norm=norm, C=c, max_iter=300, random_state=s)
run("LogReg sqrt k", told(line(k ** .5, 1.0), X, A))
run("LogReg norm 1", told(line(1.0, 1.0), unit(X), unit(A)))
run("LogReg norm 1, C .1", told(line(1.0, .1), unit(X), unit(A)))
run("GaussianNB", told(lambda s: m.GaussianNB(epsilon=eps, bounds=ends, random_state=s), X, A))
run("Forest", told(lambda s: m.RandomForestClassifier(epsilon=eps, bounds=ends, classes=[0, 1], random_state=s), X, A))
print(json.dumps(res))
""",
    "interpret": """
from interpret.privacy import DPExplainableBoostingClassifier as E
from sklearn.metrics import roc_auc_score
X, A, y, b = d["R"], d["S"], d["y"], d["b"]
types = ["nominal" if t else "continuous" for t in d["nominal"]]
bounds = {i: tuple(v) for i, v in enumerate(d["ends"].tolist()) if not d["nominal"][i]}
def one(s):
    f = E(epsilon=eps, delta=1e-5, feature_types=types, privacy_bounds=bounds, random_state=None).fit(X, y)
    p = f.predict_proba(A)[:, 1]
    return [float(((p > .5) == b).mean()), float(roc_auc_score(b, p))]
run("DP-EBM", one)
print(json.dumps(res))
""",
}

_NUMBERS = {
    "diffprivlib": """
import diffprivlib.models as m
X, y, A, b = d["X"], d["y"], d["A"], d["b"]
ends, of_y = (np.zeros(X.shape[1]), np.ones(X.shape[1])), tuple(d["range"].tolist())
def one(s):
    f = m.LinearRegression(epsilon=eps, bounds_X=ends, bounds_y=of_y, random_state=s).fit(X, y)
    return r2(np.clip(f.predict(A), *of_y), b)
run("LinearRegression", one)
print(json.dumps(res))
""",
    "interpret": """
from interpret.privacy import DPExplainableBoostingRegressor as E
X, A, y, b = d["R"], d["S"], d["y"], d["b"]
low, high = d["range"].tolist()
types = ["nominal" if t else "continuous" for t in d["nominal"]]
bounds = {i: tuple(v) for i, v in enumerate(d["ends"].tolist()) if not d["nominal"][i]}
def one(s):
    f = E(epsilon=eps, delta=1e-5, feature_types=types, privacy_bounds=bounds, privacy_target_min=low,
        privacy_target_max=high, random_state=None).fit(X, y)
    return r2(np.clip(f.predict(A), low, high), b)
run("DP-EBM", one)
print(json.dumps(res))
""",
}

_PARTS = {
    "diffprivlib": """
import diffprivlib.models as m
X, parts, low, norm = d["X"], int(d["parts"]), d["low"], float(d["norm"])
ends = (low * np.ones(X.shape[1]), np.ones(X.shape[1]))
def clusters(s):
    c = m.KMeans(n_clusters=parts, epsilon=eps, bounds=ends, random_state=s).fit(X).cluster_centers_
    return [float(np.min([((X - v) ** 2).sum(axis=1) for v in c], axis=0).mean())]
def kept(s):
    f = m.PCA(n_components=parts, epsilon=eps, data_norm=norm, bounds=ends, random_state=s).fit(X)
    Z, q = X - X.mean(axis=0), np.linalg.qr(f.components_.T)[0]
    return [float(((Z @ q) ** 2).sum() / (Z ** 2).sum())]
if str(d["kind"]) == "clusters":
    run("KMeans", clusters)
else:
    run("PCA", kept)
print(json.dumps(res))
"""
}


def _run(codes: Mapping[str, str], held: Mapping[str, Any], epsilon: str, draws: int) -> Figures:
    """The figures of every rival that is installed; says which is not, or has none."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.npz"
        np.savez(path, **held)
        for peer, code in codes.items():
            try:
                measured = peers.run(peer, _RUN + code, path, epsilon, draws, timeout=1800)
            except (peers.MissingPeer, RuntimeError) as error:
                print(f"({peer}: {str(error).strip().splitlines()[-1]})", flush=True)
                continue
            for name, each in measured.items():
                if not each:
                    print(f"({peer} {name}, epsilon {epsilon}: no fit within two minutes, or it failed)", flush=True)
                else:
                    figures[f"{peer} {name}"] = each
    return figures


def of_task(task: Task, epsilon: str, draws: int) -> Figures:
    """Accuracy and AUC of each fit, or R^2 twice."""
    return _run(_NUMBERS if task.positive is None else _CLASSES, _arrays(task), epsilon, draws)


def of_components(rows: Any, kind: str, parts: int, low: Any, columns: int, epsilon: str, draws: int) -> Figures:
    """Mean inertia of k-means, or the share of variance that components keep. low: where each column's range begins,
    which ends at 1; columns: of how many a row is made, so that its length is at most their root."""
    held = {"X": rows, "kind": kind, "parts": parts, "low": low, "norm": columns**0.5}
    return _run(_PARTS, held, epsilon, draws)


def _arrays(task: Task) -> dict[str, Any]:
    """The task as the rivals take it: one-hot with numbers in [0, 1], and raw columns."""
    parts = task.parts
    names = [n for n in task.columns if n != task.target]
    dense, raw = zip(*(_of_part(task, part, names) for part in parts), strict=True)
    targets = [np.array(part[task.target].to_pylist()) for part in parts]
    if task.positive is None:
        y, b = (np.array(t, float) for t in targets)
    else:
        y, b = ((t == task.positive).astype(int) for t in targets)
    nominal = [not hasattr(task.columns[n], "low") for n in names]
    ends = [[0.0, 1.0] if n else _ends(task.columns[c]) for n, c in zip(nominal, names, strict=True)]
    held: dict[str, Any] = {"X": dense[0], "A": dense[1], "R": raw[0], "S": raw[1], "y": y, "b": b}
    if task.positive is None:
        held["range"] = _ends(task.columns[task.target])
    return held | {"k": len(names), "nominal": nominal, "ends": ends}


def _ends(declared: Any) -> list[float]:
    return [float(declared.low), float(declared.high)]


def _of_part(task: Task, part: Any, names: Sequence[str]) -> tuple[Any, Any]:
    dense, plain = [], []
    for name in names:
        values, declared = part[name].to_pylist(), task.columns[name]
        if not hasattr(declared, "low"):
            dense.append(np.array([[float(v == u) for u in declared.values] for v in values]))
            plain.append(np.array(values, object))
        else:
            low, high = _ends(declared)
            numbers = np.array([(low + high) / 2 if v is None else float(v) for v in values])
            dense.append(((numbers - low) / (high - low))[:, None])
            plain.append(numbers.astype(object))
    return np.hstack(dense), np.stack(plain, axis=1)
