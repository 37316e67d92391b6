"""Does one rack bound the expert layer? The roof: the command line, and every floor under one name.

The floors are top-level packages. ``from rackbound import placement``, or ``from rackbound.placement import place``,
gives the very module that ``import placement`` gives, and gives it also where a file of the user's own hides the bare
name.
"""

import sys as _sys
import threading as _threading
from importlib import import_module as _import_module
from importlib.machinery import ModuleSpec as _ModuleSpec
from importlib.machinery import PathFinder as _PathFinder
from importlib.util import module_from_spec as _module_from_spec
from importlib.util import spec_from_loader as _spec_from_loader
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


class _Alias:
    """Finds ``rackbound.placement`` and what is below it: the modules that bear these names without the roof."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> _ModuleSpec | None:
        """Return a spec of a floor's module; None for any other."""
        roof, _, rest = fullname.partition(".")
        return _spec_from_loader(fullname, self) if roof == __name__ and rest.split(".")[0] in _FLOORS else None

    def create_module(self, spec: _ModuleSpec) -> _ModuleType:
        """Return the module that is there already, or is loaded under its own name."""
        rest = spec.name.partition(".")[2]
        __getattr__(rest.split(".")[0])
        module = _import_module(rest)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: _ModuleType) -> None:
        """Give the module its own spec back: it has run."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


_sys.meta_path.insert(0, _Alias())
