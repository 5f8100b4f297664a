"""No circles of imports: those inside functions, relative ones and those by a name that is computed count too.

import-linter looks at the modules beside each other. This looks at single modules, a package's own `__init__` among
them, so that a module that imports the package it stands in is seen. What stands under `TYPE_CHECKING` is no import.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
BY_NAME = {
    "hubbub.accounting": "_LATER",
    "hubbub.cli.main": "COMMANDS",
    "hubbub.ledger": "_LATER",
    "hubbub.mechanisms": "_LATER",
    "hubbub.service.nursery": "_LOADED",
    "hubbub.sql.text.templates": "_WRITER",
    "hubbub.synthesis": "_LATER",
    "hubbub.tables": "_LATER",
    "hubbub.verbs": "_HOME",
}
"""Who imports modules by names that are computed, and which of its constants has those names."""
NOT_OURS = {
    "hubbub",  # its names come from every room, and no module imports a name of its own
    "hubbub.cli.audit",  # a module that somebody names at the command line
    "hubbub.late",  # for others, which are listed
}


def _modules() -> dict[str, Path]:
    return {
        ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): file
        for file in sorted((SOURCE / "hubbub").rglob("*.py"))
    }


def _imported(tree: ast.AST, package: str) -> Iterator[str]:
    """The modules and names that a tree imports, with dots, wherever it does so."""
    for node in _run(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                base = ".".join([*above, *([module] if module else [])])
                yield from (f"{base}.{name.name}" for name in names)
            case ast.Call(func=ast.Name(id="import_module" | "late" | "__import__"), args=[argument, *_]):
                yield argument.value if isinstance(argument, ast.Constant) else "?"
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[argument, *_]):
                yield argument.value if isinstance(argument, ast.Constant) else "?"
            case ast.Call(func=ast.Name(id="late_names")):
                yield "?"


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree but those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from (other, *_run(other))
        else:
            yield child
            yield from _run(child)


def _edges(modules: Mapping[str, Path]) -> dict[str, set[str]]:
    edges: dict[str, set[str]] = {}
    for name, file in modules.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        imported = set(_imported(ast.parse(file.read_text("utf-8")), package))
        if "?" in imported and name not in NOT_OURS:
            imported |= _by_name(name, modules)
        homes = (part if part in modules else part.rpartition(".")[0] for part in imported)
        edges[name] = {home for home in homes if home in modules and home not in (name, "hubbub")}
    return edges


def _by_name(name: str, modules: Mapping[str, Path]) -> set[str]:
    table = getattr(importlib.import_module(name), BY_NAME[name])
    values = [table] if isinstance(table, str) else table.values() if isinstance(table, Mapping) else table
    homes = [value[0] if isinstance(value, tuple) else value for value in values]
    return {home if home in modules else f"{name}.{home}" for home in homes} & modules.keys()


def test_no_module_imports_itself_by_any_way_round() -> None:
    try:
        TopologicalSorter(_edges(_modules())).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_no_module_takes_its_names_from_the_front_of_the_house() -> None:
    """`hubbub` finds its names in every room, so that a room that took one there would be in a circle."""
    names = {
        f"{name}: {part}"
        for name, file in _modules().items()
        for part in _imported(ast.parse(file.read_text("utf-8")), name)
        if part.rpartition(".")[0] == "hubbub" and part not in _modules() and part != "hubbub.__version__"
    }
    assert names == set()


@pytest.mark.parametrize(
    "text",
    [
        "def later():\n    from room import thing",
        "def later():\n    import room.thing",
        "from . import thing",
        "from .thing import name",
        "def later():\n    return importlib.import_module('room.thing')",
        "thing = late('room.thing')",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import room.thing",
    ],
)
def test_each_way_of_importing_is_seen(text: str) -> None:
    assert any(part.startswith("room.thing") for part in _imported(ast.parse(text), "room"))


def test_what_is_imported_for_type_checkers_alone_is_not_seen() -> None:
    assert list(_imported(ast.parse("if TYPE_CHECKING:\n    import room.thing"), "room")) == []
