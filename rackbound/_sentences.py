"""How is the answer said? The sentences of `evaluate`, each from its record."""

from __future__ import annotations

import numpy as np

from placement import ExpertLayerBound, Solution
from serving import Model, Step
from topo.units import format_quantity, parse_quantity

__all__ = ["bandwidth_flip", "binding_sentence", "budget_flip", "compared", "summary_sentence"]


def compared(name: str, other: ExpertLayerBound, bound: ExpertLayerBound) -> str:
    """Return what another assumption gives, and whether it turns the verdict."""
    if other.one_domain_bounds is None:
        return f"{name}: no layer is possible" + (
            " either" if bound.one_domain_bounds is None else ", the verdict flips"
        )
    if bound.one_domain_bounds is None:
        turned = "a layer becomes possible"
    else:
        turned = "the same verdict" if other.one_domain_bounds == bound.one_domain_bounds else "the verdict flips"
    one, beyond = other.one_domain[0], other.beyond[0]
    return f"{name}: {beyond:,} experts over several domains against {one:,} in one, {turned}"


def bandwidth_flip(bound: ExpertLayerBound) -> str:
    """Say from which scale-out bandwidth on several domains beat one; thresholds are rounded to the safe side."""
    needed, has = bound.scale_out_needed, bound.scale_out
    if needed is None or has is None:
        return ""
    wish = "several domains beat one" if bound.one_domain[0] else "a layer over several domains is possible"
    if not np.isfinite(needed):
        return f"at no scale-out bandwidth {wish}"
    above = bound.beyond[0] > bound.one_domain[0]
    wanted = format_quantity(needed, "bandwidth", rounding="down" if above else "up")
    gigabits = 8 * parse_quantity(wanted, "bandwidth") / 1e9
    figure = f"{wanted} per GPU ({gigabits:.6g} Gb/s; the design has {format_quantity(has, 'bandwidth')})"
    if not above:
        return f"{wish} from a scale-out of {figure} up"
    otherwise = "one domain would be the bound" if bound.one_domain[0] else "no layer would be possible"
    return f"{otherwise} below a scale-out of {figure}"


def budget_flip(bound: ExpertLayerBound, n_experts: int, least: float, width: int) -> str:
    """Say from which budget on the model's own layer is within the bound."""
    if not width:
        return "the model's own layer fits into no width's memory, whatever the budget"
    verb = "stays" if bound.n_experts >= n_experts else "would be"
    time = format_quantity(least, "seconds", rounding="up")
    return f"the model's own layer {verb} within the bound from a budget of {time} up (width {width})"


def _size(n_experts: int, n_bytes: float) -> str:
    return f"{n_experts:,} experts ({format_quantity(n_bytes, 'bytes')})"


def summary_sentence(name: str, model: Model, bound: ExpertLayerBound) -> str:
    """Return the first line: the model's layer, the bound, the ratio, yes or no."""
    if not model.is_moe:
        return f"{name}: {model.name} is dense, its bound is no experts"
    own = _size(model.n_experts, model.n_experts * model.expert_bytes)
    ratio = bound.n_experts / model.n_experts
    verdict = "yes, the layer is within the bound" if ratio >= 1 else "no, the layer is beyond the bound"
    found = f"{_size(bound.n_experts, bound.n_bytes)} over {_gpus(bound.width)}" if bound.n_experts else "0 experts"
    return f"{name}: {model.name}'s expert layer is {own}, the bound is {found}, ratio {ratio:.4g}: {verdict}"


def binding_sentence(name: str, bound: ExpertLayerBound, own: Step, placed: Solution) -> str:
    """Return one sentence on what binds."""
    fits = (
        f"its own step is bound by {own.binding}"
        if own.fits
        else f"the model itself does not fit: at EP {own.layout.ep} it {own.reason}"
    )
    if not own.fits and placed.plan is not None:
        fits += f", in {placed.layout.pp} pipeline stages of {placed.layout.ep} it does"
    if bound.status != "bounded":
        return f"{name}: {bound.binding}; {fits}."
    if bound.scale_out_needed is None:
        wider = "there is one domain only"
    elif bound.one_domain_bounds:
        left = f"{bound.beyond[0]:,} experts at most" if bound.beyond[0] else "no layer at all"
        cause = "scale-out leaves" if np.isfinite(bound.scale_out_needed) else "there is room for"
        wider = f"over several domains {cause} {left}, so one domain is the bound"
    else:
        wider = f"one domain holds {bound.one_domain[0]:,}, so one domain is not the bound"
    return f"{name}: bound by {bound.binding}; {wider}; {fits}."


def _gpus(count: int) -> str:
    return f"{count:,} GPU{'' if count == 1 else 's'}"
