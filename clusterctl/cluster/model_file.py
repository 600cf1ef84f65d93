"""The model's header, read from the head in a few ranges; the weights are never read."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.errors import ClusterctlError
from clusterctl.llama.gguf import GgufHeader, read_header
from clusterctl.llama.model_header import ModelHeader
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport


async def read_model(head: Transport, files: Mapping[str, int | None]) -> ModelHeader:
    """Read the header of a model, all parts of a split one at once. `files` gives each part's size in bytes.

    Raises:
        ModelFileError: if a file is no sane GGUF, with the offset.
        ClusterctlError: if a file can't be read.
    """

    async def read_part(file: str, size: int | None) -> GgufHeader:
        reader = read_header(file, size)
        wanted = next(reader)
        while True:
            output = await head.run(commands.read(file, wanted.offset, wanted.length))
            if output.exit_status != 0:
                raise ClusterctlError(
                    output.stderr.strip() or f"{file} could not be read",
                    node=head.node,
                    hint="the SSH user must be able to read the model",
                )
            try:
                wanted = reader.send(output.stdout)
            except StopIteration as done:
                header: GgufHeader = done.value
                return header

    headers = (await on_all(files, read_part)).all_done()
    return ModelHeader.from_parts([headers[file] for file in files])
