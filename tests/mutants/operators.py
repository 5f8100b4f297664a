"""The changes that are tried: one place of a module at a time, by its syntax tree.

    a + b     a - b             a < b    a <= b, a >= b       min(a, b)   max(a, b)
    a * b     a // b            a == b   a != b               7           8
    a and b   a or b            not a    a                    True        False
    if c:     if not c:         x if c else y   y             a statement   pass
    "text"    "text?"           f"..." with one piece left out: what SQL is made of
    [a, b]    [a] of a list or tuple that is not a constant

Docstrings, annotations, `__all__`, texts of errors, `assert`, `assert_never` and the `strict` of `zip` are left alone:
no test could, or should, notice.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from mutants.reach import owners

__all__ = ["Change", "changes", "mutated", "statements", "within"]

_SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}


@dataclass(frozen=True)
class Change:
    """One change: the line, what stood there and what stands there now. number: its place among a module's changes.

    inside: the function or class it is in, "" for the module itself.
    """

    number: int
    inside: str
    line: int
    before: str
    after: str

    @property
    def what(self) -> str:
        """What it is called wherever its line may be."""
        return f"{self.inside}: {self.before} -> {self.after}"

    def __str__(self) -> str:
        return f"{self.line} {self.what}"


def changes(source: str, *, texts: bool) -> list[Change]:
    """All changes of a module, in the order of its source. texts: whether its texts are for an engine, not people."""
    tree = ast.parse(source)
    defined = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    inside = {line: node.name for node in defined for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    places = enumerate(_places(tree))
    return [
        Change(number, inside.get(node.lineno, ""), node.lineno, _short(node), _short(new))
        for number, (node, new) in places
        if texts
        or not isinstance(new, ast.JoinedStr | ast.Constant)
        or not isinstance(node, ast.JoinedStr | ast.Constant)
        or isinstance(getattr(node, "value", None), int)
    ]


def statements(source: str) -> list[str | None]:
    """For each change, by its number, the digest of the statement that it is in (`mutants.reach`)."""
    tree = ast.parse(source)
    owner = owners(tree)
    return [owner[id(node)] for node, _ in _places(tree)]


def within(source: str, line: int) -> str:
    """The outermost function, class or statement of a module that has a line, as Python writes it."""
    for node in ast.parse(source).body:
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            return ast.unparse(node)
    return ""


def mutated(source: str, number: int) -> ast.Module:
    """The module with one change made."""
    tree = ast.parse(source)
    node, new = next(islice(_places(tree), number, None))

    class Put(ast.NodeTransformer):
        def visit(self, at: ast.AST) -> ast.AST:
            return ast.copy_location(new, at) if at is node else self.generic_visit(at)

    return ast.fix_missing_locations(Put().visit(tree))


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 110 else text[:107] + "..."


def _places(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr | ast.stmt]]:
    """Each node that can be changed, with what it becomes."""
    for node in _walk(tree):
        for new in _variants(node):
            yield node, new  # type: ignore[misc]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes whose change a test could notice."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _left_alone(child):
                continue
            yield child
            if isinstance(child, ast.Call) and getattr(child.func, "id", "") == "isinstance":
                continue
            yield from _walk(child)


def _left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(body=[ast.Raise(exc=ast.Call(func=ast.Name(id="InternalError")))]):
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.Subscript(value=ast.Name(id=("dict" | "tuple" | "Callable")))):
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.Subscript(value=ast.Attribute(attr="NDArray"))):
            return True
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "_WORDS")]):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))) | ast.keyword(arg="strict"):
            return True
        case ast.Call(func=ast.Attribute(attr="refuse") | ast.Name(id=("refuse" | "InternalError"))):
            return True
    return False


def _variants(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    match node:
        case ast.BinOp(op=op) if type(op) in _SWAPPED and not _is_text(node):
            for other in _SWAPPED[type(op)]:
                yield _with(node, op=other())
        case ast.Compare(ops=[op], left=_) if type(op) in _SWAPPED:
            for other in _SWAPPED[type(op)]:
                yield _with(node, ops=[other()])
        case ast.BoolOp(op=op, values=values):
            yield _with(node, op=_SWAPPED[type(op)][0]())
            for i in range(len(values)):
                rest = values[:i] + values[i + 1 :]
                yield rest[0] if len(rest) == 1 else _with(node, values=rest)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
            if value > 1:
                yield ast.Constant(value - 1)
        case ast.Constant(value=str() as value) if value and len(value) < 40:
            yield ast.Constant(value + "?")
        case ast.JoinedStr(values=values):
            for i, part in enumerate(values):
                if isinstance(part, ast.FormattedValue) or len(str(part.value).strip()) > 2:  # type: ignore[attr-defined]
                    yield ast.JoinedStr(values[:i] + values[i + 1 :])
        case ast.IfExp(body=body, orelse=orelse):
            yield body
            yield orelse
        case ast.If(test=test):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Call(func=ast.Name(id="isinstance")):
            yield ast.Constant(True)
            yield ast.Constant(False)
        case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
            yield _with(node, func=ast.Name(_NAMES[name], ast.Load()))
        case ast.Call(func=ast.Attribute(attr=name)) if name in _NAMES:
            yield _with(node, func=_with(node.func, attr=_NAMES[name]))
        case ast.Expr() | ast.Assign() | ast.AugAssign() if not _declares(node):
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.List(elts=elts, ctx=ast.Load()) | ast.Tuple(elts=elts, ctx=ast.Load()) if len(elts) > 1:
            if not all(isinstance(e, ast.Constant) for e in elts):
                for i in range(len(elts)):
                    yield _with(node, elts=elts[:i] + elts[i + 1 :])


def _declares(node: ast.stmt) -> bool:
    """Whether a statement names a constant of a module or class; without it nothing would be imported."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str))
        for n in (node.left, node.right)
    )


def _with(node: ast.AST, **fields: object) -> ast.expr:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new  # type: ignore[return-value]
