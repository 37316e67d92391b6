"""What is sent, and how long the wires take: schedules, loads, costs and bounds of collectives."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
