"""Do the tutorials work from beginning to end: their examples and commands in order, in one folder?"""

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .test_readme import FENCE, ROOT, Block

TUTORIALS = ["placement.md"]


def blocks(text: str) -> list[Block]:
    return [Block(m["mark"] or "", m["language"], m["body"]) for m in FENCE.finditer(text)]


def words(text: str) -> str:
    """The words of a text; numbers are the business of other tests."""
    return " ".join(re.findall(r"[^\W\d_]{3,}", text))


@pytest.mark.parametrize("name", TUTORIALS)
def test_from_beginning_to_end(name: str, tmp_path: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks((ROOT / "docs" / name).read_text()):
        if block.language == "python":
            examples = doctest.DocTestParser().get_doctest(block.body, names, name, name, 0)
            said: list[str] = []
            with contextlib.chdir(tmp_path):
                runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
                runner.run(examples, out=said.append, clear_globs=False)
            names = examples.globs
            assert "".join(said) == ""
        elif block.mark == "run":
            for line in block.commands:
                _command(line, block, tmp_path)
        else:
            assert re.fullmatch("not run here: .+", block.mark), "mark it run, or say why not"


def _command(line: str, block: Block, folder: Path) -> None:
    program, *arguments = shlex.split(line, comments=True)
    assert program == "rackbound"
    start = "import sys; from rackbound._cli import main; sys.argv[0] = 'rackbound'; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", start, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env=os.environ | {"COLUMNS": "118"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for shown in block.body.splitlines() if block.language == "console" else ():
        if not shown.startswith("$ "):
            assert words(shown) in words(done.stdout), shown


@pytest.mark.parametrize("name", TUTORIALS)
def test_links_lead_somewhere(name: str) -> None:
    text = (ROOT / "docs" / name).read_text()
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert targets
    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []
