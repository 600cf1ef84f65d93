"""A client that keeps a head at work for as long as a test needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx

from tests.lab.lab import Lab
from tests.lab.operator import HTTP_PORT

BEGIN_S = 60
READ_S = 300
STORY = {"prompt": "Once upon a time", "n_predict": -1, "ignore_eos": True, "stream": True}


class Client:
    """Asks for one story after another, and counts the tokens that come, until the connection breaks."""

    def __init__(self, lab: Lab) -> None:
        self.tokens = 0
        self._lab = lab
        self._has_begun = threading.Event()
        self._has_enough = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def begin(self) -> None:
        """Ask, and return as soon as the first token has come."""
        self._thread.start()
        assert self._has_begun.wait(BEGIN_S), "no token came"

    def end(self) -> None:
        """Hang up, unless the head has done so already."""
        self._has_enough.set()
        self._thread.join()

    def _ask(self) -> None:
        url = f"http://127.0.0.1:{HTTP_PORT}/completion"
        with self._lab.nodes["head"].network(), suppress(httpx.TransportError):
            while not self._has_enough.is_set():
                with httpx.stream("POST", url, json=STORY, timeout=READ_S) as answer:
                    self._count(answer)

    def _count(self, answer: httpx.Response) -> None:
        for line in answer.iter_lines():
            self.tokens += line.startswith("data: ")
            self._has_begun.set()
            if self._has_enough.is_set():
                return


@contextmanager
def generating(lab: Lab) -> Iterator[Client]:
    """A client is served while the body runs."""
    client = Client(lab)
    client.begin()
    try:
        yield client
    finally:
        client.end()
