"""The `clusterctl` program: global options, the table of commands, and how errors reach the user.

Only click is imported here; a command's own module, and what it needs, is imported when it runs.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from dataclasses import fields, replace
from importlib import import_module

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from clusterctl import __version__
from clusterctl.cli import output
from clusterctl.cli.app import INVENTORY_VARIABLE, App, to_json
from clusterctl.cli.completing import INVENTORY, RECIPE
from clusterctl.errors import ClusterctlError, Interrupted, NodesFailed, UsageError

PROGRAM = "clusterctl"
COMPLETION_VARIABLE = "_CLUSTERCTL_COMPLETE"
# Python looks for garbage after every 700 new objects; what is imported makes far more, and none of them is any.
NEW_OBJECTS_BETWEEN_COLLECTIONS = 50_000

COMMANDS = {
    "init": "Look at hosts over SSH and write an inventory with what was found.",
    "install": "Put one build of llama.cpp on every node, or go back to the one before.",
    "check": "Reach every node; compare builds, devices, addresses, ports and files.",
    "plan": "Show which device gets which layers, and the exact commands. Changes nothing.",
    "up": "Bring the cluster up: workers first, then the head.",
    "status": "Show what runs, where, since when, and how well.",
    "connect": "Forward the head's port to this machine, until Ctrl-C.",
    "bench": "Measure prefill and decode through the head; keep and compare results.",
    "logs": "Show the logs of the head and the workers, prefixed by node.",
    "down": "Tear the cluster down, head first, and prove that nothing is left.",
    "recover": "Bring a broken cluster back, in the right order.",
    "unlock": "Remove the lock that a crashed command left behind.",
    "schema": "Print the JSON Schema of an inventory, a recipe, or a command's --json.",
    "completion": "Print the completion script for a shell.",
    "version": "Print the version of clusterctl.",
}

GLOBAL_OPTIONS = (
    click.Option(
        ["-i", "--inventory"],
        type=INVENTORY,
        metavar="FILE",
        envvar=INVENTORY_VARIABLE,
        show_envvar=True,
        help="Where the cluster runs.",
    ),
    click.Option(
        ["-r", "--recipe"],
        type=RECIPE,
        metavar="FILE",
        envvar="CLUSTERCTL_RECIPE",
        show_envvar=True,
        help="What it serves.",
    ),
    click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document on stdout."),
    click.Option(["-v", "--verbose", "verbosity"], count=True, help="Say more; repeat for even more."),
    click.Option(["-q", "--quiet"], is_flag=True, help="Say only the result, and errors."),
    click.Option(["--no-progress"], is_flag=True, help="No live display; plain lines instead."),
    click.Option(
        ["--color"],
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        help="When to use colour. NO_COLOR is honoured.",
    ),
)


def _merged(app: App, ctx: click.Context) -> App:
    """Take the global options out of a command's parameters; those typed after its name win.

    A value from the environment or a default never replaces one that was typed before the command.
    """
    names = [field.name for field in fields(App) if field.name in ctx.params]
    given = {name: ctx.params.pop(name) for name in names}
    typed = {n: v for n, v in given.items() if ctx.get_parameter_source(n) is ParameterSource.COMMANDLINE}
    return replace(app, **(given if ctx.parent is None else typed))


class GlobalCommand(click.Command):
    """A command that takes the global options after its name as well."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own options, then the global ones."""
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """End the help with examples."""
        from clusterctl.cli.examples import EXAMPLES  # noqa: PLC0415

        if examples := EXAMPLES.get(self.name or ""):
            with formatter.section("Examples"):
                for line, meaning in examples:
                    formatter.write_text(line)
                    with formatter.indentation():
                        formatter.write_text(meaning)

    def invoke(self, ctx: click.Context) -> object:
        """Merge the global options into the `App` before the command runs."""
        ctx.obj = _merged(ctx.obj or App(), ctx)
        if ctx.obj.quiet and ctx.obj.verbosity:
            raise UsageError("--quiet and --verbose contradict each other", hint="leave one of them out")
        return super().invoke(ctx)


