"""What is asked when nothing is said? Printed with every answer."""

from __future__ import annotations

__all__ = ["BATCH_PER_GPU", "BUDGET", "CONTEXT", "DOMAINS"]

#: Sequences on every GPU.
BATCH_PER_GPU = 114
#: Tokens in every sequence's KV cache.
CONTEXT = 4096
#: Time for one token through all layers.
BUDGET = "20ms"
#: Scale-up domains joined.
DOMAINS = 2
