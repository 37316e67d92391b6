"""What model does a config.json describe?"""

from __future__ import annotations

import os

from serving._catalogue import Config, find_config
from serving._families import FAMILIES, REFUSED, read_feed_forward
from serving._keys import Keys
from serving._model import Model
from serving._quantisation import read_weight_types
from topo import Fault, InputError, suggest

__all__ = ["load_model"]

#: Layers are listed one by one; a slip of the pen must not fill the memory.
_MOST_LAYERS = 10_000


def load_model(name_or_path: str | os.PathLike[str]) -> Model:
    """Return a model of the catalogue, or the one a Hugging Face config.json describes.

    Parameters
    ----------
    name_or_path : str or path
        A name from `list_models`, a file, or a directory that holds a config.json.

    Returns
    -------
    Model
        Parameters by part, KV cache, attention arithmetic and weight types.

    Raises
    ------
    InputError
        No such name or file, not JSON, a family that is not known, or keys that are missing, wrong or
        at odds with each other: all of them at once.

    Examples
    --------
    >>> load_model("llama-3.1-405b")
    Model(llama-3.1-405b: 405.8 B parameters, dense, 126 layers, bf16)
    """
    config = find_config(name_or_path)
    family = _family(config)
    keys = _keys(config, family)
    model = _model(config, family, keys)
    if keys.faults:
        raise InputError(*keys.faults)
    return model


def _family(config: Config) -> str:
    """Return the model_type when it is one that is known."""
    family = config.content.get("model_type")
    if family is None:
        raise InputError(_no_model_type(config))
    if isinstance(family, str) and family in FAMILIES:
        return family
    why = REFUSED.get(str(family))
    if why:
        # No nearest name here: reading it as its neighbour would be the mistake.
        rule, cure = f"is a family that is not supported: {why}", f"Supported: {', '.join(sorted(FAMILIES))}."
    else:
        rule, cure = "is not a family whose keys are known", suggest(str(family), FAMILIES)
    raise InputError(Fault("model_type", family, rule, cure, config.file))


def _no_model_type(config: Config) -> Fault:
    nested = config.content.get("text_config")
    if isinstance(nested, dict) and "model_type" in nested:
        rule = f"key is missing, though text_config.model_type = {nested['model_type']!r}"
        return Fault("model_type", None, rule, "Give the whole config.json as published.", config.file)
    rule = "key is missing; looked for model_type, text_config.model_type"
    cure = "Give the config.json of the model's Hugging Face repository."
    if {"dim", "n_layers", "n_heads"} <= config.content.keys():
        rule += "; keys dim, n_layers, n_heads are those of a publisher's own inference config"
    return Fault("model_type", None, rule, cure, config.file)


def _keys(config: Config, family: str) -> Keys:
    """Return the object that holds the language model, with a note on what lies outside of it."""
    row = FAMILIES[family]
    keys = Keys(config.content, config.file)
    if row.nested:
        inner = config.content.get(row.nested)
        if not isinstance(inner, dict):
            rule = f"must be the object that holds the language model of {family}"
            raise InputError(Fault(row.nested, inner, rule, "Give the config.json as published.", config.file))
        keys = Keys(inner, config.file, f"{row.nested}.", config.content)
        if inner.get("model_type", row.nested_type) != row.nested_type:
            keys.fault("model_type", inner["model_type"], f"must be {row.nested_type} within {family}")
    keys.notes.extend(config.notes)
    if "vision_config" in config.content:
        keys.note("vision_config: the vision tower is not counted")
    for name in ("num_nextn_predict_layers", "num_mtp_modules"):
        if keys.anywhere(name):
            keys.note(f"{name} = {keys.anywhere(name)}: multi-token-prediction layers are left out")
    return keys


def _model(config: Config, family: str, keys: Keys) -> Model:
    """Read every part; when ``keys.faults`` is not empty the numbers mean nothing."""
    row = FAMILIES[family]
    layers, hidden, vocab = (keys.whole(key) for key in ("num_hidden_layers", "hidden_size", "vocab_size"))
    if layers > _MOST_LAYERS:
        keys.fault("num_hidden_layers", layers, f"is more than {_MOST_LAYERS}, which no model has")
        layers = 0
    attention = row.attention(keys, hidden)
    windows = row.windows(keys, layers)
    feed_forward = read_feed_forward(keys, row, hidden, layers)
    if feed_forward.n_experts and layers and not any(feed_forward.moe_layer_mask):
        keys.note(f"{feed_forward.n_experts} experts are stated but no layer is MoE: read as a dense model")
        feed_forward = feed_forward._replace(n_experts=0, top_k=0, expert_params=0, shared_params=0, router_params=0)
    types = read_weight_types(keys, feed_forward.moe_layer_mask, shared=feed_forward.shared_params > 0)
    return Model(
        name=config.name,
        family=family,
        layers=layers,
        hidden_size=hidden,
        vocab_size=vocab,
        attention=attention.kind,
        attention_params=attention.params,
        # Two norms of the stream in each layer, one before the head.
        norm_params=layers * (2 * hidden + attention.norms) + hidden,
        embedding_params=vocab * hidden,
        head_params=0 if keys.flag("tie_word_embeddings") else vocab * hidden,
        kv_elements_per_layer=attention.kv_elements,
        attention_flops_per_position=attention.flops_per_position,
        attention_window=windows,
        source=config.source,
        notes=tuple(keys.notes),
        **feed_forward._asdict(),
        **types._asdict(),
    )
