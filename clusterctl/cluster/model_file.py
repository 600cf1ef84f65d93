"""The models' headers, read from the head in a few ranges; the weights are never read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.config.recipe import Recipe
from clusterctl.errors import ModelFileError
from clusterctl.llama.gguf import GgufHeader, read_header
from clusterctl.llama.model_header import ModelHeader
from clusterctl.llama.model_parts import part_names
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

Sizes = Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Models:
    """The model that is served, and the draft model if the recipe names one."""

    model: ModelHeader
    draft: ModelHeader | None = None


async def read_models(head: Transport, recipe: Recipe, sizes: Sizes) -> Models:
    """Read the headers of the recipe's models; `sizes` are those of their files in bytes, by path.

    Raises:
        ModelFileError: if a file can't be read, or is no sane GGUF, with the offset.
    """
    draft = recipe.draft.path if recipe.draft else None
    return Models(
        model=await read_model(head, _sizes_of(recipe.model.path, sizes)),
        draft=None if draft is None else await read_model(head, _sizes_of(draft, sizes)),
    )


async def read_model(head: Transport, files: Sizes) -> ModelHeader:
    """Read the header of a model, all parts of a split one at once. `files` gives each part's size in bytes.

    Raises:
        ModelFileError: if a file can't be read, or is no sane GGUF, with the offset.
    """

    async def read_part(file: str, size: int | None) -> GgufHeader:
        reader = read_header(file, size)
        wanted = next(reader)
        while True:
            output = await head.run(commands.read(file, wanted.offset, wanted.length))
            if output.exit_status != 0:
                raise ModelFileError(
                    output.stderr.strip() or f"{file} could not be read",
                    node=head.node,
                    hint="model.path must name a file that the SSH user can read",
                )
            try:
                wanted = reader.send(output.stdout)
            except StopIteration as done:
                header: GgufHeader = done.value
                return header
            except ModelFileError as error:
                error.node = head.node
                raise

    headers = (await on_all(files, read_part)).all_done()
    return ModelHeader.from_parts([headers[file] for file in files])


def _sizes_of(path: str, sizes: Sizes) -> Sizes:
    return {part: sizes[part] for part in part_names(path)}
