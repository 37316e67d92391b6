"""What model does a config.json describe?"""

from __future__ import annotations

import os
from collections.abc import Mapping

from serving._assumed import assumed
from serving._catalogue import Config, find_config
from serving._families import ARCHITECTURES, FAMILIES, INNER_TYPES, NESTED, REFUSED, SIGNATURES
from serving._feed_forward import Family, FeedForward, read_feed_forward
from serving._keys import Keys
from serving._layer_patterns import PATTERN_KEYS, pattern_length
from serving._model import Model
from serving._quantisation import read_weight_types
from topo import Fault, InputError, suggest

__all__ = ["load_model"]

HIDDEN = ("hidden_size", "d_model", "n_embd", "n_embed", "dim", "emb_size")
LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
VOCABULARY = ("vocab_size", "padded_vocab_size")
MTP = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")

#: Layers are listed one by one; a slip of the pen must not fill the memory.
_MOST_LAYERS = 10_000


def load_model(name_or_path: str | os.PathLike[str], assume: Mapping[str, object] | None = None) -> Model:
    """Return a model of the catalogue, or the one a Hugging Face config.json describes.

    Parameters
    ----------
    name_or_path : str or path
        A name from `list_models`, a file, or a directory that holds a config.json.
    assume : mapping of str to object, optional
        Keys to read as if the config held them; dots lead into nested objects, and "@key" takes
        what stands under another key. ``{"model_type": "mixtral"}`` reads an unknown family as one
        that is known.

    Returns
    -------
    Model
        Parameters by part, KV cache, arithmetic and weight types, layer by layer.

    Raises
    ------
    InputError
        No such name or file, not JSON, a family that is not known, or keys that are missing, wrong or
        at odds with each other: all of them at once.

    Examples
    --------
    >>> load_model("llama-3.1-405b")
    Model(llama-3.1-405b: 405.8 B parameters, dense, 126 layers, bf16)
    >>> load_model("llama-3.1-405b", assume={"num_hidden_layers": 63}).notes[0]
    'assumed: num_hidden_layers = 63, in the place of 126'
    """
    config = assumed(find_config(name_or_path), {} if assume is None else assume)
    keys, family = _language_model(config)
    model = _model(config, family, keys)
    if keys.faults:
        raise InputError(*keys.faults)
    return model


def _language_model(config: Config) -> tuple[Keys, str]:
    """Return the object that holds the language model, with notes on what lies outside of it, and its family."""
    content = config.content
    keys, family = Keys(content, config.file), _family(content)
    if family not in FAMILIES:
        for place in NESTED:
            inner = keys.value(place)
            if isinstance(inner, dict):
                nested = Keys(inner, config.file, f"{place}.", content)
                keys, family = nested, _family(inner) or INNER_TYPES.get(str(family))
                break
        else:
            # Written flat, as if the language model were all there is.
            family = INNER_TYPES.get(str(family), family) if keys.spelling(HIDDEN) else family
    if family not in FAMILIES:
        raise InputError(_unknown(config, keys, family))
    keys.notes.extend(config.notes)
    if "vision_config" in content or "audio_config" in content:
        keys.note("only the language model is counted: towers for images or sound are left out")
    return keys, str(family)


def _family(content: Mapping[str, object]) -> str | None:
    """Return what a config calls its family, or what its class or its keys say."""
    named = content.get("model_type")
    if isinstance(named, str) and named in FAMILIES:
        return named
    classes = content.get("architectures")
    for name in classes if isinstance(classes, list) else ():
        if str(name) in ARCHITECTURES:
            return ARCHITECTURES[str(name)]
    if named is None:
        return next((family for signs, family in SIGNATURES if signs <= content.keys()), None)
    return str(named)


