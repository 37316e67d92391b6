"""Does the README tell the truth: do its commands, examples, files and links work?

A block that calls ``rackbound`` or ``python`` says above itself how it is tested: ``<!-- run -->`` for the command
line tests here, ``<!-- not run here: reason -->`` otherwise. ``<!-- file: name -->`` is a file the examples use.
"""

import contextlib
import doctest
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = (
    "python -m pip install . && rackbound evaluate hgx-h100-8 gb200-nvl72 --model deepseek-v3",
    'python -m pip install -e ".[dev]" && python -m pytest',
)
FENCE = re.compile(r"(?:<!-- (?P<mark>[^>]*?) -->\n+)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    mark: str
    language: str
    body: str

    @property
    def commands(self) -> list[str]:
        """The command lines: all of a bash block, those after "$ " of a console block."""
        lines = self.body.replace("\\\n", " ").splitlines()
        if self.language == "console":
            return [line[2:] for line in lines if line.startswith("$ ")]
        return [line for line in lines if line.strip() and not line.startswith("#")]


BLOCKS = [Block(m["mark"] or "", m["language"], m["body"]) for m in FENCE.finditer(README)]
SHELL = [block for block in BLOCKS if block.language in ("bash", "console")]
RUN = [line for block in SHELL if block.mark == "run" for line in block.commands]
PYTHON = [block.body for block in BLOCKS if block.language == "python"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder outside the checkout that holds the files the README shows."""
    for block in BLOCKS:
        if block.mark.startswith("file: "):
            (tmp_path / block.mark.removeprefix("file: ")).write_text(block.body)
    return tmp_path


def test_every_fence_was_read() -> None:
    assert len(BLOCKS) * 2 == len(re.findall(r"^```", README, re.M))
    assert RUN
    assert PYTHON


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.body[:40])
def test_every_command_block_says_how_it_is_tested(block: Block) -> None:
    assert re.fullmatch(r"run|not run here: .+", block.mark), "mark it <!-- run --> or <!-- not run here: reason -->"


@pytest.mark.parametrize("command", COMMANDS)
def test_two_commands_are_the_ones_ci_runs(command: str) -> None:
    assert command in README.splitlines()
    assert command in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("line", RUN)
def test_command_line(line: str, folder: Path) -> None:
    program, *arguments = shlex.split(line, comments=True)
    assert program == "rackbound", "only rackbound is run here; mark the block <!-- not run here: reason -->"
    start = "import sys; from rackbound._cli import main; sys.argv[0] = 'rackbound'; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", start, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_python_examples(folder: Path) -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    said: list[str] = []
    names: dict[str, object] = {}
    with contextlib.chdir(folder):
        for number, body in enumerate(PYTHON, 1):
            examples = doctest.DocTestParser().get_doctest(body, names, f"README python block {number}", "README.md", 0)
            assert examples.examples, f"python block {number} has no >>> example, so nothing tests it"
            runner = doctest.DocTestRunner(optionflags=flags)
            runner.run(examples, out=said.append, clear_globs=False)
            names = examples.globs  # later blocks go on where earlier ones stopped
    assert "".join(said) == ""


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert [target for target in targets if not (ROOT / target).exists()] == []
