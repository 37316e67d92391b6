"""What does a YAML file hold? Plain data only; whatever is wrong with it is a fault with its line."""

from __future__ import annotations

from topo._errors import Fault, InputError
from topo.readers._reading import Source

__all__ = ["load_yaml"]


def load_yaml(source: Source) -> object:
    """Return the data of a YAML file; raises InputError where it is none, too deep or not plain data."""
    import yaml  # an edge of the project: not loaded with the package

    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source.clean)):
            rule = "aliases are refused: they can grow without end"
            raise InputError(Fault("file", "*", rule, "Write the lists out.", source.file))
        return yaml.safe_load(source.clean)
    except InputError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else "file"
        text = getattr(error, "problem", None) or f"{type(error).__name__}: {error}"
        rule = "is not valid YAML or JSON: it may be cut off"
        raise InputError(Fault(place, text, rule, "Correct that line.", source.file)) from None