class CommandTable(click.Group):
    """Commands by name; a module is imported only when its command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return the command; while a shell completes, an outline of it."""
        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing:
            from clusterctl.cli.outline import outlined_params  # noqa: PLC0415

            return GlobalCommand(cmd_name, params=outlined_params(cmd_name))
        command = getattr(import_module(f"clusterctl.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands from the table, without importing any, and the global options."""
        commands = [CompletionItem(n, help=summary) for n, summary in COMMANDS.items() if n.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest one."""
        from difflib import get_close_matches  # noqa: PLC0415

        name = args[0]
        near = get_close_matches(name, COMMANDS, 1)
        if name not in COMMANDS and near:
            ctx.fail(f"no such command `{name}`; did you mean `{near[0]}`?")
        return super().resolve_command(ctx, args)


@click.command(
    cls=CommandTable,
    params=list(GLOBAL_OPTIONS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="clusterctl")
@click.pass_context
def cli(ctx: click.Context, /, **options: object) -> None:
    """Bring up, check, watch and tear down llama.cpp RPC clusters of unlike machines.

    \b
    Every command needs an inventory (-i) that says where the nodes are;
    plan and up also need a recipe (-r) that says what to serve.
    """
    ctx.obj = _merged(App(), ctx)


def main() -> None:
    """Run the program and leave with the exit code of the contract."""
    if COMPLETION_VARIABLE in os.environ:
        cli(prog_name=PROGRAM)  # click answers the shell and leaves
    output.replace_closed()
    gc.set_threshold(NEW_OBJECTS_BETWEEN_COLLECTIONS)
    exit_code = run(sys.argv[1:])
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    # Everything has been closed and written; Python would still take every module apart, which takes 0.1 s.
    os._exit(exit_code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; no error leaves a traceback."""
    wanted = _global_options(arguments)
    try:
        exit_code = _run(arguments, wanted)
        with output.read_or_not():
            sys.stdout.flush()
    except OSError as error:
        if not output.is_stuck():
            raise
        output.discard()
        if isinstance(error, BrokenPipeError):
            return 0  # the reader of a stream, such as a log that is followed, has left: that ends it
        return _fail(replace(wanted, as_json=False), _unwritten(error))
    return exit_code


def _run(arguments: list[str], wanted: App) -> int:
    try:
        # Not by way of `cli.main`, which ends the program by itself when a reader has left.
        with cli.make_context(PROGRAM, list(arguments)) as ctx:
            outcome = cli.invoke(ctx)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        _show_as_json(wanted, UsageError(error.format_message()))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        problem: ClusterctlError = _interrupted(error)
    except ClusterctlError as error:
        problem = error
    except Exception as error:
        # The last resort: whatever was not foreseen is a fault of ours, and no traceback helps the user.
        if wanted.verbosity > 1 or (isinstance(error, OSError) and output.is_stuck()):
            raise
        problem = _unexpected(error)
    return _fail(wanted, problem)


def _global_options(arguments: list[str]) -> App:
    """The global options among the arguments, for errors that come before all of them are understood."""
    reader = click.Command(
        None,
        params=list(GLOBAL_OPTIONS),
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    given = reader.make_context(PROGRAM, list(arguments), resilient_parsing=True).params
    return App(**{name: value for name, value in given.items() if value is not None})


def _interrupted(error: BaseException) -> Interrupted:
    """Say how things stand, as whatever was interrupted has noted it; what only looked has nothing to say."""
    notes: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        notes += getattr(cause, "__notes__", ())
        cause = cause.__cause__
    return Interrupted("; ".join(["interrupted", *notes]))


def _unexpected(error: Exception) -> ClusterctlError:
    return ClusterctlError(
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a bug in clusterctl; run the command again with -vv and report what it prints",
    )


def _unwritten(error: OSError) -> ClusterctlError:
    return ClusterctlError(f"can't write to stdout: {(error.strerror or str(error)).lower()}")


def _fail(wanted: App, error: ClusterctlError) -> int:
    from clusterctl.ui.failure import show_error  # noqa: PLC0415

    show_error(wanted.screen(), error)
    _show_as_json(wanted, error)
    return error.exit_code


def _show_as_json(wanted: App, error: ClusterctlError) -> None:
    if wanted.as_json:
        causes = error.errors if isinstance(error, NodesFailed) else ()
        described = {**_described(error), "causes": [_described(cause) for cause in causes]}
        with output.read_or_not():
            click.echo(to_json({"ok": False, **error.fields, "error": described}))


def _described(error: ClusterctlError) -> dict[str, object]:
    return {
        "exit_code": error.exit_code,
        "node": error.node,
        "message": str(error),
        "hint": error.hint,
        "notes": list(getattr(error, "__notes__", ())),
    }
