"""How long a step of a model takes: models, layouts, workloads and the roofline of a step."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
