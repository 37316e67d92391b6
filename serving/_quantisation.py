"""Which type are the weights stored in, and which parts of the model does the quantisation leave out?"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from serving._dtypes import CONFIG_DTYPES
from serving._keys import Keys
from topo import suggest

__all__ = ["METHODS", "PARTS", "WeightTypes", "read_weight_types"]

_GATED = ("gate_proj", "up_proj", "down_proj")


def _gated(*modules: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(f"{module}.{name}" for name in _GATED) for module in modules)


#: part -> the spellings checkpoints use for its modules within a decoder layer.
_IN_LAYER: dict[str, tuple[tuple[str, ...], ...]] = {
    "attention": (
        ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
        ("self_attn.q_a_proj", "self_attn.q_b_proj", "self_attn.kv_a_proj_with_mqa", "self_attn.kv_b_proj"),
    ),
    "router": (("mlp.gate",), ("mlp.router",), ("block_sparse_moe.gate",), ("feed_forward.router",)),
    "expert": _gated("mlp.experts.0", "block_sparse_moe.experts.0", "feed_forward.experts.0"),
    "shared": _gated("mlp.shared_experts", "mlp.shared_expert", "feed_forward.shared_expert"),
    "dense": _gated("mlp", "feed_forward"),
}
_OUTSIDE = {"embedding": "embed_tokens", "head": "lm_head"}
_PREFIXES = ("", "model.", "language_model.model.", "model.language_model.")

#: Parts of a model whose weights have one type.
PARTS: tuple[str, ...] = ("attention", "router", "expert", "shared", "dense", "embedding", "head")


class WeightTypes(NamedTuple):
    """Type of the quantised weights, of the others, the parts that are the others, and that of experts if its own."""

    weight_dtype: str
    other_dtype: str
    unquantised: tuple[str, ...] = ()
    expert_dtype: str | None = None


class _Scheme(NamedTuple):
    """What one quantization_config says: the type, patterns left out, and parts the method never touches."""

    dtype: str
    patterns: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()


def read_weight_types(keys: Keys, where: Mapping[str, list[int]]) -> WeightTypes:
    """Return the weight types of a config; faults are left in ``keys.faults``.

    Parameters
    ----------
    keys : Keys
        The config.
    where : mapping of str to list of int
        Layers each part is in; a part that is nowhere has no type.
    """
    other = _plain_dtype(keys)
    config = keys.anywhere("quantization_config")
    if config is None:
        return WeightTypes(other, other)
    if not isinstance(config, Mapping):
        keys.fault("quantization_config", config, "must be an object")
        return WeightTypes(other, other)
    scheme = _scheme(keys, config)
    if scheme.untouched:
        keys.note(f"quantization_config: {' and '.join(scheme.untouched)} taken as {other}: the method leaves them")
    parts = [part for part in PARTS if where[part]]
    left_out = [
        part for part in parts if part in scheme.untouched or _left_out(keys, part, scheme.patterns, where[part])
    ]
    return WeightTypes(scheme.dtype, other, tuple(left_out), _expert_dtype(keys))


def _expert_dtype(keys: Keys) -> str | None:
    """Return the type of the experts where expert_dtype says it is another one (DeepSeek-V4)."""
    value = keys.anywhere("expert_dtype")
    if value is None:
        return None
    if not isinstance(value, str) or value not in CONFIG_DTYPES:
        keys.fault("expert_dtype", value, "is not a type whose size is known", suggest(str(value), CONFIG_DTYPES))
        return None
    return CONFIG_DTYPES[value]


def _plain_dtype(keys: Keys) -> str:
    value = keys.anywhere("torch_dtype", "dtype")
    if value is None:
        keys.note("torch_dtype and dtype are missing: bf16 taken")
        return "bf16"
    name = str(value).removeprefix("torch.")
    if not isinstance(value, str) or name not in CONFIG_DTYPES:
        key = "dtype" if keys.anywhere("torch_dtype") is None else "torch_dtype"
        keys.fault(key, value, "is not a type whose size is known", suggest(str(value), CONFIG_DTYPES))
        return "bf16"
    return CONFIG_DTYPES[name]


def _strings(keys: Keys, config: Mapping[str, object], *names: str) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        value = config.get(name) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            keys.fault(f"quantization_config.{name}", value, "must be a list of module names")
            continue
        found += value
    return tuple(found)


def _wrong(keys: Keys, key: str, value: object, known: Iterable[object]) -> _Scheme:
    rule = f"is not known; known: {', '.join(map(str, known))}"
    keys.fault(f"quantization_config.{key}", value, rule, "Correct it, or take quantization_config out.")
    return _Scheme("bf16")


def _fp8(keys: Keys, config: Mapping[str, object]) -> _Scheme:
    return _Scheme("fp8", _strings(keys, config, "modules_to_not_convert", "ignored_layers"))


def _fbgemm(keys: Keys, config: Mapping[str, object]) -> _Scheme:
    return _Scheme("fp8", _strings(keys, config, "modules_to_not_convert"), ("embedding", "head"))


def _mxfp4(keys: Keys, config: Mapping[str, object]) -> _Scheme:
    patterns = _strings(keys, config, "modules_to_not_convert")
    untouched = tuple(part for part in PARTS if part != "expert") if not patterns else ()
    return _Scheme("mxfp4", patterns, untouched)


def _modelopt(keys: Keys, config: Mapping[str, object]) -> _Scheme:
    algorithms = {"NVFP4": "nvfp4", "FP8": "fp8"}
    default = "NVFP4" if config.get("quant_method") == "nvfp4" else None
    value = config.get("quant_algo", default)
    if not isinstance(value, str) or value not in algorithms:
        return _wrong(keys, "quant_algo", value, algorithms)
    return _Scheme(algorithms[value], _strings(keys, config, "ignore", "exclude_modules"), ("embedding",))


def _by_bits(keys: Keys, config: Mapping[str, object]) -> _Scheme:
    bits = {4: "int4", 8: "int8"}
    value = config.get("bits")
    if not isinstance(value, int) or value not in bits:
        return _wrong(keys, "bits", value, bits)
    head: tuple[str, ...] = () if config.get("lm_head") is True else ("head",)
    patterns = _strings(keys, config, "modules_to_not_convert")
    return _Scheme(bits[value], patterns, ("router", "embedding", *head))


def _bitsandbytes(keys: Keys, config: Mapping[str, object]) -> _Scheme:
    names = {"load_in_4bit": "int4", "load_in_8bit": "int8"}
    dtype = next((dtype for name, dtype in names.items() if config.get(name) is True), None)
    if dtype is None:
        return _wrong(keys, "load_in_4bit", config.get("load_in_4bit"), ["load_in_4bit true", "load_in_8bit true"])
    return _Scheme(dtype, _strings(keys, config, "llm_int8_skip_modules"), ("embedding", "head"))


def _compressed_tensors(keys: Keys, config: Mapping[str, object]) -> _Scheme:
    groups = config.get("config_groups")
    each = groups.values() if isinstance(groups, Mapping) else ()
    weights = [group.get("weights") for group in each if isinstance(group, Mapping)]
    known = {"8-bit float": "fp8", "8-bit int": "int8", "4-bit int": "int4", "4-bit float": "fp4"}
    said = {f"{w.get('num_bits')}-bit {w.get('type', 'int')}" for w in weights if isinstance(w, Mapping)}
    if len(said) != 1 or not said <= known.keys():
        return _wrong(keys, "config_groups", sorted(said), [f"weights all {name}" for name in known])
    dtype = known[said.pop()]
    blocks = {str(w.get("group_size")) for w in weights if isinstance(w, Mapping)}
    if dtype == "fp4" and len(blocks) == 1:
        dtype = {"16": "nvfp4", "32": "mxfp4"}.get(blocks.pop(), "fp4")
    return _Scheme(dtype, _strings(keys, config, "ignore"), ("embedding",))


#: quant_method -> how its quantization_config is read.
METHODS: dict[str, Callable[[Keys, Mapping[str, object]], _Scheme]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "mxfp4": _mxfp4,
    "modelopt": _modelopt,
    "nvfp4": _modelopt,
    "compressed-tensors": _compressed_tensors,
    "awq": _by_bits,
    "gptq": _by_bits,
    "bitsandbytes": _bitsandbytes,
}


def _scheme(keys: Keys, config: Mapping[str, object]) -> _Scheme:
    method = config.get("quant_method")
    if not isinstance(method, str) or method not in METHODS:
        cure = suggest(str(method), METHODS)
        keys.fault("quantization_config.quant_method", method, "is not a known method", cure)
        return _Scheme("bf16")
    return METHODS[method](keys, config)


def _left_out(keys: Keys, part: str, patterns: tuple[str, ...], layers: list[int]) -> bool:
    """Say whether the patterns cover every module of the part; a part covered in places is noted as quantised."""
    matches = _matcher(patterns)
    if part in _OUTSIDE:
        return any(matches(prefix + _OUTSIDE[part]) for prefix in _PREFIXES)
    covered = max(
        sum(any(matches(f"{prefix}layers.{i}.{name}") for prefix in _PREFIXES) for i in layers for name in names)
        / (len(names) * len(layers))
        for names in _IN_LAYER[part]
    )
    if 0 < covered < 1:
        keys.note(f"quantization_config leaves out {covered:.0%} of the {part} modules: all counted as quantised")
    return covered == 1


@functools.cache
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Match module names: "re:" starts a regular expression, anything else is a path of whole names (* for any)."""
    expressions = [
        pattern.removeprefix("re:") if pattern.startswith("re:") else rf"(?:.*\.)?{_path(pattern)}(?:\.|$)"
        for pattern in patterns
    ]
    either = re.compile("|".join(f"(?:{text})" for text in expressions if _compiles(text)) or r"(?!)")
    return lambda name: either.match(name) is not None


def _path(pattern: str) -> str:
    return ".*".join(re.escape(piece) for piece in pattern.strip(".").split("*"))


def _compiles(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
