"""Notebooks without Jupyter: their cells run here as they would there, and their outputs are kept beside them.

What a cell shows is what it prints, and its last expression as HTML where it has that, else as text. `!hubbub ...` runs
the command line. A cell tagged "raises-exception" shows the error's class and text; of one tagged "varies", noise may
choose the words. `HUBBUB_GOLDEN=write` writes outputs anew.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

__all__ = ["execute", "read", "shape", "write"]


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


def write(path: Path, notebook: dict[str, Any]) -> None:
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def execute(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of each code cell, in the form that a notebook keeps them."""
    space: dict[str, Any] = {"__name__": "__main__", "_shell": _shell}
    return [_outputs(cell, space) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shape(outputs: list[dict[str, Any]]) -> list[str]:
    """What two runs of a cell share: all but numbers, and the lengths and places that follow from them."""
    shown = []
    for one in outputs:
        text = "".join(one.get("text") or one.get("data", {}).get("text/html") or one.get("data", {})["text/plain"])
        text = re.sub(r"<svg.*?</svg>", "<svg>", text, flags=re.DOTALL)
        text = re.sub(r"\b(?=\d*[a-f])[0-9a-f]{12,}\b", "ID", text)
        text = re.sub(r"[-─━┃│|~]{2,}", "-", re.sub(r"[+-]?\d[\d,.]*(e[+-]\d+)?", "#", text))
        shown.append(one["output_type"] + " " + " ".join(text.split()))
    return shown


def _outputs(cell: dict[str, Any], space: dict[str, Any]) -> list[dict[str, Any]]:
    source = re.sub(r"^!(.*)$", lambda line: f"_shell({line[1]!r})", "".join(cell["source"]), flags=re.MULTILINE)
    tree, value = ast.parse(source), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    fails = "raises-exception" in cell["metadata"].get("tags", [])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(compile(tree, "cell", "exec"), space)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
        except Exception as error:
            if not fails:
                raise
            print(f"{type(error).__name__}: {error}")
        else:
            assert not fails, "nothing was raised"
    shown = [{"output_type": "stream", "name": "stdout", "text": _lines(out.getvalue())}] if out.getvalue() else []
    return shown if value is None else [*shown, _displayed(value)]


def _displayed(value: object) -> dict[str, Any]:
    data = {"text/plain": _lines(repr(value))}
    html = getattr(value, "_repr_html_", None)
    if html is not None:
        data["text/html"] = _lines(html())
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def _lines(text: str) -> list[str]:
    """The lines of a text, without the folder in which it was run."""
    return text.replace(f"{Path.cwd()}/", "").splitlines(keepends=True)


def _shell(line: str) -> None:
    from hubbub.cli.main import run

    program, *words = shlex.split(line, comments=True)
    assert program == "hubbub", line
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(words)
    print(out.getvalue(), end="")
    assert code == 0, out.getvalue()
