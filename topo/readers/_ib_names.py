"""Which adapters are one host, and what are hosts and switches called? Node descriptions become labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from topo._labels import natural

__all__ = ["AGGREGATION", "host_name", "merged_hosts", "natural", "switch_names", "unique_labels"]

#: The adapter at the end of a node description: "node001 HCA-1", "node001 mlx5_0", "n1 HCA-1 (Mellanox HCA)".
_ADAPTER = re.compile(
    r"(?P<host>.*\S)\s+(?P<adapter>HCA-?\d+|(?:mlx\d_|mthca|qib|hfi\d_|ipath|ehca|efa_|bnxt_re|irdma|rdma|roce|ib)"
    r"[\w.-]*\d\w*)(?:\s*\(.*\))?",
    re.IGNORECASE,
)
#: "MF0;ib5:SX6036/U1": system name, model, and the module of a director switch.
_SYSTEM = re.compile(r"\w+;(?P<name>[^;:]+):(?P<model>[^/;:]+)(?P<module>(?:/\w+)*)")
#: An end of in-network reduction inside a switch, not a host.
AGGREGATION = re.compile(r"aggregation node", re.IGNORECASE)
#: Names that hosts have before anybody names them.
_NAMELESS = {"localhost", "localhost.localdomain", "(none)", "unknown"}


def host_name(description: str) -> tuple[str, str]:
    """Return host and adapter of a node description.

    Examples
    --------
    >>> (
    ...     host_name("node001 HCA-1"),
    ...     host_name("storage 3 mlx5_0"),
    ...     host_name("MT25408 ConnectX Mellanox Technologies"),
    ... )
    (('node001', 'HCA-1'), ('storage 3', 'mlx5_0'), ('MT25408 ConnectX Mellanox Technologies', ''))
    """
    found = _ADAPTER.fullmatch(description)
    return (found["host"], found["adapter"]) if found else (description, "")


def switch_names(description: str) -> tuple[str, str]:
    """Return the short name of a switch and one that tells modules of a director apart.

    Examples
    --------
    >>> switch_names("MF0;core:CS7500/L01/U1"), switch_names("leaf01")
    (('core', 'core/L01/U1'), ('leaf01', 'leaf01'))
    """
    found = _SYSTEM.fullmatch(description)
    return (found["name"], found["name"] + found["module"]) if found else (description, description)


def merged_hosts(adapters: Mapping[str, str]) -> tuple[list[list[str]], list[str]]:
    """Return groups of adapters that are one host by their descriptions, and notes on it.

    Parameters
    ----------
    adapters : mapping
        Key -> node description. One host's adapters share a host name and differ in the adapter.
    """
    by_host: dict[str, list[str]] = {}
    for key in sorted(adapters, key=lambda key: natural(adapters[key])):
        by_host.setdefault(host_name(adapters[key])[0], []).append(key)
    groups: list[list[str]] = []
    merged = 0
    notes = []
    for name, keys in by_host.items():
        kinds = [host_name(adapters[key])[1] for key in keys]
        if len(keys) > 1 and (name.lower() in _NAMELESS or "" in kinds or len(set(kinds)) < len(kinds)):
            notes.append(f"{len(keys)} adapters are called {name!r}: the names do not tell hosts apart; each is a host")
            groups += [[key] for key in keys]
            continue
        merged += len(keys) > 1
        groups.append(keys)
    if merged:
        notes.append(
            f"{merged} hosts have several adapters by their names; their ports are numbered on, see port_names"
        )
    return groups, notes


def unique_labels(wanted: Iterable[tuple[str, ...]]) -> list[str]:
    """Return for each tuple of names the first that no other tuple wants in that place; the last is unique.

    Examples
    --------
    >>> unique_labels([("a", "a 1", "x"), ("b", "b 1", "y"), ("b", "b 2", "z")])
    ['a', 'b 1', 'b 2']
    """
    rows = list(wanted)
    used = Counter(name for row in rows for name in set(row))
    return [next((name for name in row if used[name] == 1), row[-1]) for row in rows]
