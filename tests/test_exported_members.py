"""What is public is sorted, exists, and says what it is for."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize("module", ["panes", "panes.testing", "panes.frames", "panes.kernels"])
def test_all_is_sorted_and_documented(module):
    public = importlib.import_module(module)
    assert list(public.__all__) == sorted(public.__all__)
    assert len(set(public.__all__)) == len(public.__all__)
    for name in public.__all__:
        documentation = getattr(public, name).__doc__
        if name.isupper():
            continue  # a constant
        assert documentation, f"{module}.{name} has no docstring"
        assert documentation.strip()


def test_everything_imported_there_is_exported():
    public = importlib.import_module("panes.testing")
    own = {name for name, value in vars(public).items() if not name.startswith("_") and not _is_module(value)}
    assert own == set(public.__all__)


def test_what_is_loaded_on_demand_is_what_is_exported():
    import panes

    assert sorted(panes._MODULE_OF) == panes.__all__
    assert set(dir(panes)) == {*panes.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        panes.nothing  # noqa: B018


def test_methods_of_public_classes_are_documented():
    import panes

    for name in panes.__all__:
        value = getattr(panes, name)
        if isinstance(value, type):
            for method, function in vars(value).items():
                public = not method.startswith("_") and callable(function)
                if public and value.__module__ != "panes.aggregates.aggregate":
                    assert function.__doc__, f"{name}.{method} has no docstring"


def _is_module(value):
    return type(value).__name__ == "module"
