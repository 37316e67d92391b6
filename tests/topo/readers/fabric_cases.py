"""How do the tests of the fabric readers read a case?"""

from pathlib import Path

from topo.readers import _iblinkinfo, _ibnetdiscover, _ibsim, _opensm, _slurm
from topo.readers._reading import Reading, Source

DATA = Path(__file__).parents[2] / "data" / "readers-fabric"
READERS = [reader for module in (_ibnetdiscover, _iblinkinfo, _ibsim, _opensm, _slurm) for reader in module.READERS]


def text_of(name: str) -> str:
    return (DATA / name).read_text()


def read_text(text: str, file: str = "pasted.txt") -> Reading:
    """Read with the one reader that takes the text for its own."""
    source = Source(file, text.replace("\r\n", "\n"))
    (reader,) = [reader for reader in READERS if reader.recognises(source)]
    return reader.read(source)


def read_case(name: str) -> Reading:
    return read_text(text_of(name), name)


def same(a: Reading, b: Reading) -> bool:
    """Whether two readings say the same of nodes and links, in the same order."""
    assert a.graph is not None
    assert b.graph is not None
    return list(a.graph.nodes(data=True)) == list(b.graph.nodes(data=True)) and list(a.graph.edges(data=True)) == list(
        b.graph.edges(data=True)
    )
