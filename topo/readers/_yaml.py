"""What does a YAML file hold? Plain data only; whatever is wrong with it is a fault with its line."""

from __future__ import annotations

from topo._errors import Fault, InputError
from topo.readers._reading import Source

__all__ = ["load_yaml"]


def load_yaml(source: Source) -> object:
    """Return the data of a YAML file; raises InputError where it is no YAML, too deep or not plain data."""
    import yaml  # an edge of the project: not loaded with the package

    try:
        return yaml.safe_load(source.clean)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else "file"
        text = getattr(error, "problem", None) or f"{type(error).__name__}: {error}"
        raise InputError(Fault(place, text, "is not valid YAML", "Correct that line.", source.file)) from None
