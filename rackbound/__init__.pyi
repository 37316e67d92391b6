import collectives as collectives
import figures as figures
import placement as placement
import serving as serving
import topo as topo

__version__: str
from ._evaluate import evaluate as evaluate
from ._lecture import Lecture as Lecture
from ._lecture import lecture as lecture
