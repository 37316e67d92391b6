"""Which formats are known? One row each, the most specific first."""

from __future__ import annotations

from topo.readers import _graph_files, _hwloc, _nccl_xml, _nvidia_smi, _rocm_smi
from topo.readers._reading import Foreign, Reader

__all__ = ["FOREIGN", "READERS"]

_ROWS: tuple[Reader, ...] = (
    *_rocm_smi.READERS,
    *_nvidia_smi.READERS,
    *_nccl_xml.READERS,
    *_hwloc.READERS,
    *_graph_files.READERS,
)

#: Name of a format -> its row; the first that recognises a file reads it.
READERS: dict[str, Reader] = {row.kind: row for row in _ROWS}
#: What is no topology, but often at hand.
FOREIGN: tuple[Foreign, ...] = (*_nvidia_smi.FOREIGN,)
