"""What does a matrix of devices in a text say? Header, rows and cells, however they were pasted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from topo._errors import Fault, InputError
from topo.readers._reading import Source

__all__ = ["Matrix", "find_matrices", "pairs_of"]

_DEVICE = r"(?:GPU|NIC)\d+|mlx\d+_\w*?\d+"
_START = re.compile(rf"(?<![\w])(?:{_DEVICE})")
_GLUED = re.compile(r"(?<=\d)(?=(?:GPU|NIC)\d|mlx\d+_)")
_NAME = re.compile(r"(?=\w*\d)[A-Za-z][\w.@-]*")
_SIDE = re.compile(r"CPU\s*Affinity|NUMA\s*Affinity|GPU\s*NUMA\s*ID", re.IGNORECASE)
_SIDE_VALUE = re.compile(r"N/A|\d[\d,-]*+")
_SIDES = re.compile(rf"(?:[\s|,]*+(?:{_SIDE_VALUE.pattern}))*+[\s|,]*+")
_SPACE = re.compile(r"[\s|]*")
#: What is left of a cell whose line was cut.
_STUMP = re.compile(r"\s*(?:N|NV|NO|NOD|S|SY|SO|P|PI|PX|PH|PC|PCI|XG|XGM|N/)?\s*(?:\.{2,}|…)?\s*")
_MOST = 512
_CURE = "Give the text as the tool printed it."


@dataclass
class Matrix:
    """A matrix as it stands in the text.

    Attributes
    ----------
    line : int
        Of its header, from 1.
    columns : list of str
        In order; what no device has, as "CPU Affinity", in capitals without blanks.
    cells : dict
        (row, column) -> what stands there and its line.
    sides : dict
        (row, column without device) -> what stands there.
    lines : dict
        Row -> its line.
    repeated : bool
        Whether rows stand there twice, the same.
    """

    line: int
    columns: list[str]
    cells: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    sides: dict[tuple[str, str], str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    repeated: bool = False

    @property
    def devices(self) -> list[str]:
        """Columns that are devices."""
        return [name for name in self.columns if not _SIDE.fullmatch(name)]

    def same(self, other: Matrix) -> bool:
        """Whether both say the same of the same devices."""
        mine, theirs = ({key: cell for key, (cell, _) in m.cells.items()} for m in (self, other))
        return mine == theirs and self.columns == other.columns


def find_matrices(source: Source, cell: re.Pattern[str]) -> list[Matrix]:
    """Return the matrices of a text that have rows.

    Parameters
    ----------
    source : Source
        Text with whatever stands around them.
    cell : re.Pattern
        What a cell can be; cells may be glued to one another.

    Raises
    ------
    InputError
        Rows that do not fit their header, all at once.
    """
    found: list[Matrix] = []
    faults: list[Fault] = []
    open_row: tuple[str, str, int] | None = None  # a row with too few cells, which the next line may go on with
    for number, line in enumerate(source.lines, 1):
        names = _header(line, cell)
        if names and found and not found[-1].lines and not set(names) & set(found[-1].columns):
            found[-1].columns += names  # a header wrapped over lines
        elif names:
            found.append(Matrix(number, names))
            open_row = None
        elif found:
            row = _row(line, found[-1], cell)
            if row is None and open_row is not None and line.strip() and _only_cells(line, cell):
                row, at = (open_row[0], f"{open_row[1]} {line.strip()}"), open_row[2]
            elif row is None:
                continue
            else:
                at = number
            fault, whole = _take(found[-1], *row, at, cell, source.file)
            faults += [fault] if fault and whole else []
            open_row = None if whole else (*row, at)
    if faults:
        raise InputError(*faults[:20])
    return [matrix for matrix in found if matrix.lines]


def _header(line: str, cell: re.Pattern[str]) -> list[str]:
    """Return the columns a line names, none where it is no header."""
    start = _START.search(line)
    side = _SIDE.search(line)
    first = min((match.start() for match in (start, side) if match), default=None)
    if first is None:
        return []
    columns: list[str] = []
    for part in re.split(rf"({_SIDE.pattern})", line[first:], flags=re.IGNORECASE):
        if _SIDE.fullmatch(part):
            columns.append(re.sub(r"\s", "", part).upper())
            continue
        names = _GLUED.sub(" ", part).replace("|", " ").split()
        if not all(_NAME.fullmatch(name) for name in names) or any(cell.fullmatch(name) for name in names):
            return []
        columns += names
    return columns if len(columns) == len(set(columns)) else []


def _row(line: str, matrix: Matrix, cell: re.Pattern[str]) -> tuple[str, str] | None:
    """Return label and cells of a line that is a row."""
    labels = "|".join(re.escape(name) for name in sorted(matrix.devices, key=len, reverse=True))
    match = re.search(rf"(?<![\w.])({labels}|{_DEVICE})(?!\d|[\w.]*:)[\s|]*(?=(?:{cell.pattern}))", line)
    return (match[1], line[match.end() :]) if match else None


def _only_cells(line: str, cell: re.Pattern[str]) -> bool:
    rest = re.sub(rf"{cell.pattern}|{_SIDE_VALUE.pattern}", " ", line)
    return not rest.strip(" \t|")


def _take(
    matrix: Matrix, label: str, text: str, line: int, cell: re.Pattern[str], file: str
) -> tuple[Fault | None, bool]:
    """Put a row into a matrix; return what is wrong with it, and whether it is whole."""
    if label not in matrix.columns:
        return Fault(f"line {line}", label, "is a row that has no column", _CURE, file), True
    cells: dict[str, str] = {}
    at = 0
    short = False
    for column in matrix.columns:
        at = _end(_SPACE.match(text, at), at)
        wanted = _SIDE_VALUE if _SIDE.fullmatch(column) else cell
        match = wanted.match(text, at)
        if match is None and wanted is cell:
            short = True
            break
        if match is not None:
            cells[column] = match[0]
            at = match.end()
    rest = text[at:]
    if short and not _STUMP.fullmatch(rest) and not _only_side(rest):
        return Fault(f"line {line}", rest.strip()[:40], f"is no cell of row {label}", _CURE, file), True
    if not short and not _only_side(rest):
        rule = f"stands in row {label} after its {len(matrix.devices)} cells"
        return Fault(f"line {line}", rest.strip()[:40], rule, _CURE, file), True
    known = [column for column in cells if not _SIDE.fullmatch(column)]
    if short and known and re.fullmatch(r"NV\d+|\d+", cells[known[-1]]):
        del cells[known[-1]]  # its number may be cut
    return _store(matrix, label, cells, line, file), not short


def _end(match: re.Match[str] | None, at: int) -> int:
    return match.end() if match else at


def _only_side(text: str) -> bool:
    return _SIDES.fullmatch(text) is not None


def _store(matrix: Matrix, label: str, cells: Mapping[str, str], line: int, file: str) -> Fault | None:
    matrix.repeated |= matrix.lines.setdefault(label, line) != line
    for column, value in cells.items():
        if _SIDE.fullmatch(column):
            matrix.sides[label, column] = value
            continue
        before, where = matrix.cells.setdefault((label, column), (value, line))
        if before != value:
            rule = f"is {before!r} in line {where}: the row stands there twice"
            return Fault(f"line {line}, cell {label} - {column}", value, rule, _CURE, file)
    return None


def pairs_of(matrix: Matrix, own: str, file: str) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Return what a symmetric matrix says of every two devices, and notes on what was filled from its other half.

    Parameters
    ----------
    matrix : Matrix
        Rows may be missing or cut.
    own : str
        What stands in the cell of a device with itself.
    file : str
        For messages.

    Raises
    ------
    InputError
        A device that is not itself, halves that contradict each other, all at once.
    """
    if len(matrix.columns) > _MOST:
        rule = f"has more than {_MOST} columns"
        raise InputError(Fault(f"line {matrix.line}", len(matrix.columns), rule, "Give the matrix of one host.", file))
    faults = list(_contradictions(matrix, own, file))
    if faults:
        raise InputError(*faults[:20])
    pairs: dict[tuple[str, str], str] = {}
    filled: dict[str, None] = {}
    devices = matrix.devices
    for i, a in enumerate(devices):
        for b in devices[i + 1 :]:
            there, back = matrix.cells.get((a, b)), matrix.cells.get((b, a))
            if there or back:
                pairs[a, b] = (there or back or ("", 0))[0]
            if (there is None) != (back is None):
                filled[a if there is None else b] = None
    notes = ["rows that stand there twice, the same: taken once"] if matrix.repeated else []
    notes += [f"cut rows filled from the other half of the matrix: {', '.join(filled)}"] if filled else []
    return pairs, notes


def _contradictions(matrix: Matrix, own: str, file: str) -> Iterator[Fault]:
    for (row, column), (value, line) in matrix.cells.items():
        place = f"line {line}, cell {row} - {column}"
        if (value == own) != (row == column) and not (own == "0" and value == own):
            rule = f"must be {own}" if row == column else "is the mark of a device with itself"
            yield Fault(place, value, f"{rule}: rows and columns do not fit", _CURE, file)
        other = matrix.cells.get((column, row))
        if row < column and other and other[0] != value:
            rule = f"contradicts {other[0]!r} of cell {column} - {row}, line {other[1]}"
            yield Fault(place, value, rule, "Give the file as the tool printed it: the matrix is symmetric.", file)
