"""What is wired to what: graphs of racks and fabrics, their units, checks and array view."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
