"""`clusterctl completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from clusterctl.cli.main import COMPLETION_VARIABLE, PROGRAM, GlobalCommand, cli


@click.command(cls=GlobalCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  eval "$(clusterctl completion bash)"
    zsh:   eval "$(clusterctl completion zsh)"
    fish:  clusterctl completion fish | source
    """
    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(cli, {}, PROGRAM, COMPLETION_VARIABLE).source())
