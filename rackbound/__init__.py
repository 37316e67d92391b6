"""Does one rack bound the expert layer? The roof: the command line, and every floor under one name.

The floors are top-level packages. ``from rackbound import placement`` gives the very module that
``import placement`` gives, and gives it also where a file of the user's own hides the bare name.
"""

import sys as _sys
import threading as _threading
from importlib.machinery import PathFinder as _PathFinder
from importlib.util import module_from_spec as _module_from_spec
from pathlib import Path as _Path
from types import ModuleType as _ModuleType

import lazy_loader as _lazy

_FLOORS = ("topo", "collectives", "serving", "placement", "figures")  # each stands on those to its left
_HOME = _Path(__file__).resolve().parent.parent
_LOCK = _threading.RLock()

_own, _, _names = _lazy.attach_stub(__name__, __file__)  # the stub's `import topo` lines are not the roof's own
__all__ = sorted({*_names, *_FLOORS, "__version__"})


def __getattr__(name: str) -> object:
    """Return a floor, the version, or a verb of the roof, loaded when first asked for."""
    if name in _FLOORS:
        with _LOCK:
            for floor in _FLOORS[: _FLOORS.index(name) + 1]:
                _lay(floor)
        return _sys.modules[name]
    if name == "__version__":
        from importlib.metadata import version

        return version("rackbound")
    return _own(name)


def __dir__() -> list[str]:
    """Return the public names."""
    return list(__all__)


def _lay(floor: str) -> None:
    """Load one floor from beside this package, whatever else on the path bears its name."""
    if floor in _sys.modules:
        _refuse_stranger(floor, _sys.modules[floor])
        return
    spec = _PathFinder.find_spec(floor, [str(_HOME)])
    if spec is None or spec.loader is None:
        raise ImportError(f"rackbound is installed without its package {floor!r}; install it again", name=floor)
    module = _sys.modules[floor] = _module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del _sys.modules[floor]
        raise


def _refuse_stranger(floor: str, module: _ModuleType) -> None:
    """Raise if a module that is not this distribution's already bears the floor's name."""
    file = module.__file__
    if file is None or _Path(file).resolve().parent.parent != _HOME:
        raise ImportError(
            f"a module named {floor!r} from {file} was imported before rackbound's own; "
            f"rename it, or import rackbound's {floor} first",
            name=floor,
            path=file,
        )