def _unknown(config: Config, keys: Keys, family: str | None) -> Fault:
    place = f"{keys.prefix}model_type"
    if family is None:
        looked = ", ".join(["model_type", *(f"{name}.model_type" for name in NESTED)])
        rule = f"key is missing; looked for {looked}, and for the keys of publishers' own inference configs"
        cure = "Give the config.json of the model's Hugging Face repository, or assume model_type=FAMILY."
        return Fault(place, None, rule, cure, config.file)
    if family in INNER_TYPES:
        rule = f"must be the object that holds the language model of {family}"
        return Fault(NESTED[0], config.content.get(NESTED[0]), rule, "Give the config.json as published.", config.file)
    if family in REFUSED:
        # No nearest name here: reading it as its neighbour would be the mistake.
        rule, cure = (
            f"is a family that is not supported: {REFUSED[family]}",
            f"Supported: {', '.join(sorted(FAMILIES))}.",
        )
        return Fault(place, family, rule, cure, config.file)
    other = f"If it is built like one of them, assume {place}=FAMILY, and KEY=@THEIRS where it names a key otherwise."
    return Fault(
        place, family, "is not a family whose keys are known", f"{suggest(family, FAMILIES)} {other}", config.file
    )


def _layer_count(keys: Keys) -> int:
    """Return the layers stated, or as many as a pattern lists."""
    listed = pattern_length(keys)
    if keys.spelling(LAYERS) is None and listed:
        keys.note(f"{LAYERS[0]} is missing: the {listed[1]} layers of {listed[0]}")
        layers = listed[1]
    elif keys.spelling(LAYERS) is None:
        looked = ", ".join(keys.prefix + name for name in (*LAYERS, *PATTERN_KEYS))
        keys.fault(LAYERS[0], None, f"key is missing; looked for {looked}")
        return 0
    else:
        layers = keys.whole(*LAYERS)
    if layers > _MOST_LAYERS:
        keys.fault(LAYERS[0], layers, f"is more than {_MOST_LAYERS}, which no model has")
        return 0
    return layers


def _model(config: Config, family: str, keys: Keys) -> Model:
    """Read every part; when ``keys.faults`` is not empty the numbers mean nothing."""
    row = FAMILIES[family]
    layers, hidden, vocabulary = _layer_count(keys), keys.whole(*HIDDEN), keys.whole(*VOCABULARY)
    mixers = row.mixers(keys, hidden, layers)
    feed_forward = read_feed_forward(keys, row, hidden, layers)
    types = read_weight_types(keys, _where(feed_forward, layers))
    return Model(
        name=config.name,
        family=family,
        layers=layers,
        hidden_size=hidden,
        vocab_size=vocabulary,
        mixers=mixers,
        # Norms of the stream in each layer, and one before the head.
        norm_params=sum(row.norms * hidden + mixer.norm_params for mixer in mixers) + hidden,
        embedding_params=vocabulary * hidden,
        head_params=0 if _tied(keys, row) else vocabulary * hidden,
        mtp_layers=_mtp_layers(keys),
        source=config.source,
        notes=tuple(keys.notes),
        **feed_forward._asdict(),
        **types._asdict(),
    )


def _tied(keys: Keys, row: Family) -> bool:
    # The inference config of Grok-1 has no key for it; its code shares the matrix.
    return keys.flag("tie_word_embeddings", default=row.tied or keys.has("widening_factor"))


def _mtp_layers(keys: Keys) -> int:
    count = keys.anywhere(*MTP)
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        keys.note(f"{count} multi-token-prediction layers are left out of the counts")
        return count
    return 0


def _where(feed_forward: FeedForward, layers: int) -> dict[str, list[int]]:
    """Return the layers each part of a model is in."""
    moe = [layer for layer, is_moe in enumerate(feed_forward.moe_layer_mask) if is_moe]
    dense = [layer for layer, params in enumerate(feed_forward.dense_params) if params]
    shared = moe if feed_forward.shared_params else []
    every = list(range(layers))
    return {"attention": every, "router": moe, "expert": moe, "shared": shared, "dense": dense, "embedding": every,
            "head": every}  # fmt: skip
