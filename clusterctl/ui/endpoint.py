"""How to use a cluster that is up."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from clusterctl.ui.shell import command_text

QUESTION = '{"messages": [{"role": "user", "content": "Hello"}]}'


def show_question(console: Console, url: str) -> None:
    """Print a `curl` call to paste, which asks llama-server at `url` through its OpenAI interface."""
    address = f"{url.rstrip('/')}/v1/chat/completions"
    argv = ("curl", address, "-H", "Content-Type: application/json", "-d", QUESTION)
    console.print(Text("\nask it:", "bold"))
    console.out(command_text(argv, {}, console.width), highlight=False)
