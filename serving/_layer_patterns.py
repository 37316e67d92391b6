"""Which kind of layer stands where? One reader per way of writing a mix of layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from serving._attention import ReadMixer, compressed, indexed
from serving._keys import Keys
from serving._mixer import NOTHING, Mixer
from serving._windows import ReadWindows, full

__all__ = [
    "PATTERN_KEYS", "ReadMixers", "bamba_kinds", "by_kinds", "compressed_layers", "every", "every_nth",
    "indexed_layers", "jamba_kinds", "kimi_kinds", "list_of", "pattern_kinds", "pattern_length", "sliding_kinds",
]  # fmt: skip

#: All mixers of a model, from its keys, the width of the stream and the number of layers.
ReadMixers = Callable[[Keys, int, int], tuple[Mixer, ...]]
ReadKinds = Callable[[Keys, int], Sequence[str]]

#: Keys whose length is the number of layers.
PATTERN_KEYS = ("hybrid_override_pattern", "layers_block_type", "layer_types", "attn_type_list")
_LETTERS = {"M": "linear", "*": "full", "-": "mlp", "E": "moe"}
_NAMES = {
    "full_attention": "full", "attention": "full", "linear_attention": "linear", "mamba": "linear", "conv": "linear",
    "mlp": "mlp", "moe": "moe", "0": "linear", "1": "full", "sliding_attention": "full",
}  # fmt: skip


def pattern_length(keys: Keys) -> tuple[str, int] | None:
    """Return the first key that lists the layers one by one, and how many it lists."""
    for name in PATTERN_KEYS:
        value = keys.config.get(name)
        if isinstance(value, list | str) and value:
            return name, len(value)
    return None


def every(read: ReadMixer, windows: ReadWindows = full) -> ReadMixers:
    """All layers alike, but for how far back they look."""

    def mixers(keys: Keys, hidden: int, layers: int) -> tuple[Mixer, ...]:
        one = read(keys, hidden)
        return tuple(one.within(window) for window in windows(keys, layers))

    return mixers


def by_kinds(kinds: ReadKinds, readers: Mapping[str, ReadMixer]) -> ReadMixers:
    """Layers of several kinds; a kind without a reader mixes no tokens."""

    def mixers(keys: Keys, hidden: int, layers: int) -> tuple[Mixer, ...]:
        found = kinds(keys, layers)
        one = {kind: readers[kind](keys, hidden) if kind in readers else NOTHING for kind in dict.fromkeys(found)}
        return tuple(one[kind] for kind in found)

    return mixers


def pattern_kinds(keys: Keys, layers: int) -> Sequence[str]:
    """Layers follow a pattern of letters or a list of names: linear, full, mlp or moe."""
    found = pattern_length(keys)
    if found is None:
        keys.fault(PATTERN_KEYS[0], None, f"key is missing; looked for {', '.join(PATTERN_KEYS)}")
        return ["full"] * layers
    name, value = found[0], keys.config[found[0]]
    table = _LETTERS if isinstance(value, str) else _NAMES
    rows = [str(row) for row in value] if isinstance(value, str | list) else []
    strange = sorted({row for row in rows if row not in table})
    if strange:
        keys.fault(name, ", ".join(strange), f"is not a kind of layer that is known: {', '.join(table)}")
    if layers and len(rows) != layers:
        keys.fault(name, f"{len(rows)} entries", f"must have one entry per layer, {layers} of them")
    return [table.get(row, "full") for row in rows][:layers] or ["full"] * layers


def list_of(default: int) -> ReadKinds:
    """Layers follow layer_types; without it every full_attention_interval-th attends in full, the others not."""

    def kinds(keys: Keys, layers: int) -> Sequence[str]:
        if pattern_length(keys):
            return pattern_kinds(keys, layers)
        said = f"every {default}th layer attends in full, as in the model's class"
        step = keys.whole_or(default, "full_attention_interval", minimum=1, said=said) or default
        return every_nth(step, layers)

    return kinds


def every_nth(step: int, layers: int) -> list[str]:
    """Every step-th layer, counted from 1, attends in full; the others keep a state."""
    return ["full" if (layer + 1) % step == 0 else "linear" for layer in range(layers)]


def jamba_kinds(keys: Keys, layers: int) -> Sequence[str]:
    """Layers attn_layer_offset, then each attn_layer_period on, attend; the others are Mamba's."""
    period, offset = keys.whole("attn_layer_period"), keys.whole("attn_layer_offset", minimum=0)
    return ["full" if period and layer % period == offset else "linear" for layer in range(layers)]


