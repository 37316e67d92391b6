"""Which claims of the lecture hold on this hardware, and why?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from collectives import plain
from rackbound._claims import Told, tell
from rackbound._claims_batch import BATCH_CLAIMS
from rackbound._claims_price import PRICE_CLAIMS
from rackbound._claims_rack import RACK_CLAIMS
from rackbound._defaults import BATCH_PER_GPU, CONTEXT
from rackbound._lecture_case import Case
from serving import Model, Workload, assumptions_of, load_model
from topo import Design, Fault, InputError, is_graph_file, load_design

__all__ = ["CLAIMS", "NO_ROW", "Lecture", "design_of", "lecture"]

CLAIMS = (*BATCH_CLAIMS, *RACK_CLAIMS, *PRICE_CLAIMS)

#: Claims that no row tries -> why.
NO_ROW: dict[int, str] = {
    6: "the shape of the curve: a figure",
    8: "the shape of the curve: a figure; its floor is in 9",
    11: "an input: 2 $ per GPU-hour",
    12: "the condition of 13 and 72",
    15: "the law behind 18",
    19: "practice, without a derivation",
    21: "what 18 counts",
    22: "follows from the law of 18",
    30: "follows from 18 and 36",
    31: "a description",
    32: "a choice, tried by rackbound bound and place",
    35: "follows from 38",
    41: "a cause, without a number",
    43: "a cause, without a number",
    45: "follows from 36 and 72",
    46: "a choice, tried by rackbound step --tp",
    51: "follows from 50",
    52: "a description",
    57: "the law behind 59",
    58: "the law behind 59",
    61: "follows from 55 and 60",
    63: "a description",
    65: "follows from 55 and 64",
    66: "a market, not a machine",
    68: "the law behind 69",
    75: "follows from 14 and 73",
    76: "the shape of the curve: a figure; its first point is 77",
    78: "follows from 77",
    82: "the law behind 81, 83 and 84",
    85: "an analogy",
}


@dataclass(frozen=True, eq=False, repr=False)
class Lecture:
    """Claims of the lecture, tried on a design and a model.

    Attributes
    ----------
    design, model : str
        On what.
    told : tuple of Told
        In order of number.
    assumptions : tuple of str
        Everything that was filled in.
    """

    design: str
    model: str
    told: tuple[Told, ...]
    assumptions: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many are "true", "loose", "false" and "not told"."""
        verdicts = [one.verdict for one in self.told]
        return {word: verdicts.count(word) for word in ("true", "loose", "false", "not told")}

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {word}" for word, count in self.counts.items())
        return f"Lecture({counts}: {self.model} on {self.design})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; an infinite number is the word."""
        result: dict[str, Any] = plain(self, leave_out=("assumptions",))
        return result | {"counts": self.counts}


def lecture(
    design: str = "gb200-nvl72",
    model: str | Model = "deepseek-v3",
    workload: Workload | None = None,
    *,
    claims: Collection[int] = (),
    overrides: Mapping[str, Any] | None = None,
) -> Lecture:
    """Try claims of R. Pope's lecture on a design and a model.

    Parameters
    ----------
    design : str, optional
        Catalogue name or design file.
    model : str or Model, optional
        From `serving.load_model`, or what that takes.
    workload : Workload, optional
        A decode; by default 114 sequences per GPU at 4096 tokens.
    claims : collection of int, optional
        Numbers; all by default.
    overrides : mapping, optional
        As `topo.load`.

    Returns
    -------
    Lecture
        A claim that something is missing for is "not told", and says what.

    Raises
    ------
    InputError
        No claim has such a number, or no row tries it.

    Examples
    --------
    >>> told = lecture(claims=[39]).told[0]
    >>> told.lecture_text, told.our_text, told.verdict
    ('8 x', '18 x', 'loose')
    """
    known = {claim.number for claim in CLAIMS}
    faults = [
        Fault("claim", number, f"has no row: {NO_ROW.get(number, 'the claims are 1 to 85')}", "Leave it out for all.")
        for number in claims if number not in known
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)
    design_of(design, overrides)
    work = workload or Workload(context=CONTEXT, batch_per_gpu=BATCH_PER_GPU)
    case = Case(design, load_model(model) if isinstance(model, str) else model, work, overrides or {})
    told = tuple(tell(claim, case) for claim in CLAIMS if not claims or claim.number in claims)
    return Lecture(case.shown.design.name, case.model.name, told, _assumptions(case))


def _assumptions(case: Case) -> tuple[str, ...]:
    try:
        return assumptions_of(case.racks(1), case.model, case.workload, case.chip)
    except InputError as error:  # a rate that the chip does not state: said of each claim that asks for it, and here
        return (*case.shown.assumptions, str(error))


def design_of(name: str, overrides: Mapping[str, Any] | None = None) -> Design:
    """Return a design by name; a graph file is none.

    Raises
    ------
    InputError
        There is no such design.
    """
    if is_graph_file(name):
        rule = "is a graph, and claims ask for what a design states"
        raise InputError(Fault("design", name, rule, "Name a design or its file."))
    return load_design(name, overrides)
