"""The pages say what is there: files that they name exist, and the rooms are those of the import contract."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOTS = (ROOT, ROOT / "src", ROOT / "src/panes")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

FILE = re.compile(r"(?<![\w./-])((?:[a-z_]+/)+[a-z_]+\.(?:py|json))(?![\w.])")
LINK = re.compile(r"\]\(([^)\s#:]*)(#[^)\s]*)?\)")


def _section(page: str, heading: str) -> str:
    return page.partition(f"\n{heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    """Names are relative to the repository, to ``src`` or to ``src/panes``."""
    named = set(FILE.findall(page.read_text(encoding="utf-8")))
    assert not {name for name in named if not any((root / name).is_file() for root in ROOTS)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page):
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name} links to {target}"
        if anchor and found.suffix == ".md":
            assert anchor[1:] in _anchors(found.read_text(encoding="utf-8")), f"{page.name} links to {target}{anchor}"


def _anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_rooms_are_those_of_the_import_contract():
    layers = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
    diagram = _section(ARCHITECTURE, "## The rooms").split("```")[1]
    assert [re.split(r" {2,}", line)[0] for line in diagram.strip().splitlines()] == layers


def test_the_contract_about_pyspark_names_every_room_that_computes():
    contract = next(contract for contract in CONTRACTS if "pyspark" in contract.get("forbidden_modules", ()))
    layers = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
    rooms = {f"panes.{room}" for line in layers for room in line.split(" | ")}
    assert rooms - set(contract["source_modules"]) == {"panes.cli", "panes.demo", "panes.testing", "panes.spark"}


def test_every_room_has_a_line_in_contributing():
    listed = set(re.findall(r"^\| `([a-z_]+)`", _section(CONTRIBUTING, "## Where things go"), re.MULTILINE))
    assert listed == {path.parent.name for path in ROOT.glob("src/panes/*/__init__.py")}


def test_every_recipe_is_carried_out_by_a_test():
    recipes = re.split(r"^### ", _section(CONTRIBUTING, "## Recipes"), flags=re.MULTILINE)[1:]
    assert recipes
    for recipe in recipes:
        heading, _, text = recipe.partition("\n")
        tests = re.findall(r"tests/recipes/test_\w+\.py", text)
        assert tests, f"{heading!r} names no test"
        assert all((ROOT / test).is_file() for test in tests), heading
        carried_out = {line.strip() for test in tests for line in (ROOT / test).read_text("utf-8").splitlines()}
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            shown = {re.sub(r"  # .*", "", line).strip() for line in block.splitlines()}
            assert shown - {""} <= carried_out, f"{heading}: the test does otherwise"


def test_the_glossary_explains_each_word_once_in_order():
    sections = [re.findall(r"^\*\*(.+?)\*\* – ", part, re.MULTILINE) for part in GLOSSARY.split("\n## ")[1:]]
    assert all(sections)
    assert all(words == sorted(words, key=str.lower) for words in sections)
    every = [word.lower() for words in sections for word in words]
    assert len(every) == len(set(every))


def test_the_reference_has_every_name():
    import panes

    page = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^::: panes\.(\w+)$", page, re.MULTILINE)) >= set(panes.__all__)


def test_versions_are_those_that_the_matrix_has_run():
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+)\.(\d+)\.\d+ \| ([\d., ]+) \|", page, re.MULTILINE)
    sparks = [(int(major), int(minor)) for major, minor, _ in rows]
    pythons = {python for *_, listed in rows for python in listed.split(", ")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (oldest, newest), named = (min(sparks), max(sparks)), "Programming Language :: Python :: "
    assert f"pyspark>={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}" in project["dependencies"]
    assert {named + python for python in pythons} == {c for c in project["classifiers"] if c.startswith(named)}