def bamba_kinds(keys: Keys, layers: int) -> Sequence[str]:
    """Layers of attn_layer_indices, counted from 0, attend; the others are Mamba's."""
    full_layers = keys.value("attn_layer_indices")
    if not isinstance(full_layers, list) or any(layers and row not in range(layers) for row in full_layers):
        keys.fault("attn_layer_indices", full_layers, f"must be a list of layer numbers from 0 to {layers - 1}")
        return ["full"] * layers
    return ["full" if layer in full_layers else "linear" for layer in range(layers)]


def sliding_kinds(keys: Keys, layers: int) -> Sequence[str]:
    """Layers follow hybrid_layer_pattern: 1 slides, 0 attends in full."""
    rows = keys.value("hybrid_layer_pattern")
    if not isinstance(rows, list) or (layers and len(rows) != layers) or any(row not in (0, 1) for row in rows):
        keys.fault("hybrid_layer_pattern", rows, f"must be a list of {layers} entries, 1 where the layer slides")
        return ["full"] * layers
    return ["sliding" if row else "full" for row in rows]


def kimi_kinds(keys: Keys, layers: int) -> Sequence[str]:
    """Layers of linear_attn_config.full_attn_layers, counted from 1, attend; without it every fourth."""
    if pattern_length(keys):
        return pattern_kinds(keys, layers)
    full_layers = keys.value("linear_attn_config.full_attn_layers")
    if full_layers is None:
        keys.note("linear_attn_config.full_attn_layers is missing: every 4th layer, as in the model's class")
        return every_nth(4, layers)
    if not isinstance(full_layers, list) or any(layers and row not in range(1, layers + 1) for row in full_layers):
        rule = f"must be a list of layer numbers from 1 to {layers}"
        keys.fault("linear_attn_config.full_attn_layers", full_layers, rule)
        return ["full"] * layers
    return ["full" if layer + 1 in full_layers else "linear" for layer in range(layers)]


def indexed_layers(keys: Keys, hidden: int, layers: int) -> tuple[Mixer, ...]:
    """Sparse latent attention: indexer_types says which layers take an earlier layer's selection; none by default."""
    types = keys.config.get("indexer_types") or ["full"] * layers
    if not isinstance(types, list) or len(types) != layers or any(kind not in ("full", "shared") for kind in types):
        keys.fault("indexer_types", types, f"must be a list of {layers} times full or shared")
        return (NOTHING,) * layers
    one = {kind: indexed(keys, hidden, scores=kind == "full") for kind in dict.fromkeys(types)}
    return tuple(one[kind] for kind in types)


def compressed_layers(keys: Keys, hidden: int, layers: int) -> tuple[Mixer, ...]:
    """DeepSeek-V4: compress_ratios says of every layer 0 (a window only), 4 (with an indexer) or 128."""
    ratios = keys.config.get("compress_ratios")
    if ratios is None:
        keys.note("compress_ratios is missing: 128, 128, then 128 and 4 in turn, as in the model's class")
        ratios = [128, 128, *(4 if layer % 2 else 128 for layer in range(layers - 2))]
    known = {0: False, 4: True, 128: False}
    if not isinstance(ratios, list) or len(ratios) < layers or any(ratio not in known for ratio in ratios):
        keys.fault("compress_ratios", ratios, f"must hold 0, 4 or 128 for each of {layers} layers")
        return (NOTHING,) * layers
    one = {ratio: compressed(keys, hidden, ratio, indexer=known[ratio]) for ratio in dict.fromkeys(ratios)}
    return tuple(one[ratio] for ratio in ratios[:layers])
