"""`make docs` builds the site with the options of its recipe, and fails on links that lead nowhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEAD = {
    "[a page](nowhere.md)": "nowhere.md",
    "[a heading](index.md#nowhere)": "#nowhere",
    "[a picture](assets/nowhere.png)": "nowhere.png",
    "[a name][panes.nowhere]": "panes.nowhere",
}


def build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    """Run the recipe of `make docs` on a site of one page, with the project's configuration."""
    recipe = re.search(r"^docs:.*\n\t.*/mkdocs (build.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    config |= {"nav": ["index.md"], "hooks": [], "extra_css": []}
    (folder / "docs").mkdir()
    (folder / "docs/index.md").write_text(page, "utf-8")
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config), "utf-8")
    command = [sys.executable, "-W", "ignore", "-m", "mkdocs", *recipe[1].split()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_dead_links_fail(tmp_path):
    built = build(tmp_path, "# Home\n\n" + "\n\n".join(DEAD))
    assert built.returncode == 1, built.stderr
    warnings = [line for line in built.stderr.splitlines() if line.startswith("WARNING")]
    assert all(any(target in line for line in warnings) for target in DEAD.values()), built.stderr
