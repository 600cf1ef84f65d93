"""The commands clusterctl knows: one function for each script, with named values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterctl.remote.command import Command, Effect

LOG_BYTES = 16 * 1024 * 1024


def probe(
    cluster: str,
    role: str,
    *,
    bin_dir: str | None,
    ports: Sequence[int],
    files: Sequence[str],
    env: Mapping[str, str],
    known: Sequence[str] = (),
) -> Command:
    """All facts of a node; `files` are looked at by name and size only.

    Programs whose fingerprint is `known` are not asked for their options.
    """
    return Command(
        "probe",
        (
            cluster,
            role,
            bin_dir or "",
            " ".join(known),
            *_counted([str(port) for port in ports]),
            *_counted(files),
            *_variables(env),
        ),
    )


def observe(cluster: str, ports: Sequence[int], *, activity: bool = False) -> Command:
    """What runs of a cluster on a node, without touching any of it; `activity` asks how many bytes it moved."""
    return Command("observe", (cluster, "yes" if activity else "no", *(str(port) for port in ports)))


def memory(cluster: str) -> Command:
    """Memory of a node and its cards, and what the programs of a cluster hold of it."""
    return Command("memory", (cluster,))


def start(
    cluster: str,
    node: str,
    argv: Sequence[str],
    *,
    record: str,
    env: Mapping[str, str],
    log_bytes: int = LOG_BYTES,
) -> Command:
    """Start a program detached; `record` is the JSON text to keep beside it.

    Its log is cut back whenever it has grown beyond `log_bytes`; as much again is kept of what was cut off.
    """
    words = (cluster, node, str(log_bytes), record, *_counted(_variables(env)), *argv)
    return Command("start", words, effect=Effect.CHANGE)


def stop(cluster: str, node: str, *, grace_s: int) -> Command:
    """End a program that is ours by record, with SIGKILL after `grace_s` seconds."""
    return Command("stop", (cluster, node, str(grace_s)), effect=Effect.CHANGE)


def lock(action: str, cluster: str, token: str, *, lease_s: int, owner: str = "") -> Command:
    """Acquire, beat, release or break the cluster's lock."""
    return Command("lock", (action, cluster, token, str(lease_s), owner), effect=Effect.CHANGE)


def cache_room(cluster: str) -> Command:
    """How much a cluster's workers have cached on a node, and how much room is left."""
    return Command("cache_room", (cluster,))


def purge(cluster: str) -> Command:
    """Remove the cache of a cluster's workers; prints the KiB that it took."""
    return Command("purge", (cluster,), effect=Effect.CHANGE)


def record(cluster: str, text: str) -> Command:
    """Keep the membership of a cluster on its head; an empty text removes it."""
    return Command("record", (cluster, text), effect=Effect.CHANGE)


def read(file: str, offset: int, size: int) -> Command:
    """A range of a file, in bytes."""
    return Command("read", (file, str(offset), str(size)))


def list_devices(program: Sequence[str], endpoints: Sequence[str], env: Mapping[str, str]) -> Command:
    """The devices the head sees through `--rpc`; the flag must stand before `--list-devices`."""
    return Command("run", (*_variables(env), *program, "--rpc", ",".join(endpoints), "--list-devices"))


def own_devices(argv: Sequence[str], role: str, env: Mapping[str, str]) -> Command:
    """The devices that a program lists, named by the first words of its call; nothing is bound or loaded."""
    if role == "worker":
        # An unknown device makes a worker list what it has and leave.
        return Command("run", (*_variables(env), argv[0], "-d", "no-such-device"))
    program = argv[:2] if argv[1:2] == ("serve",) else argv[:1]
    return Command("run", (*_variables(env), *program, "--list-devices"))


def llama_bench(argv: Sequence[str], env: Mapping[str, str], *, timeout_s: int) -> Command:
    """Run llama-bench to its end; its exit status is 124 after `timeout_s`, and 127 if it is not there."""
    return Command("llama_bench", (str(timeout_s), *_variables(env), *argv))


def link_serve(address: str, port: int, *, size_bytes: int, timeout_s: int) -> Command:
    """Serve samples of a link to whoever connects; to be fed, for it ends with its input."""
    words = (address, str(port), str(size_bytes), str(timeout_s))
    return Command("link_serve", words, effect=Effect.CHANGE)


def link_measure(endpoints: Mapping[str, tuple[str, int]], *, timeout_s: int) -> Command:
    """Take a sample of the way to every endpoint, named by node."""
    rows = [word for node, (address, port) in endpoints.items() for word in (node, address, str(port))]
    return Command("link_measure", (str(timeout_s), *rows))


def log_tail(cluster: str, node: str, lines: int) -> Command:
    """The last lines of a program's log, after a line with the log's size in bytes."""
    return Command("log", (cluster, node, "-1", str(lines)))


def log_from(cluster: str, node: str, offset: int) -> Command:
    """A program's log from `offset` bytes on, after a line with the log's size in bytes."""
    return Command("log", (cluster, node, str(offset), "0"))


def install_look(root: str, tools: Sequence[str]) -> Command:
    """Which builds lie in `root`, which of the tools are there, and what the AMD tools say of the GPUs."""
    return Command("install_look", (root, *tools))


def install_put(
    root: str, name: str, *, size_bytes: int, sha256: str, path: str, cmake_flags: Sequence[str]
) -> Command:
    """Put a build into `root`: unpack the archive that follows and, given flags, compile what it holds.

    Exit status 4: what arrived is not what `sha256` says. `path` is the PATH to compile with.
    """
    return Command("install_put", (root, name, str(size_bytes), sha256, path, *cmake_flags), effect=Effect.CHANGE)


def install_switch(root: str, current: str, previous: str) -> Command:
    """Point the links `current` and `previous` at builds; an empty name removes the link."""
    return Command("install_switch", (root, current, previous), effect=Effect.CHANGE)


def install_prune(root: str) -> Command:
    """Remove every build that no link points at and no process runs from; print their names."""
    return Command("install_prune", (root,), effect=Effect.CHANGE)


def _counted(values: Sequence[str]) -> tuple[str, ...]:
    return (str(len(values)), *values)


def _variables(env: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in env.items())
