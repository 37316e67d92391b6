"""Which links has this GPU? Rates that files about a host leave out, by product, compute capability or PCI device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CHIPS", "Chip", "chip_of", "named_chip", "nvlink_of", "pcie_rate"]

#: GT/s -> bytes/s of one PCIe lane, one way (8b/10b; 128b/130b; flits of 256 bytes with 242 for the payload).
_LANE = {2.5: 0.25e9, 5.0: 0.5e9, 8.0: 8e9 / 8 * 128 / 130, 16.0: 16e9 / 8 * 128 / 130, 32.0: 32e9 / 8 * 128 / 130,
         64.0: 64e9 / 8 * 242 / 256}  # fmt: skip
_GEN3, _GEN4, _GEN5, _GEN6 = (16 * _LANE[speed] for speed in (8.0, 16.0, 32.0, 64.0))


@dataclass(frozen=True)
class Chip:
    """What a GPU's links are.

    Attributes
    ----------
    links : int
        Scale-up links it has at most.
    rate : float
        Of one link [bytes/s per direction].
    pcie : float
        Of its PCIe slot, 16 lanes [bytes/s per direction].
    reduces : bool
        Whether its switches reduce and multicast in the network.
    nvlink : bool
        Whether its links are NVLink, which switches can join.
    """

    links: int
    rate: float
    pcie: float
    reduces: bool = False
    nvlink: bool = True


_HOPPER, _BLACKWELL = Chip(18, 25e9, _GEN5, True), Chip(18, 50e9, _GEN5, True)
_GA102 = Chip(4, 14.0625e9, _GEN4)
#: Vendors' data sheets: NVLink 1 to 5 and the Infinity Fabric between GPUs; longest names first, as text is searched.
CHIPS: dict[str, Chip] = {
    "GB300": _BLACKWELL, "GB200": _BLACKWELL, "B300": _BLACKWELL, "B200": _BLACKWELL, "B100": _BLACKWELL,
    "GH200": _HOPPER, "H200": _HOPPER, "H100": _HOPPER, "H800": Chip(8, 25e9, _GEN5, True), "H20": _HOPPER,
    "A100": Chip(12, 25e9, _GEN4), "A800": Chip(8, 25e9, _GEN4), "A30": Chip(4, 25e9, _GEN4),
    "A6000": _GA102, "A5000": _GA102, "A40": _GA102, "RTX 3090": _GA102, "V100": Chip(6, 25e9, _GEN3),
    "P100": Chip(4, 20e9, _GEN3),
}  # fmt: skip
_XGMI = {
    "MI355X": (7, 76.8e9, _GEN5), "MI350X": (7, 76.8e9, _GEN5), "MI325X": (7, 64e9, _GEN5), "MI300X": (7, 64e9, _GEN5),
    "MI300A": (6, 64e9, _GEN5), "MI250X": (8, 50e9, _GEN4), "MI250": (8, 50e9, _GEN4), "MI210": (3, 50e9, _GEN4),
    "MI100": (3, 46e9, _GEN4), "MI60": (2, 46e9, _GEN4), "MI50": (2, 46e9, _GEN4),
}  # fmt: skip
CHIPS |= {name: Chip(links, rate, pcie, nvlink=False) for name, (links, rate, pcie) in _XGMI.items()}
#: CUDA compute capability, as the `sm` of NCCL's files, -> chip.
BY_SM = {"60": CHIPS["P100"], "70": CHIPS["V100"], "80": CHIPS["A100"], "86": CHIPS["A6000"], "90": CHIPS["H100"],
         "100": CHIPS["B200"], "103": CHIPS["B300"], "107": Chip(36, 50e9, _GEN6, True)}  # fmt: skip
#: AMD's instruction set, as the `gcn` of RCCL's files, -> chip.
BY_GFX = {"gfx906": CHIPS["MI60"], "gfx908": CHIPS["MI100"], "gfx90a": CHIPS["MI250X"], "gfx940": CHIPS["MI300A"],
          "gfx942": CHIPS["MI300X"], "gfx950": CHIPS["MI355X"]}  # fmt: skip
#: PCI vendor and device -> product.
BY_PCI = {
    "10de:15f9": "P100", "10de:1db1": "V100", "10de:1db5": "V100", "10de:1db8": "V100", "10de:20b0": "A100",
    "10de:20b2": "A100", "10de:20f3": "A800", "10de:2330": "H100", "10de:2324": "H800", "10de:2335": "H200",
    "10de:2329": "H20", "10de:2901": "B200", "10de:2941": "GB200", "1002:74a1": "MI300X", "1002:74a5": "MI325X",
    "1002:75a0": "MI350X", "1002:75a3": "MI355X", "1002:740c": "MI250X", "1002:738c": "MI100",
}  # fmt: skip
_NAMES = "|".join(CHIPS)
_MAKER = "NVIDIA|Tesla|Quadro|GeForce|RTX|AMD|Instinct"
_PRODUCT = re.compile(rf"(?:{_MAKER})\b[\w /()-]{{0,30}}?\b({_NAMES})(?![0-9])|\b({_NAMES})-(?:SXM|PCI)")


def named_chip(text: str) -> str:
    """Return the one product a text names after its vendor or before its slot, "" where it names none or several."""
    found = {match[1] or match[2] for match in _PRODUCT.finditer(text)}
    return found.pop() if len(found) == 1 else ""


def chip_of(pci: Mapping[str, str], gpu: Mapping[str, str]) -> Chip | None:
    """Return the chip of a GPU in NCCL's files: by PCI device, compute capability or AMD's instruction set.

    Parameters
    ----------
    pci, gpu : mapping
        Attributes of its elements; `gpu` empty where the file has none.
    """
    name = f"{pci.get('vendor', '')[2:]}:{pci.get('device', '')[2:]}".lower()
    if name in BY_PCI:
        return CHIPS[BY_PCI[name]]
    if "gcn" in gpu:
        return BY_GFX.get(f"gfx{gpu['gcn'].removeprefix('gfx')}")
    return BY_SM.get(gpu.get("sm", ""))


def nvlink_of(product: str, most: int) -> tuple[Chip, str]:
    """Return the chip whose NVLinks these are, and what had to be assumed.

    Parameters
    ----------
    product : str
        As `named_chip`; "" where the file names none.
    most : int
        Links of the GPU that has most.
    """
    if product and most <= CHIPS[product].links:
        return CHIPS[product], f"the file names {product}: {CHIPS[product].rate / 1e9:g} GB/s per link and direction"
    name = next((name for name, links in (("V100", 6), ("A100", 12), ("H100", 18)) if most <= links), "")
    chip = CHIPS[name] if name else BY_SM["107"]
    taken = f"{chip.rate / 1e9:g} GB/s per link and direction"
    if most == 18:
        return chip, f"18 NVLinks are H100's and H200's (25 GB/s each) and B200's (50 GB/s each): {taken} assumed"
    return chip, f"the file does not name the GPU: up to {most} NVLinks each, {taken} assumed (as {name or 'NVLink 6'})"


def pcie_rate(speed: str, width: str) -> float | None:
    """Return bytes/s of a PCIe link from its text, as "16.0 GT/s PCIe" and "16"; None where it says nothing.

    Examples
    --------
    >>> round(pcie_rate("16 GT/s", "16") / 1e9, 1)
    31.5
    """
    number = re.match(r"\s*([0-9.]{1,8})\s*GT", speed)
    lanes = re.fullmatch(r"\s*([0-9]{1,2})\s*", width)
    rate = _LANE.get(_float(number[1])) if number else None
    return rate * (int(lanes[1]) or 16) if rate and lanes else None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
