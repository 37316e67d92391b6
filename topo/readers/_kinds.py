"""Which formats are known? One row each, the most specific first."""

from __future__ import annotations

from topo.readers import (
    _graph_files,
    _hwloc,
    _iblinkinfo,
    _ibnetdiscover,
    _ibsim,
    _nccl_xml,
    _nvidia_smi,
    _opensm,
    _rocm_smi,
    _slurm,
)  # fmt: skip
from topo.readers._astra import ASTRA_SIM
from topo.readers._booksim import BOOKSIM
from topo.readers._dot import DOT
from topo.readers._foreign import FOREIGN as _OTHERS
from topo.readers._htsim import HTSIM_TOPO
from topo.readers._ns3 import NS3_TOPOLOGY
from topo.readers._reading import Foreign, Reader
from topo.readers._simgrid import SIMGRID_XML

__all__ = ["FOREIGN", "READERS"]

_HOSTS = (*_rocm_smi.READERS, *_nvidia_smi.READERS, *_nccl_xml.READERS, *_hwloc.READERS)
_FABRICS = (
    *_ibnetdiscover.READERS, *_iblinkinfo.READERS, *_ibsim.READERS, *_opensm.READERS, *_slurm.READERS,
)  # fmt: skip
_GRAPHS = (*_graph_files.READERS, DOT)
_SIMULATORS = (SIMGRID_XML, ASTRA_SIM, HTSIM_TOPO, BOOKSIM, NS3_TOPOLOGY)

#: Name of a format -> its row; the first that recognises a file reads it.
READERS: dict[str, Reader] = {row.kind: row for row in (*_HOSTS, *_FABRICS, *_GRAPHS, *_SIMULATORS)}
#: What is no topology, but often at hand; tried before the readers.
FOREIGN: tuple[Foreign, ...] = (*_nvidia_smi.FOREIGN, *_ibnetdiscover.FOREIGN, *_OTHERS)
