"""What `rackbound place --curve` adds: bytes between domains against balance, every point with its bound."""

from __future__ import annotations

from placement import BalanceCurve, ExpertLoads, Improvement, balance_curve, sources_of
from rackbound._output import show_table
from topo import Fault, InputError

__all__ = ["balances_of", "curve_of", "show_curve"]


def balances_of(text: str | None) -> tuple[float, ...] | None:
    """Return the balances of --curve."""
    if text is None:
        return None
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = (0.0,)
    if not all(1 <= each < float("inf") for each in found):
        raise InputError(Fault("--curve", text, "must be numbers, one or more each", "Write 1.01,1.05,1.2."))
    return found


def curve_of(found: Improvement, loads: ExpertLoads, balances: tuple[float, ...], replicas: int) -> BalanceCurve:
    """Return the curve for the GPUs that were placed on, whatever else was asked of the placement."""
    sources = sources_of(loads, found.gpus.domain)
    return balance_curve(sources, found.gpus, replicas=replicas, balances=balances)


def show_curve(curve: BalanceCurve) -> None:
    """Print a row for every point."""
    rows = []
    for i, balance in enumerate(curve.balance):
        heavier, bound = int((~curve.within[i]).sum()), curve.bound[i].mean()
        said = f"{heavier} of {curve.crossing.shape[1]} layers are heavier" if heavier else ""
        below = f"{100 * bound:.2f} %" if bound < float("inf") else "no placement"
        rows.append((f"{balance:g}", f"{curve.layer_objective[i].mean():.4f}",
                     f"{100 * curve.crossing[i].mean():.2f} %", below, said))  # fmt: skip
    show_table("What balance costs", ("heaviest GPU allowed", "reached", "tokens that cross", "at least", ""), rows)
