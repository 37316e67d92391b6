"""How far back does each layer look? One reader per way of writing it."""

from __future__ import annotations

from collections.abc import Callable

from serving._keys import Keys
from serving._mixer import Mixer

__all__ = [
    "ReadWindows", "alternating", "by_types", "chunked", "full", "periodic", "sliding", "windowed", "windows_above",
    "windows_if_used",
]  # fmt: skip

Windows = tuple[int | None, ...]
#: The window of every layer, from the keys and the number of layers.
ReadWindows = Callable[[Keys, int], Windows]


def full(keys: Keys, layers: int) -> Windows:
    """Every layer sees the whole context; a sliding_window that is set is noted as ignored."""
    if keys.config.get("sliding_window") is not None:
        keys.note(f"sliding_window = {keys.config['sliding_window']!r} is ignored: this family attends in full")
    return (None,) * layers


def windowed(keys: Keys, layers: int) -> Windows:
    """Every layer sees the sliding_window, the whole context where that is null or missing."""
    said = "" if keys.config.get("sliding_window", 0) is None else "full attention taken"
    return (keys.whole_or(None, "sliding_window", minimum=1, said=said),) * layers


def sliding(read: Callable[[Keys, int], Mixer]) -> Callable[[Keys, int], Mixer]:
    """Return a reader of a layer that sees the sliding_window."""
    return lambda keys, hidden: read(keys, hidden).within(keys.whole("sliding_window", "sliding_window_size"))


def windows_if_used(keys: Keys, layers: int) -> Windows:
    """Every layer sees the sliding_window when use_sliding_window is true."""
    if not keys.flag("use_sliding_window", quiet=True):
        return (None,) * layers
    return (keys.whole("sliding_window"),) * layers


def windows_above(keys: Keys, layers: int) -> Windows:
    """Layers from max_window_layers on see the sliding_window when use_sliding_window is true."""
    if not keys.flag("use_sliding_window", quiet=True):
        return (None,) * layers
    if "layer_types" in keys.config:
        return by_types(keys, layers)
    first, window = keys.whole("max_window_layers", minimum=0), keys.whole("sliding_window")
    return tuple(window if layer >= first else None for layer in range(layers))


def alternating(keys: Keys, layers: int) -> Windows:
    """Layers follow layer_types; where that is missing every other layer slides, the first one included."""
    return periodic(2)(keys, layers)


def periodic(period: int) -> ReadWindows:
    """Layers follow layer_types; where that is missing all slide but every period-th, counted from 1.

    The period is that of the key sliding_window_pattern where the config has one.
    """

    def windows(keys: Keys, layers: int) -> Windows:
        if keys.config.get("layer_types") is not None:
            return by_types(keys, layers)
        if keys.config.get("sliding_window", 0) is None:
            return (None,) * layers
        window = keys.whole("sliding_window")
        every = keys.whole_or(None, "sliding_window_pattern", "_sliding_window_pattern", minimum=1)
        if every is None:
            keys.note(f"layer_types is missing: every layer slides but each {period}th, as in the model's class")
        every = every or period
        return tuple(None if (layer + 1) % every == 0 else window for layer in range(layers))

    return windows


def by_types(keys: Keys, layers: int) -> Windows:
    """Layers follow layer_types, a list of full_attention and sliding_attention."""
    types = keys.config.get("layer_types")
    known = {"full_attention", "sliding_attention"}
    if not isinstance(types, list) or any(kind not in known for kind in map(str, types)):
        keys.fault("layer_types", types, f"must be a list of {' or '.join(sorted(known))}")
        return (None,) * layers
    if layers and len(types) != layers:
        keys.fault("layer_types", f"{len(types)} entries", f"must have one entry per layer, {layers} of them")
    window = keys.whole("sliding_window") if "sliding_attention" in types else None
    return tuple(window if kind == "sliding_attention" else None for kind in types[: layers or len(types)])


def chunked(keys: Keys, layers: int) -> Windows:
    """Llama 4: layers with rotary positions attend within chunks, the others (no_rope_layers 0) in full."""
    stated = keys.config.get("no_rope_layers") or []
    if not isinstance(stated, list) or (stated and len(stated) != layers):
        keys.fault("no_rope_layers", stated, f"must be a list of {layers} entries, 1 with rotary positions")
        stated = []
    every = keys.whole_or(4, "no_rope_layer_interval", minimum=1) or 4
    rotary = [bool(kind) for kind in stated] or [(layer + 1) % every != 0 for layer in range(layers)]
    if not stated:
        keys.note(f"no_rope_layers is empty: every {every}th layer attends in full, as in the model's class")
    chunk = keys.whole_or(None, "attention_chunk_size", minimum=1)
    if chunk:
        keys.note(f"attention in chunks of {chunk}: counted as a window, though a token sees half of it on average")
    return tuple(chunk if local else None for local in rotary)
