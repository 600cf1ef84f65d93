"""Models in several files: the names of the parts, and one list of tensors out of all their headers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clusterctl.errors import ModelFileError
from clusterctl.llama.gguf import GgufHeader, Tensor

PART = re.compile(r"(?P<stem>.*)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf", re.DOTALL)


def part_names(path: str) -> tuple[str, ...]:
    """All files of the model that `path` belongs to, in order; only `path` itself if it is no part.

    llama.cpp (`llama_split_path`) names parts `STEM-00001-of-00003.gguf`, counted from 1.
    Raises `ModelFileError` for a number outside 1 to the count.
    """
    match = PART.fullmatch(path)
    if match is None:
        return (path,)
    count = int(match["count"])
    if not 1 <= int(match["number"]) <= count:
        raise ModelFileError(f"{path}: there is no part {match['number']} of {match['count']}")
    return tuple(f"{match['stem']}-{number:05}-of-{match['count']}.gguf" for number in range(1, count + 1))


def merge_tensors(parts: Sequence[GgufHeader]) -> dict[str, Tensor]:
    """The tensors of all parts by name.

    Raises `ModelFileError` unless these are all the parts of one model, in order.
    """
    if not parts:
        raise ModelFileError("a model has at least one file")
    tensors: dict[str, Tensor] = {}
    for index, part in enumerate(parts):
        _check_number(part, "split.count", len(parts), default=1)
        _check_number(part, "split.no", index, default=0)
        for tensor in part.tensors:
            if tensor.name in tensors:
                raise ModelFileError(f"{part.file}: the tensor {tensor.name!r} is in an earlier part too")
            tensors[tensor.name] = tensor
    _check_number(parts[0], "split.tensors.count", len(tensors), default=len(tensors))
    return tensors


def _check_number(part: GgufHeader, key: str, expected: int, default: int) -> None:
    # Some tools write a count of 0 into a model that was not split.
    found = part.metadata.get(key, default)
    if found != expected and not (key == "split.count" and found == 0 and expected == 1):
        raise ModelFileError(
            f"{part.file}: {key} is {found!r}, but {expected} is expected here",
            hint="give all parts of one model, from -00001-of- on, and download missing ones",
        )
