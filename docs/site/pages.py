"""What MkDocs makes pages of: the Markdown of the repository where it stands, and the files that it
links to. So links are as in the sources, and MkDocs finds those that lead nowhere."""

from __future__ import annotations

import posixpath
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

#: What there are pages of.
PAGES = [":(glob)*.md", "docs/*.md", "scenarios/*.md", "studies/*.md"]

#: Sections for pages that come and go, after those that mkdocs.yml lists.
SECTIONS = {
    "Studies": "studies/*/README.md",
    "Specifications": "docs/specs/*.md",
    "Dated measurements": "docs/notebook/*.md",
}

#: What a page would load from elsewhere.
FOREIGN = re.compile(r'<(?:script|img|iframe)[^>]+src="?https?:|<link[^>]+stylesheet[^>]+https?:')

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


def _pages() -> list[str]:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PAGES]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [page for page in listed.splitlines() if (ROOT / page).exists()]


def _linked(page: str) -> Iterator[str]:
    """The files of the repository that `page` links to."""
    for found in LINK.finditer((ROOT / page).read_text()):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[1]))
        if (ROOT / path).is_file():
            yield path


def on_config(config: Any) -> None:
    """Add the sections."""
    pages = _pages()
    for section, names in SECTIONS.items():
        config.nav.append({section: [page for page in pages if Path(page).match(names)]})


def on_files(files: Files, config: Any) -> Files:
    """All pages, and the files that they link to. What the theme brings stays."""
    pages = _pages()
    every = sorted({*pages, *(path for page in pages for path in _linked(page))})
    ours = [File.generated(config, path, abs_src_path=str(ROOT / path)) for path in every]
    return Files([*(file for file in files if file.src_dir != config.docs_dir), *ours])


def on_post_page(output: str, page: Any, **_: object) -> str:
    """Pages work without a network."""
    found = FOREIGN.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} loads {output[found.start() :][:120]}")
    return output
