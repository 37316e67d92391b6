"""What does a file of numbers hold? Dicts, lists and arrays; nothing in it is ever run, and torch is not needed."""

from __future__ import annotations

import io
import json
import math
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topo import Fault, InputError

__all__ = ["data_of", "is_folder"]

Array = NDArray[Any]

#: Types as safetensors and torch name them.
_SAFE = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U8": "<u1",
         "BOOL": "?"}  # fmt: skip
_TORCH = {"Double": "<f8", "Float": "<f4", "Half": "<f2", "Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "<i1",
          "Byte": "<u1", "Bool": "?"}  # fmt: skip


def is_folder(path: str | Path) -> bool:
    """Whether the path is a folder; a path that names nothing is refused."""
    if not Path(path).exists():
        raise InputError(Fault("file", str(path), "is not there", "Give a file that is.", str(path)))
    return Path(path).is_dir()


def data_of(path: str | Path) -> Any:
    """Return what a file holds, told by its first bytes: arrays, what JSON or YAML says, else its text.

    Lines of JSON come back as a list; of a `torch.save` file tensors as arrays.

    Raises
    ------
    InputError
        A file that cannot be read, is cut off, or holds more than numbers and names.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        rule = f"cannot be read: {error.strerror}"
        raise InputError(Fault("file", str(path), rule, "Give a file that can.", str(path))) from None
    try:
        return _binary(raw) if _is_binary(raw) else _text(raw.decode("utf-8-sig"))
    except Exception as error:  # NumPy's header, pickle and zip fail in any way there is on a broken file
        rule = f"is cut off or no such file: {error}"[:200]
        raise InputError(Fault("file", Path(path).name, rule, "Write it again.", str(path))) from None


def _is_binary(raw: bytes) -> bool:
    return raw[:6] == b"\x93NUMPY" or raw[:4] == b"PK\x03\x04" or (raw[8:9] == b"{" and b"\x00" in raw[:8])


def _binary(raw: bytes) -> Any:
    if raw[:6] == b"\x93NUMPY":
        return np.load(io.BytesIO(raw), allow_pickle=False)
    if raw[:2] != b"PK":
        return _safetensors(raw)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        pickled = next((name for name in archive.namelist() if name.endswith("/data.pkl")), None)
        if pickled is not None:
            return _Tensors(archive, pickled).load()
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        return dict(arrays)


def _text(text: str) -> Any:
    """Return JSON's, JSON lines' or YAML's data, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()] or text
    except ValueError:
        return _yaml(text)


def _yaml(text: str) -> Any:
    """Return the data of the one kind of YAML there is; nearly any log would be YAML too."""
    if "initial_global_assignments:" not in text:
        return text
    import yaml  # an edge of the project: not loaded with the package

    loader, events = getattr(yaml, "CSafeLoader", yaml.SafeLoader), getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=events)):
            raise ValueError("YAML aliases are refused: they can grow without end")
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise ValueError(f"no valid YAML: {error}") from None


def _safetensors(raw: bytes) -> dict[str, Array]:
    size = int(struct.unpack("<Q", raw[:8])[0])
    header = json.loads(raw[8 : 8 + size])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            values = np.frombuffer(raw[8 + size + start : 8 + size + end], dtype=_SAFE[entry["dtype"]])
            found[name] = values.reshape(entry["shape"])
    return found


class _Tensors(pickle.Unpickler):
    """What `torch.save` wrote: plain data and tensors, every other name refused."""

    def __init__(self, archive: zipfile.ZipFile, pickled: str) -> None:
        super().__init__(io.BytesIO(archive.read(pickled)))
        self.archive, self.folder = archive, pickled.removesuffix("data.pkl")

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name.removesuffix("Storage") in _TORCH:
            return _TORCH[name.removesuffix("Storage")]
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is no tensor")

    def persistent_load(self, pid: Any) -> Array:
        _, dtype, key, *_ = pid
        return np.frombuffer(self.archive.read(f"{self.folder}data/{key}"), dtype=dtype)


def _tensor(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object) -> Array:
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if min(size, default=1) > 0 and not (0 <= offset <= last < len(storage) >= math.prod(size)):
        raise ValueError("a tensor reaches beyond its storage")
    index = np.full(size, offset, dtype=np.intp)
    for axis, step in enumerate(stride):
        index += (np.arange(size[axis]) * step).reshape([-1 if i == axis else 1 for i in range(len(size))])
    return storage[index]
