"""The examples in docstrings work: every `>>>` of the package. `cargo xtask test guides` runs the guides."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gatewright
import pytest
from conftest import ROOT, Gateway


def docstrings() -> Iterator[Any]:
    modules = ["gatewright"]
    modules += [one.name for one in pkgutil.walk_packages(gatewright.__path__, "gatewright.")]
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in modules:
        # Neither can be imported: one runs the program, the other is already loaded.
        if name in ("gatewright.__main__", "gatewright._engine"):
            continue
        for found in finder.find(importlib.import_module(name), name):
            if found.examples:
                yield pytest.param(found, id=found.name)


@pytest.fixture
def workplace(gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder with reports, as in the documentation, and the gateway in the environment."""
    shutil.copytree(ROOT / "examples" / "reports", tmp_path / "runs")
    monkeypatch.setenv("GATEWRIGHT_BASE_URL", gateway.base_url)
    monkeypatch.setenv("GATEWRIGHT_API_KEY", gateway.key)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("docstring", list(docstrings()))
def test_the_examples_of_docstrings_run(docstring: doctest.DocTest) -> None:
    # Examples of methods assume an existing client.
    if ".generated." in docstring.name:
        docstring.globs["client"] = gatewright.Client()
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(docstring, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)


def test_each_operation_shows_its_specification_example() -> None:
    names = [param.values[0].name for param in docstrings()]
    shown = [name.removeprefix("gatewright.generated.resources.") for name in names if ".resources." in name]
    assert {"ChatCompletions.create", "Responses.create", "Images.generate", "NativeModels.list"} <= set(
        shown
    )
    assert len(shown) >= 10
