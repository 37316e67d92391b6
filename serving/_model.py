"""How many weights, KV bytes and attention FLOP does a model have, part by part?"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from serving._dtypes import dtype_bytes
from serving._quantisation import PARTS
from topo import Fault, InputError, suggest

__all__ = ["Model"]


@dataclass(frozen=True, repr=False)
class Model:
    """A decoder-only language model as far as its step time depends on it.

    Parameters
    ----------
    name : str
        Catalogue name, or the stem of the file.
    family : str
        The config's model_type.
    layers, hidden_size, vocab_size : int
        Decoder layers (multi-token-prediction layers left out), width, vocabulary.
    n_experts, top_k : int
        Routed experts of one MoE layer and how many a token takes; 0 when the model is dense.
    moe_layer_mask : tuple of bool, one per layer
        True where the layer is MoE, False where it is dense.
    expert_params, shared_params, router_params : int
        Parameters of one routed expert, and of the shared experts and the router of one MoE layer.
    dense_params : int
        Parameters of the feed-forward of one dense layer; 0 when every layer is MoE.
    attention_params : int
        Parameters of the attention projections of one layer.
    norm_params : int
        Parameters of all norms of the model; in no other count.
    embedding_params, head_params : int
        Parameters of the embedding, and of the head (0 when the head is the embedding).
    attention : str
        "mla" (latent) or "gqa" (grouped query).
    kv_elements_per_layer : int
        Elements a token leaves in the KV cache of one layer.
    attention_flops_per_position : int
        Attention arithmetic per sequence, context position and layer, scores and values; for "mla" in the
        absorbed form [FLOP].
    attention_window : tuple of int or None, one per layer
        Context positions the layer sees; None is all of them.
    weight_dtype, other_dtype : str
        Type of the weights, and of the parts in `unquantised`.
    unquantised : tuple of str
        Parts the quantisation leaves out: "attention", "router", "expert", "shared", "dense", "embedding", "head".
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
    expert_params: int
    shared_params: int
    router_params: int
    dense_params: int
    attention_params: int
    norm_params: int
    embedding_params: int
    head_params: int
    attention: str
    kv_elements_per_layer: int
    attention_flops_per_position: int
    attention_window: tuple[int | None, ...]
    weight_dtype: str
    other_dtype: str
    unquantised: tuple[str, ...]
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
    def total_params(self) -> int:
        """Parameters of the model, norms left out (they are below 1 in 10^4)."""
        return self._params(self.n_experts)

    @property
    def active_params(self) -> int:
        """Parameters a token meets: `top_k` experts per MoE layer, all the rest, embedding and head included."""
        return self._params(self.top_k)

    def _params(self, experts_per_layer: int) -> int:
        moe, dense = self.n_moe_layers, self.layers - self.n_moe_layers
        per_moe_layer = self.router_params + self.shared_params + experts_per_layer * self.expert_params
        ends = self.embedding_params + self.head_params
        return self.layers * self.attention_params + moe * per_moe_layer + dense * self.dense_params + ends

    @property
    def expert_bytes(self) -> float:
        """Bytes of one routed expert [bytes]."""
        return self.bytes_of("expert")

    def dtype_of(self, part: str) -> str:
        """Return the type a part's weights are stored in; see `bytes_of`."""
        if part not in PARTS:
            raise InputError(Fault("part", part, "is not a part of a model", suggest(str(part), PARTS)))
        return self.other_dtype if part in self.unquantised else self.weight_dtype

    def bytes_of(self, part: str) -> float:
        """Return the bytes of one part.

        Parameters
        ----------
        part : str
            "attention" (projections of one layer), "router" or "shared" (of one MoE layer), "expert" (one
            routed expert), "dense" (feed-forward of one dense layer), "embedding", "head".

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
        if not self.moe_layer_mask[index]:
            return self.bytes_of("attention") + self.bytes_of("dense")
        held = n_local_experts * self.expert_bytes
        return self.bytes_of("attention") + self.bytes_of("router") + self.bytes_of("shared") + held

    @property
    def total_weight_bytes(self) -> float:
        """Bytes of all weights, norms left out [bytes]."""
        layers = sum(self.layer_weight_bytes(index, self.n_experts) for index in range(self.layers))
        return layers + self.bytes_of("embedding") + self.bytes_of("head")

    @property
    def kv_bytes_per_token(self) -> float:
        """KV cache a token takes in all layers while it is within every window, at bf16 [bytes]."""
        return self.kv_bytes(1)

    def kv_bytes(self, context: float, kv_dtype: str = "bf16") -> float:
        """Return the KV cache of one sequence.

        Parameters
        ----------
        context : float
            Positions in the context.
        kv_dtype : str
            Type of the cache.

        Returns
        -------
        float
            Sum over layers of min(context, window) positions [bytes].

        Raises
        ------
        InputError
            The type is unknown.

        Examples
        --------
        >>> from serving import load_model
        >>> load_model("deepseek-v3").kv_bytes(4096, "fp8")
        143917056.0
        """
        positions = sum(context if window is None else min(context, window) for window in self.attention_window)
        return float(positions * self.kv_elements_per_layer) * dtype_bytes(kv_dtype, "kv_dtype")

    def to_dict(self) -> dict[str, object]:
        """Return the fields and what follows from them, ready for JSON; bytes in [bytes].

        Examples
        --------
        >>> from serving import load_model
        >>> load_model("mixtral-8x7b").to_dict()["n_moe_layers"]
        32
        """
        counts = ("is_moe", "n_moe_layers", "total_params", "active_params")
        derived = (*counts, "expert_bytes", "total_weight_bytes", "kv_bytes_per_token")
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return fields | {name: getattr(self, name) for name in derived}

    def __repr__(self) -> str:
        total, active = f"{self.total_params / 1e9:.1f} B parameters", f"{self.active_params / 1e9:.1f} B active"
        experts = f"{self.n_moe_layers} of {self.layers} layers with {self.n_experts} experts top-{self.top_k}"
        shape = f"{active}, {experts}" if self.is_moe else f"dense, {self.layers} layers"
        return f"Model({self.name}: {total}, {shape}, {self.weight_dtype})"
