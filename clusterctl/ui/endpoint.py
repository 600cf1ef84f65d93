"""How to use a cluster that is up."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from clusterctl.reports import Access
from clusterctl.ui.console import PIPE_WIDTH
from clusterctl.ui.screen import Screen
from clusterctl.ui.shell import command_text
from clusterctl.ui.tables import outside

QUESTION = '{"messages": [{"role": "user", "content": "Hello"}]}'
KEY_HEADER = '-H "Authorization: Bearer $API_KEY"'
"""For the shell to fill in, so that no key is ever shown, and none stays in its history."""


def show_question(console: Console, screen: Screen, url: str, head: str, access: Access) -> None:
    """Print a `curl` call to paste, which asks llama-server at `url` through its OpenAI interface.

    Below it stands where on the machine of `head` the key and the certificate are.
    """
    address = f"{url.rstrip('/')}/v1/chat/completions"
    trusted = ("--cacert", access.certificate) if access.certificate else ()
    argv = ("curl", *trusted, address, "-H", "Content-Type: application/json", "-d", QUESTION)
    text = command_text(argv, {}, console.width)
    where = f" on {access.only_on}" if access.only_on else ""
    console.print(Text("\n").append_text(outside(f"ask it{where}:", "bold")))
    console.out(f"{text} \\\n  {KEY_HEADER}" if access.wants_key else text, highlight=False)
    if access.only_on is not None:
        bridge = command_text((*screen.program, "connect"), {}, PIPE_WIDTH)
        console.print(outside(f"to ask from here, run `{bridge}` first", "dim"))
    if access.key_file:
        console.print(outside(f"API_KEY is a line of {access.key_file} on {head}", "dim"))
    elif access.key_variable:
        console.print(outside(f"API_KEY is in {access.key_variable}, in the inventory's env of {head}", "dim"))
    if access.certificate:
        console.print(outside(f"the certificate is a file on {head}; elsewhere name a copy of it", "dim"))
