"""What does a net file of the simulator ibsim say? The blocks of ibnetdiscover, with names for GUIDs."""

from __future__ import annotations

from topo.readers._ib_graph import reading_of
from topo.readers._ibnetdiscover import HEADER, is_topology, read_blocks
from topo.readers._infiniband import Wiring
from topo.readers._reading import Reader, Reading, Source

__all__ = ["READERS"]

#: What ibsim gives a port whose line has no w= and s=.
_DEFAULT = "4xSDR"


def _read(source: Source) -> Reading:
    wiring = Wiring("ibsim-net", source, default_rate=_DEFAULT)
    read_blocks(wiring)
    return reading_of(wiring)


READERS: tuple[Reader, ...] = (
    Reader("ibsim-net", "net file of the InfiniBand simulator ibsim",
           lambda source: any(map(HEADER.match, source.lines)) and not is_topology(source), _read),
)  # fmt: skip
