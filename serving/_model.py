"""How many weights, KV bytes and FLOP does a model have, part by part and layer by layer?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from serving._dtypes import dtype_bytes
from serving._elementwise import Number, require_positions
from serving._mixer import Mixer
from serving._quantisation import PARTS
from serving.laws import matmul_flop
from topo import Fault, InputError, suggest

__all__ = ["STATE_BYTES", "Model"]

#: Recurrent states are kept in fp32 [bytes].
STATE_BYTES = 4.0


@dataclass(frozen=True, repr=False)
class Model:
    """A decoder-only language model as far as its step time depends on it.

    Parameters
    ----------
    name : str
        Catalogue name, or the stem of the file.
    family : str
        The model_type it was read as.
    layers, hidden_size, vocab_size : int
        Decoder layers (multi-token-prediction layers left out), width, vocabulary.
    n_experts, top_k : int
        Routed experts of one MoE layer and how many a token takes; 0 when the model is dense.
    moe_layer_mask : tuple of bool, one per layer
        True where the layer has routed experts.
    mixers : tuple of Mixer, one per layer
        What mixes tokens: attention, a recurrence, nothing.
    dense_params : tuple of int, one per layer
        Parameters of the dense feed-forward, 0 where there is none; beside the experts where
        they are residual.
    expert_params, shared_params, router_params : int
        Parameters of one routed expert, and of the shared experts and the router of one MoE layer.
    expert_hidden_size : int
        Width of a token as it is sent to the experts; 0 when the model is dense.
    norm_params : int
        Parameters of all norms of the model; in no other count.
    embedding_params, head_params : int
        Parameters of the embedding, and of the head (0 when the head is the embedding).
    mtp_layers : int
        Multi-token-prediction layers; in no count.
    weight_dtype, other_dtype : str
        Type of the weights, and of the parts in `unquantised`.
    unquantised : tuple of str
        Parts the quantisation leaves out: "attention", "router", "expert", "shared", "dense", "embedding", "head".
    expert_dtype : str or None
        Type of the routed experts where it is their own.
    n_group, topk_group : int or None
        The published group limit of the routing, None where there is none.
    source : str
        Where the numbers were read.
    notes : tuple of str
        What was filled in, left out or ignored.

    Examples
    --------
    >>> from serving import load_model
    >>> model = load_model("deepseek-v3")
    >>> model
    Model(deepseek-v3: 671.0 B parameters, 37.6 B active, 58 of 61 layers with 256 experts top-8, fp8)
    >>> model.kv_bytes_per_token
    70272.0
    """

    name: str
    family: str
    layers: int
    hidden_size: int
    vocab_size: int
    n_experts: int
    top_k: int
    moe_layer_mask: tuple[bool, ...]
    mixers: tuple[Mixer, ...]
    dense_params: tuple[int, ...]
    expert_params: int
    shared_params: int
    router_params: int
    expert_hidden_size: int
    norm_params: int
    embedding_params: int
    head_params: int
    mtp_layers: int
    weight_dtype: str
    other_dtype: str
    unquantised: tuple[str, ...]
    expert_dtype: str | None
    n_group: int | None
    topk_group: int | None
    source: str
    notes: tuple[str, ...]

    @property
    def n_moe_layers(self) -> int:
        """Number of MoE layers."""
        return sum(self.moe_layer_mask)

    @property
    def is_moe(self) -> bool:
        """Whether any layer has routed experts."""
        return self.n_moe_layers > 0

    @property
    def attention(self) -> str:
        """Kinds of mixers, as "mla" or "linear + gqa"."""
        kinds = dict.fromkeys(mixer.kind for mixer in self.mixers if mixer.kind != "none")
        return " + ".join(kinds)

    @property
    def attention_heads(self) -> int:
        """Most GPUs that can share out the heads of every layer; 0 where no layer has heads."""
        return math.gcd(*(mixer.heads for mixer in self.mixers))

    @property
    def total_params(self) -> int:
        """Parameters of the model, norms left out (they are below 1 in 10^4)."""
        return self._params(self.n_experts)

    @property
    def active_params(self) -> int:
        """Parameters a token meets: `top_k` experts per MoE layer, all the rest, embedding and head included."""
        return self._params(self.top_k)

    def _params(self, experts_per_layer: int) -> int:
        every = range(self.layers)
        parts = ("attention", "router", "shared", "dense")
        fixed = sum(self.params_in(part, every) for part in parts) + self.embedding_params + self.head_params
        return fixed + self.n_moe_layers * experts_per_layer * self.expert_params

    def params_in(self, part: str, layers: Iterable[int]) -> int:
        """Return the parameters of a part in some layers.

        Parameters
        ----------
        part : str
            "attention" (the mixer), "router", "shared", "dense", or "expert" (one of each MoE layer).
        layers : iterable of int
            From 0.

        Examples
        --------
        >>> from serving import load_model
        >>> load_model("deepseek-v3").params_in("attention", range(61)) / 1e9
        11.41342208
        """
        if part == "attention":
            return sum(self.mixers[i].params for i in layers)
        if part == "dense":
            return sum(self.dense_params[i] for i in layers)
        each = {"router": self.router_params, "shared": self.shared_params, "expert": self.expert_params}[part]
        return each * sum(self.moe_layer_mask[i] for i in layers)

    def bytes_in(self, part: str, layers: Iterable[int]) -> float:
        """Return the bytes of a part in some layers; see `params_in` [bytes]."""
        return self.params_in(part, layers) * dtype_bytes(self.dtype_of(part))

    @property
    def expert_bytes(self) -> float:
        """Bytes of one routed expert [bytes]."""
        return self.bytes_of("expert")

    def dtype_of(self, part: str) -> str:
        """Return the type a part's weights are stored in; see `bytes_of`."""
        if part not in PARTS:
            raise InputError(Fault("part", part, "is not a part of a model", suggest(str(part), PARTS)))
        if part == "expert" and self.expert_dtype is not None:
            return self.expert_dtype
        return self.other_dtype if part in self.unquantised else self.weight_dtype

    @property
    def dtypes(self) -> set[str]:
        """Types of the weights of all parts there are."""
        experts = {self.dtype_of("expert")} if self.is_moe else set()
        return {self.weight_dtype} | ({self.other_dtype} if self.unquantised else set()) | experts

    def bytes_of(self, part: str) -> float:
        """Return the bytes of one part.

        Parameters
        ----------
        part : str
            "router" or "shared" (of one MoE layer), "expert" (one routed expert), "embedding", "head";
            for what differs from layer to layer see `bytes_in`.

        Returns
        -------
        float
            Weights of that one piece [bytes].

        Raises
        ------
        InputError
            There is no such part.

        Examples
        --------
        >>> from serving import load_model
        >>> load_model("deepseek-v3").bytes_of("expert")
        44040192.0
        """
        each = dtype_bytes(self.dtype_of(part))
        if part in ("attention", "dense"):
            rule = "differs from layer to layer"
            raise InputError(Fault("part", part, rule, "Ask bytes_in(part, layers)."))
        return float(getattr(self, f"{part}_params")) * each

    def layer_weight_bytes(self, index: int, n_local_experts: float) -> float:
        """Return the bytes of one layer with some of its experts.

        Parameters
        ----------
        index : int
            Layer, from 0.
        n_local_experts : float
            Routed experts held; without effect on a dense layer.

        Returns
        -------
        float
            Attention, and router, shared experts and held experts, or the dense feed-forward [bytes].

        Raises
        ------
        InputError
            There is no such layer.

        Examples
        --------
        >>> from serving import load_model
        >>> load_model("deepseek-v3").layer_weight_bytes(60, 256) / 1e9
        11.507269632
        """
        if not 0 <= index < self.layers:
            rule = f"must be a layer of {self.name}, 0 to {self.layers - 1}"
            raise InputError(Fault("index", index, rule, "Layers are counted from 0."))
        held = n_local_experts * self.expert_bytes if self.moe_layer_mask[index] else 0.0
        return held + sum(self.bytes_in(part, [index]) for part in ("attention", "router", "shared", "dense"))

    @property
    def total_weight_bytes(self) -> float:
        """Bytes of all weights, norms left out [bytes]."""
        layers = sum(self.layer_weight_bytes(index, self.n_experts) for index in range(self.layers))
        return layers + self.bytes_of("embedding") + self.bytes_of("head")

    @property
    def kv_bytes_per_token(self) -> float:
        """KV cache a token takes in all layers while it is within every window, at bf16 [bytes]."""
        return self.kv_bytes(1)

    def kv_bytes(self, context: Number, kv_dtype: str = "bf16") -> Number:
        """Return the KV cache of one sequence.

        Parameters
        ----------
        context : float or array
            Positions in the context.
        kv_dtype : str
            Type of the cache.

        Returns
        -------
        float or array
            Sum over layers of the positions kept: min(context, window) / stride of each cache [bytes].

        Raises
        ------
        InputError
            The type is unknown, or a context is no number of positions.

        Examples
        --------
        >>> from serving import load_model
        >>> load_model("deepseek-v3").kv_bytes(4096, "fp8")
        143917056.0
        """
        require_positions(context)
        each, alike = dtype_bytes(kv_dtype, "kv_dtype"), Counter(self.mixers)
        return sum((count * mixer.kv_kept(context) * each for mixer, count in alike.items()), 0.0 * context)

    @property
    def state_bytes(self) -> float:
        """What a sequence keeps whatever its length: recurrent states at fp32 [bytes]."""
        return sum(mixer.state_elements for mixer in self.mixers) * STATE_BYTES

    def flops_per_token(self, context: float) -> float:
        """Return the arithmetic of one new token.

        Parameters
        ----------
        context : float
            Positions in the context, the token's own among them.

        Returns
        -------
        float
            2 FLOP per weight met (the embedding is looked up, not multiplied), and the mixers' own [FLOP].

        Raises
        ------
        InputError
            The context is no number of positions, one or more.

        Examples
        --------
        >>> from serving import load_model
        >>> model = load_model("deepseek-v3")
        >>> round(model.flops_per_token(1) / 1e9, 1), round(model.flops_per_token(4096) / 1e9, 1)
        (73.3, 142.8)
        """
        require_positions(context, least=1)
        head = self.head_params or self.embedding_params
        return matmul_flop(1.0, float(head)) + sum(self.layer_flops(i, context) for i in range(self.layers))

    def layer_flops(self, index: int, context: float) -> float:
        """Return the arithmetic of one new token in one layer [FLOP]; see `flops_per_token`."""
        parts = ("attention", "router", "shared", "dense")
        met = sum(self.params_in(part, [index]) for part in parts) + self.top_k * self.params_in("expert", [index])
        return matmul_flop(1.0, float(met)) + self.mixers[index].flop(context - 1, context)

    def layer_table(self, context: int = 4096) -> list[dict[str, Any]]:
        """Return what each layer is and holds, ready for JSON: [bytes] at bf16 KV, [FLOP] at a context.

        Examples
        --------
        >>> from serving import load_model
        >>> row = load_model("deepseek-v3").layer_table()[3]
        >>> row["mixer"], row["feed_forward"], row["kv_bytes_per_token"]
        ('mla', '256 experts top-8, shared', 1152.0)
        """
        return [
            {
                "mixer": mixer.kind,
                "window": min((cache.window for cache in mixer.caches if cache.window), default=None),
                "feed_forward": self._feed_forward(i),
                "params": self._layer_params(i, self.n_experts),
                "active_params": self._layer_params(i, self.top_k),
                "weight_bytes": self.layer_weight_bytes(i, self.n_experts),
                "kv_bytes_per_token": mixer.kv_elements * dtype_bytes("bf16"),
                "state_bytes": mixer.state_elements * STATE_BYTES,
                "flops_per_token": self.layer_flops(i, context),
            }
            for i, mixer in enumerate(self.mixers)
        ]

    def _feed_forward(self, i: int) -> str:
        moe, shared = self.moe_layer_mask[i], self.shared_params > 0
        names = (f"{self.n_experts} experts top-{self.top_k}" * moe, "shared" * (moe and shared),
                 "dense" * (self.dense_params[i] > 0))  # fmt: skip
        return ", ".join(name for name in names if name) or "none"

    def _layer_params(self, i: int, experts: int) -> int:
        parts = ("attention", "router", "shared", "dense")
        return sum(self.params_in(part, [i]) for part in parts) + experts * self.params_in("expert", [i])

    def to_dict(self) -> dict[str, object]:
        """Return the fields and what follows from them, ready for JSON; bytes in [bytes].

        Examples
        --------
        >>> from serving import load_model
        >>> load_model("mixtral-8x7b").to_dict()["n_moe_layers"]
        32
        """
        counts = ("is_moe", "n_moe_layers", "total_params", "active_params", "attention")
        derived = (*counts, "expert_bytes", "total_weight_bytes", "kv_bytes_per_token", "state_bytes")
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        fields.pop("mixers")
        return fields | {name: getattr(self, name) for name in derived} | {
            "flops_per_token": self.flops_per_token(4096), "layer_table": self.layer_table(),
        }  # fmt: skip

    def __repr__(self) -> str:
        total, active = f"{self.total_params / 1e9:.1f} B parameters", f"{self.active_params / 1e9:.1f} B active"
        experts = f"{self.n_moe_layers} of {self.layers} layers with {self.n_experts} experts top-{self.top_k}"
        shape = f"{active}, {experts}" if self.is_moe else f"dense, {self.layers} layers"
        return f"Model({self.name}: {total}, {shape}, {self.weight_dtype})"
