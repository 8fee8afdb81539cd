"""Everything that a user can name has hover documentation."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import gatewright
import pytest

MODULES = ["gatewright", *(f"gatewright.{name}" for name in ("middleware", "report", "types", "webhooks"))]
PACKAGE = Path(gatewright.__file__).parent


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        value = getattr(module, name)
        # The types of requests and responses are documented in their stub, and constants where they are
        # defined.
        is_ours = getattr(value, "__module__", "").startswith("gatewright")
        if is_ours and (inspect.isclass(value) or inspect.isroutine(value)):
            yield name, value


def members(owner: type) -> Iterator[tuple[str, object]]:
    for name, value in vars(owner).items():
        described = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        # A property is a data descriptor, too.
        is_member = inspect.isroutine(described) or inspect.isdatadescriptor(described)
        if is_member and not name.startswith("_"):
            yield name, described


def explained(value: object) -> set[str]:
    """Names in the value's module whose documentation follows their assignment, where editors look for it."""
    body = ast.parse(inspect.getsource(importlib.import_module(value.__module__))).body
    pairs = itertools.pairwise(body)
    return {
        target.id
        for first, second in pairs
        if isinstance(first, ast.Assign) and isinstance(second, ast.Expr)
        for target in first.targets
        if isinstance(target, ast.Name) and isinstance(second.value, ast.Constant)
    }


def undocumented(module: ModuleType) -> list[str]:
    missing = []
    for name, value in public(module):
        if not (value.__doc__ or "").strip() and name not in explained(value):
            missing.append(name)
        if inspect.isclass(value):
            # An undocumented member may inherit the documentation of a base.
            missing += [
                f"{name}.{member}" for member, it in members(value) if not (inspect.getdoc(it) or "").strip()
            ]
    return missing


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_of_a_module_has_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    assert undocumented(module) == []


def test_every_method_of_every_resource_has_a_docstring_with_its_arguments() -> None:
    resources = importlib.import_module("gatewright.generated.resources")
    seen = 0
    for name, owner in inspect.getmembers(resources, inspect.isclass):
        if owner.__module__ != resources.__name__:
            continue
        for method, value in members(owner):
            text = inspect.getdoc(value) or ""
            assert text, f"{name}.{method}"
            if inspect.isroutine(value):
                seen += 1
                given = [one for one in inspect.signature(value).parameters if one != "self"]
                assert [one for one in given if f"{one}:" not in text] == [], f"{name}.{method}"
    assert seen >= 30


def bare(tree: ast.Module) -> Iterator[str]:
    """Public classes of a stub, and their public members, without a docstring."""
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            yield node.name
        for member in node.body:
            is_public = isinstance(member, ast.FunctionDef) and not member.name.startswith("_")
            if is_public and not ast.get_docstring(member):
                yield f"{node.name}.{member.name}"


def test_public_engine_types_are_documented_in_their_stub() -> None:
    tree = ast.parse((PACKAGE / "_engine.pyi").read_text())
    met = set(gatewright.__all__)
    assert [name for name in bare(tree) if name.split(".")[0] in met] == []


def test_every_request_and_response_type_is_documented_in_its_stub() -> None:
    text = (PACKAGE / "generated" / "types.pyi").read_text()
    assert list(bare(ast.parse(text))) == []
