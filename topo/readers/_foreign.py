"""Which files hold no topology, and which verb takes them? Each is named for what it is."""

from __future__ import annotations

import re
from collections.abc import Callable

from topo.readers._reading import Foreign, Source

__all__ = ["FOREIGN"]

_HEAD = 50_000


def _matches(pattern: str) -> Callable[[Source], bool]:
    """Return whether the beginning of a file has this anywhere."""
    compiled = re.compile(pattern, re.M | re.I)
    return lambda source: bool(compiled.search(source.clean[:_HEAD]))


def _has_keys(*keys: str) -> Callable[[Source], bool]:
    """Return whether a file is JSON by its first character and has all of these keys near its beginning."""
    patterns = [re.compile(rf'"(?:{key})"\s*:') for key in keys]

    def recognises(source: Source) -> bool:
        head = source.clean[:_HEAD].lstrip("\ufeff \n\t")
        return head[:1] in ("{", "[") and all(pattern.search(head) for pattern in patterns)

    return recognises


def _is_inet(source: Source) -> bool:
    """Whether a file counts nodes and links, then has lines of a node and two coordinates."""
    rows = [line.split() for line in source.lines[:50] if line.strip()]
    numbers = all(re.fullmatch(r"-?\d+(?:\.\d+)?", word) for row in rows for word in row)
    return len(rows) > 2 and numbers and len(rows[0]) == 2 and all(len(row) == 3 for row in rows[1:])


_MODEL = "Give it as a model: --model FILE, or rackbound model show FILE."

#: Tried in this order, before the formats that hold a topology.
FOREIGN: tuple[Foreign, ...] = (
    Foreign("html", "HTML page", _matches(r"\A\W*<(?:!doctype\s+html|html)\b"),
            "Save the file itself (its raw text), not the page that shows it."),
    Foreign("nccl-tests", "log of nccl-tests",
            _matches(r"#\s+\(?B?\)?.*\bsize\b.*\bcount\b.*\btype\b|# nThread \d+ .*minBytes"
                     r"|\bAvg bus bandwidth|\bbusbw\(GB/s\)"),
            "rackbound validate FILE --design NAME compares; rackbound calibrate FILE fits to it."),
    Foreign("nccl-debug", "debug log of NCCL", _matches(r"\bNCCL (?:INFO|WARN|TRACE)\b"),
            "Set NCCL_TOPO_DUMP_FILE=topo.xml in that run, and read topo.xml."),
    Foreign("nccl-graph", "graph dump of NCCL: rings and trees, not links", _matches(r"<graphs\b[^>]*\bversion\s*="),
            "Set NCCL_TOPO_DUMP_FILE=topo.xml in that run, and read topo.xml."),
    Foreign("msccl", "MSCCL algorithm: a collective, no topology", _matches(r"<algo\b[^>]*\b(?:name|proto|coll)\s*="),
            "Give it as an algorithm: rackbound cost DESIGN KIND --algorithm FILE."),
    Foreign("expert-load", "expert load or placement (EPLB)", _has_keys("weight", "num_replicas|num_groups"),
            "Give its weight, a list per layer, as a JSON file: rackbound place DESIGN --model MODEL --loads FILE."),
    Foreign("expert-map", "expert map (vLLM Ascend)", _has_keys("moe_layer_count|layer_list", "device_list|layer_id"),
            "It says where experts are, not what joins GPUs; rackbound place DESIGN --model MODEL places them."),
    Foreign("expert-log", "printed expert load", _matches(r"^expert load \(tokens routed"),
            "Give its numbers as a JSON list: rackbound place DESIGN --model MODEL --loads FILE."),
    Foreign("hf-config", "model configuration (Hugging Face config.json)",
            _has_keys("hidden_size|text_config|n_embd", "architectures|model_type|num_hidden_layers"), _MODEL),
    Foreign("deepseek-config", "DeepSeek's own model configuration, no Hugging Face config.json",
            _has_keys("dim", "n_layers", "n_heads"),
            "Give the model's config.json from Hugging Face: --model config.json."),
    Foreign("astra-system", "system file of ASTRA-sim: its algorithms, not its network",
            _has_keys("scheduling-policy|endpoint-delay|(?:all-reduce|all-to-all)-implementation"),
            "Read the network file beside it, which has topology and npus_count."),
    Foreign("astra-logical", "logical dimensions for ASTRA-sim with ns-3: how NPUs are grouped, without links",
            _has_keys("logical-dims"), "Read the topology text that its ns-3 configuration names."),
    Foreign("ns3-config", "configuration of an ns-3 run", _matches(r"^\s*\"?TOPOLOGY_FILE\"?[\s:]+\S"),
            "Read the file that its TOPOLOGY_FILE names."),
    Foreign("workload", "workload of ASTRA-sim or SimAI: layers and collectives, not links",
            _matches(r"\A\s*(?:HYBRID_\w+|DATA|MODEL|MICRO|TRANSFORMER\w*|DLRM\w*)\b[^\n]*\n\s*\d+\s*$"),
            "Read the topology file of that run."),
    Foreign("htsim-traffic", "connection matrix of htsim: traffic, not links",
            _matches(r"\A\s*Nodes\s+\d+\s*\n\s*Connections\s+\d+"), "Read the .topo file of that run."),
    Foreign("inet", "Inet topology: places and distances, without bandwidths", _is_inet,
            "Its weights are distances, which give no rate; read a file with rates, such as an ns-3 topology text."),
    Foreign("design", "design file (TOML)", _matches(r"^\s*\[design\]\s*$"),
            "Give it as a design: rackbound evaluate FILE; rackbound design check FILE says what is wrong."),
)  # fmt: skip
