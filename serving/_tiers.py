"""Where can a KV cache wait for its reader? One memory per row, as much of it as a GPU has."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TIERS", "Tier"]

#: A memory's price is spread over four years [s].
LIFE = 4 * 365 * 86400.0


@dataclass(frozen=True)
class Tier:
    """A memory below HBM: its part of one GPU.

    Attributes
    ----------
    name : str
        What it is.
    n_bytes, bandwidth : float
        [bytes], [bytes/s].
    dollars : float
        Price of `n_bytes` [$].
    source : str
        Where the numbers come from; prices are assumed.
    """

    name: str
    n_bytes: float
    bandwidth: float
    dollars: float
    source: str

    @property
    def dollars_per_second(self) -> float:
        """Price over four years [$/s]."""
        return self.dollars / LIFE


#: DGX H100 and H200 per GPU (NVIDIA DGX BasePOD reference architecture, core components), and one disk.
TIERS: tuple[Tier, ...] = (
    Tier("DDR", 256e9, 64e9, 1280.0,
         "2 TB of DDR5 for 8 GPUs (DGX H100); PCIe 5.0 x16, 64 GB/s; assumed 5 $ per GB"),
    Tier("flash", 3.84e12, 7e9, 384.0,
         "Eight 3.84 TB U.2 drives for 8 GPUs (DGX H100); PCIe 4.0 x4 drives read about 7 GB/s; assumed 0.10 $ per GB"),
    Tier("disk", 24e12, 285e6, 480.0,
         "Seagate Exos X24: 24 TB, 285 MB/s sustained (blocksandfiles.com, 2023-10-18); assumed 0.02 $ per GB"),
)  # fmt: skip
