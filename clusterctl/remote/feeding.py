"""A script with input of its own: what is written after its text, while it runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from clusterctl.remote.command import READY
from clusterctl.remote.transport import Reader, Writer

READ_BYTES = 65536
_READY_LINE = f"{READY}\n".encode()


async def feed(
    text: bytes, chunks: AsyncIterator[bytes], stdin: Writer, stdout: Reader, hear: Callable[[bytes], None]
) -> bytes:
    """Give `sh` its text, then the script its input, and return all that it said.

    Some shells read ahead of the text that they run, so nothing follows before the script says that all of it
    has been read. A script that ends before its input does is heard all the same.
    """
    with contextlib.suppress(OSError):  # a nologin shell leaves without reading
        stdin.write(text)
        await stdin.drain()
    said, pouring = b"", None
    try:
        while data := await stdout.read(READ_BYTES):
            said += data
            if pouring:
                hear(data)
            elif _READY_LINE in said:
                before, _, rest = said.partition(_READY_LINE)
                said = before + rest
                pouring = asyncio.create_task(_pour(chunks, stdin))
                if rest:
                    hear(rest)
    finally:
        if pouring:
            pouring.cancel()
            await asyncio.wait([pouring])
    if pouring and not pouring.cancelled():
        pouring.result()
    return said


async def _pour(chunks: AsyncIterator[bytes], stdin: Writer) -> None:
    try:
        async for chunk in chunks:
            try:
                stdin.write(chunk)
                await stdin.drain()
            except OSError:
                return  # the script has ended; what it said tells why
    finally:
        # Also where `chunks` failed: a script that waits for more would wait for ever.
        with contextlib.suppress(OSError):
            stdin.write_eof()
