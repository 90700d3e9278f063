"""Turn the Markdown pages, which are written to be read in the repository, into pages of the documentation site.

Pages of the repository's root become pages of the site, links between the two keep working, doctests are rendered as
interpreter sessions, and no page may load anything from the network.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

_LINK = re.compile(r"(\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s#]+)(#[^)\s]*)?\)")
_EXTERNAL = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")
_DOCTEST = re.compile(r"^```python\n(>>> .*?)\n```$", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    from mkdocs.structure.files import File

    for source, target in ROOT_PAGES.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Redirect links across the border of docs/, and render doctests as sessions."""
    of_root = page.file.src_uri in ROOT_PAGES.values()
    folder = ROOT if of_root else (ROOT / "docs" / page.file.src_uri).parent
    depth = "../" * page.file.src_uri.count("/")

    def redirect(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        path = (folder / target).resolve()
        if "://" in target or not path.is_relative_to(ROOT):
            return match[0]
        inside = path.relative_to(ROOT).as_posix()
        if inside.startswith("docs/"):
            return f"{text}({depth}{inside.removeprefix('docs/')}{anchor})"
        if inside == "README.md":
            return f"{text}({depth}index.md)"
        # Code and examples are not part of the site: their names stay, without a link.
        return f"{text}({depth}{ROOT_PAGES[inside]}{anchor})" if inside in ROOT_PAGES else text[1:-1]

    return _DOCTEST.sub(_as_session, _LINK.sub(redirect, markdown))


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Fail if a page loads scripts, styles, fonts or pictures from elsewhere."""
    from mkdocs.exceptions import PluginError

    if found := _EXTERNAL.search(output):
        raise PluginError(f"{page.file.src_uri} loads something from the network: {found[0]}")
    return output


def _as_session(match: re.Match[str]) -> str:
    # The blank line that ends a doctest is noise on a page.
    return f"```pycon\n{match[1].rstrip()}\n```"
