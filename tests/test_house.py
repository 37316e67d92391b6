"""Does every floor keep to the house: arrows, exports, weight, size, docstrings, sources of data?"""

import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
FLOORS = ("topo", "collectives", "serving", "placement", "figures", "rackbound")  # each imports only to its left
ONLY_IN = {
    "matplotlib": {"figures"},
    "scipy.optimize": {"placement", "collectives"},  # collectives for bounds, placement for placement
    "typer": {"rackbound"},
    "click": {"rackbound"},
    "rich": {"rackbound"},
}
PUBLIC_SUBMODULES = {"topo": {"units"}, "collectives": {"fluid", "laws"}, "serving": {"laws"}}
HEAVY = ("scipy", "matplotlib", "pydantic", "numba", "pandas")
MAX_LINES = 400


# --- the checker -----------------------------------------------------------------------------------------------------


def complaints(source: str, floor: str, depth: int = 1) -> list[str]:
    """Return what a module's source does that its floor may not; depth is the number of packages around it."""
    tree = ast.parse(source)
    found = [f"line {line}: {rule}" for line, name in _imported(tree) for rule in _import_rules(name, floor)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level > depth:
            found.append(f"line {node.lineno}: a relative import leaves the floor")
        if floor != "rackbound" and isinstance(node, ast.expr) and _prints(node):
            found.append(f"line {node.lineno}: only rackbound prints")
    return sorted(set(found))


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every absolute import, also under TYPE_CHECKING, in functions, by string."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom(level=0, module=str(module)):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def _import_rules(name: str, floor: str) -> Iterator[str]:
    top = name.partition(".")[0]
    if top in FLOORS and FLOORS.index(top) > FLOORS.index(floor):
        yield f"{floor} may not import {top}: the arrows are {' <- '.join(FLOORS)}"
    elif top in FLOORS and top != floor and any(part.startswith("_") for part in name.split(".")):
        yield f"{floor} may not import {name}: what another floor offers is in its __init__.pyi"
    for package, floors in ONLY_IN.items():
        if f"{name}.".startswith(f"{package}.") and floor not in floors:
            yield f"{floor} may not import {package}: only {', '.join(sorted(floors))} may"


def _prints(node: ast.expr) -> bool:
    match node:
        case ast.Name(id="print") | ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"):
            return True
    return False


def exports(floor: str) -> tuple[set[str], set[str]]:
    """Return the names a floor's stub exports, and those of them that are its own submodules."""
    names: set[str] = set()
    submodules: set[str] = set()
    for node in ast.parse((ROOT / floor / "__init__.pyi").read_text()).body:
        match node:
            case ast.ImportFrom(level=1, module=None, names=aliases):
                submodules |= {alias.asname or alias.name for alias in aliases}
            case ast.Import(names=aliases) | ast.ImportFrom(level=1, names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
    return names | submodules, submodules


def modules() -> list[Path]:
    return sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# --- the checker can fail --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("floor", "source"),
    [
        ("topo", "import collectives"),
        ("topo", "from rackbound import topo"),
        ("serving", "from placement import solve"),
        ("collectives", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from serving._step import Step"),
        ("topo", "def load():\n    import figures.draw"),
        ("topo", "import importlib\nimportlib.import_module('placement')"),
        ("topo", "from importlib import import_module\nimport_module('placement.x')"),
        ("topo", "from ..collectives import cost"),
        ("placement", "import matplotlib.pyplot as plt"),
        ("rackbound", "from matplotlib import pyplot"),
        ("serving", "from scipy.optimize import linprog"),
        ("serving", "from scipy import optimize"),
        ("figures", "import scipy.optimize as so"),
        ("figures", "print('hello')"),
        ("figures", "log = print"),
        ("topo", "import sys\nsys.stderr.write('note')"),
        ("topo", "import rich.table"),
        ("placement", "from typer import Option"),
        ("placement", "from serving._step import Step"),
        ("placement", "import serving._step"),
    ],
)
def test_checker_finds_what_is_bad(floor: str, source: str) -> None:
    assert len(complaints(source, floor)) == 1, complaints(source, floor)


@pytest.mark.parametrize(
    ("floor", "source"),
    [
        ("topo", "from topo._errors import Fault\nfrom . import units\nfrom ._errors import Fault"),
        ("placement", "import topo, collectives\nfrom serving import step\nfrom scipy.optimize import milp"),
        ("collectives", "from scipy.optimize import linprog\nfrom scipy.sparse import csr_array"),
        ("figures", "import matplotlib.pyplot as plt\nimport placement"),
        ("rackbound", "import figures, rich, typer\nprint('hello')"),
        ("topo", "'''\n>>> print(1)\n1\n'''\nimport matplotlib_free, optimize, richer"),
    ],
)
def test_checker_accepts_what_is_good(floor: str, source: str) -> None:
    assert complaints(source, floor) == []


# --- the house -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", modules(), ids=_name)
def test_module_keeps_to_its_floor(path: Path) -> None:
    inside = path.relative_to(ROOT)
    assert complaints(path.read_text(), inside.parts[0], depth=len(inside.parts) - 1) == []


@pytest.mark.parametrize("path", modules(), ids=_name)
def test_module_is_short(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_LINES, f"{_name(path)} has {lines} lines; split it by the questions it answers"


@pytest.mark.parametrize("floor", FLOORS)
def test_floor_has_stub_and_is_typed(floor: str) -> None:
    assert (ROOT / floor / "__init__.pyi").is_file()
    assert (ROOT / floor / "py.typed").is_file()


@pytest.mark.parametrize("floor", FLOORS)
def test_no_module_hides_a_verb(floor: str) -> None:
    names, submodules = exports(floor)
    children = {child.stem for child in (ROOT / floor).iterdir() if child.is_dir() or child.suffix == ".py"}
    allowed = PUBLIC_SUBMODULES.get(floor, set())
    assert submodules <= allowed, f"{submodules - allowed}: not among the named public submodules"
    assert children & (names - allowed) == set(), "importing such a module would hide the verb of its name"


@pytest.mark.parametrize("floor", FLOORS)
def test_every_export_has_a_docstring(floor: str) -> None:
    package = importlib.import_module(floor)
    bare = []
    for name in sorted(exports(floor)[0]):
        thing = getattr(package, name)  # fails where the stub names what is not there
        documented = inspect.isroutine(thing) or inspect.isclass(thing) or isinstance(thing, ModuleType)
        written = (thing.__doc__ or "").strip() if documented else "a constant or an alias"
        generated = inspect.isclass(thing) and written.startswith(f"{name}(")  # what @dataclass writes by itself
        if not written or generated:
            bare.append(name)
    assert bare == []


# --- weight, and the roof --------------------------------------------------------------------------------------------


def _fresh(code: str, cwd: Path) -> object:
    """Return what a fresh interpreter prints as JSON, started as a script's folder would start it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(cwd), str(ROOT)])}
    environment.pop("EAGER_IMPORT", None)
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("statement", [*(f"import {floor}" for floor in FLOORS), "from rackbound import figures"])
def test_import_is_light(statement: str, tmp_path: Path) -> None:
    code = f"import json, sys; {statement}; print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    assert _fresh(code, tmp_path) == []


@pytest.mark.parametrize("first", ["import topo, placement", "from rackbound import topo, placement"])
def test_roof_gives_the_same_modules(first: str, tmp_path: Path) -> None:
    code = f"import json, rackbound; {first}; import topo as t, placement as p; "
    code += "print(json.dumps([rackbound.topo is t, rackbound.placement is p, t.__spec__.name, p.__name__]))"
    assert _fresh(code, tmp_path) == [True, True, "topo", "placement"]


def test_floors_are_imported_by_their_whole_names_too(tmp_path: Path) -> None:
    """The very modules, whatever hides the bare name, and with their own specs."""
    (tmp_path / "placement.py").write_text("mine = True")
    code = "import json; from rackbound.placement import place; import rackbound.collectives.laws as laws; "
    code += "import placement, collectives.laws, rackbound; print(json.dumps([place is placement.place, "
    code += "laws is collectives.laws, rackbound.placement is placement, placement.__spec__.name, laws.__spec__.name]))"
    assert _fresh(code, tmp_path) == [True, True, True, "placement", "collectives.laws"]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("rackbound.placements")


def test_roof_sees_past_a_users_own_file(tmp_path: Path) -> None:
    for name in ("topo", "placement"):
        (tmp_path / f"{name}.py").write_text("mine = True")
    code = "import json; from rackbound import placement; import placement as bare, topo; "
    code += "print(json.dumps([bare is placement, hasattr(placement, 'mine'), hasattr(topo, 'units')]))"
    assert _fresh(code, tmp_path) == [True, False, True]


def test_roof_refuses_a_stranger(tmp_path: Path) -> None:
    (tmp_path / "topo.py").write_text("mine = True")
    code = "import json, topo, rackbound\ntry: rackbound.topo\nexcept ImportError as e: print(json.dumps(str(e)))"
    message = _fresh(code, tmp_path)
    assert isinstance(message, str)
    assert "topo.py" in message
    assert "rename it" in message


def test_roof_lists_its_names() -> None:
    rackbound = importlib.import_module("rackbound")
    assert {*FLOORS[:-1], "__version__"} <= set(dir(rackbound))
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", rackbound.__version__)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = rackbound.no_such_name


# --- data ------------------------------------------------------------------------------------------------------------


def sourced(text: str) -> list[str]:
    """Return the files in the tables of a SOURCES file whose row names a source and a licence."""
    files = []
    header: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if {"file", "source", "licence"} <= set(cells):
            header = cells
        elif line.startswith("|") and not line.startswith(("|-", "| -")):
            row = dict(zip(header, cells, strict=False))
            if row.get("file") and row.get("source") and row.get("licence"):
                files.append(row["file"])
    return files


def test_every_data_file_has_a_source() -> None:
    lists = sorted(DATA.rglob("SOURCES*.md"))
    named = [(path.parent / file).relative_to(ROOT).as_posix() for path in lists for file in sourced(path.read_text())]
    there = {_name(path) for path in DATA.rglob("*") if path.is_file() and path not in lists}
    assert sorted(there - set(named)) == [], "not shipped: no row in a SOURCES*.md names file, source and licence"
    assert sorted(set(named) - there) == [], "named in a SOURCES*.md, but not there"
    assert len(named) == len(set(named)), "named twice"


def test_a_row_without_source_or_licence_is_no_row() -> None:
    head = "| file | source | note | licence |\n|---|---|---|---|\n"
    assert sourced(f"{head}| `a.json` | by hand | | Apache-2.0 |\n| b/c.txt | somewhere | x | MIT |") == [
        "a.json",
        "b/c.txt",
    ]
    assert sourced(f"{head}| a.json | | x | MIT |\n| b.json | by hand | x | |\n| c.json | by hand |") == []
    assert sourced("| a.json | by hand | MIT |") == []
