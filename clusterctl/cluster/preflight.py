"""What is wrong with a node before anything is started. Pure: facts in, problems out.

Each check returns the problems it sees; not knowing is a problem too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from clusterctl.cluster.cache import cache_problems
from clusterctl.cluster.endpoint import rpc_address
from clusterctl.cluster.facts import HEAD_PROGRAMS, WORKER_PROGRAMS, NodeFacts
from clusterctl.cluster.observation import SOCKETS_HINT
from clusterctl.config.inventory import Inventory, Node
from clusterctl.config.recipe import Recipe
from clusterctl.llama.device_choice import missing_backend_problem, usable_devices
from clusterctl.llama.devices import budget_mib, memory_problem
from clusterctl.llama.flags import Flags, unknown_options
from clusterctl.llama.secrets import KEY_VARIABLE
from clusterctl.model import Problem, Role, Severity


def judge_node(inventory: Inventory, recipe: Recipe | None, node: Node, facts: NodeFacts) -> tuple[Problem, ...]:
    """Return every problem of one node, errors first."""
    checks = _head_checks if node.role is Role.HEAD else _worker_checks
    problems = [
        *_library_checks(facts),
        *checks(inventory, recipe, node, facts),
        *_device_checks(node, facts),
    ]
    return gravest_first(problems)


def gravest_first(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems, errors first."""
    return tuple(sorted(problems, key=lambda problem: list(Severity).index(problem.severity)))


def _library_checks(facts: NodeFacts) -> Iterator[Problem]:
    if facts.missing_libraries:
        yield Problem(
            "library-missing",
            Severity.ERROR,
            f"the program lacks {', '.join(sorted(set(facts.missing_libraries)))}",
            "install the package that brings it, or set LD_LIBRARY_PATH in the node's env",
        )


def _head_checks(inventory: Inventory, recipe: Recipe | None, node: Node, facts: NodeFacts) -> Iterator[Problem]:
    if facts.head_program is None:
        yield program_missing(node, facts)
    elif facts.flags is None:
        yield Problem(
            "help-unreadable",
            Severity.ERROR,
            f"{facts.head_program[0]} --help printed no list of options",
            f"run it on the node by hand to see why; its --version says: {_first_line(facts.version_text)}",
        )
    elif inventory.workers and "--rpc" not in facts.flags:
        yield Problem(
            "rpc-not-built",
            Severity.ERROR,
            f"{facts.head_program[0]} was built without RPC",
            "build llama.cpp with -DGGML_RPC=ON",
        )
    if recipe is not None:
        yield from _files_missing(recipe, facts.files)
        yield from _options_unknown(recipe, facts.flags)
        yield from _open_without_key(recipe, node)
        yield from _port_taken(node, facts, recipe.server.port)


def _worker_checks(inventory: Inventory, recipe: Recipe | None, node: Node, facts: NodeFacts) -> Iterator[Problem]:
    if facts.worker_program is None:
        yield program_missing(node, facts)
    if len(facts.worker_programs) > 1:
        others = ", ".join(p.path for p in facts.worker_programs if p is not facts.worker_program)
        yield Problem(
            "two-worker-programs",
            Severity.NOTE,
            f"{facts.worker_program and facts.worker_program.path} is used; {others} is there too",
            "remove the one that is out of date",
        )
    address = rpc_address(inventory, node, facts)
    if isinstance(address, Problem):
        yield address
    yield from cache_problems(facts.cache, is_wanted=node.rpc.cache)
    yield from _port_taken(node, facts, node.rpc.port)


def _device_checks(node: Node, facts: NodeFacts) -> Iterator[Problem]:
    asked = facts.worker_program if node.role is Role.WORKER else facts.head_program
    if asked is None or (node.role is Role.HEAD and node.serve_only):
        return
    if facts.devices is None:
        yield Problem(
            "devices-unknown",
            Severity.ERROR,
            f"the node's devices could not be listed: {_first_line(facts.devices_text)}",
            "run the program by hand on the node; it must list its devices",
        )
        return
    kept, dropped = usable_devices(facts.devices, node.backend)
    if node.backend and (problem := missing_backend_problem(node.backend, facts.devices)):
        yield problem
    for device, reason in dropped:
        yield Problem("device-ignored", Severity.NOTE, f"{device.name} {reason}")
    known = {device.name for device in facts.devices}
    for name in node.rpc.devices or ():
        if name not in known:
            yield Problem(
                "device-missing",
                Severity.ERROR,
                f"rpc.devices names {name}, which the node does not have",
                f"it has {', '.join(sorted(known)) or 'none'}",
            )
    for device in kept:
        unknown = budget_mib(device, 0, node.memory.limit_mib) is None
        if problem := memory_problem(device):
            yield replace(problem, severity=Severity.ERROR) if unknown else problem


def program_missing(node: Node, facts: NodeFacts) -> Problem:
    """Return the problem of a node that has no program for its role."""
    names = HEAD_PROGRAMS if node.role is Role.HEAD else WORKER_PROGRAMS
    where = node.llama.bin_dir or (
        f"the PATH of a non-interactive shell ({facts.observation.system.path}) or the usual places"
    )
    return Problem(
        "program-missing",
        Severity.ERROR,
        f"no {' or '.join(names)} in {where}",
        "install llama.cpp built with -DGGML_RPC=ON there, or name its directory in llama.bin_dir",
    )


def _files_missing(recipe: Recipe, files: Mapping[str, int | None]) -> Iterator[Problem]:
    tls = recipe.server.tls
    own = {recipe.server.api_key_file, tls and tls.key_file, tls and tls.cert_file}
    for file, size in files.items():
        if not size:
            is_model = file not in own
            yield Problem(
                "model-missing" if is_model else "file-missing",
                Severity.ERROR,
                f"{file} is {'empty' if size == 0 else 'missing'} on the head",
                f"copy it there, or correct {'model.path' if is_model else 'server'} in the recipe; "
                "workers need no copy",
            )


def _options_unknown(recipe: Recipe, flags: Flags | None) -> Iterator[Problem]:
    for option in unknown_options(flags, recipe.server.extra_args) if flags else ():
        yield Problem(
            "option-unknown",
            Severity.ERROR,
            f"server.extra_args has {option}, which the head's build of llama-server does not know",
            "take it out, or install a build that has it",
        )


def _open_without_key(recipe: Recipe, node: Node) -> Iterator[Problem]:
    server = recipe.server
    is_local = server.host == "localhost" or server.host.startswith("127.") or server.host == "::1"
    if not (is_local or server.api_key_file or node.env.get(KEY_VARIABLE)):
        yield Problem(
            "open-without-key",
            Severity.WARNING,
            f"the head will serve whoever reaches {server.host}:{server.port}, without a key",
            "set server.api_key_file in the recipe; or listen on 127.0.0.1 and use `clusterctl connect`",
        )


def _port_taken(node: Node, facts: NodeFacts, port: int) -> Iterator[Problem]:
    seen = facts.observation
    if seen.sockets is None:
        yield Problem(
            "ports-unknown",
            Severity.ERROR,
            f"whether port {port} is free is not known: the node's sockets can't be listed",
            SOCKETS_HINT,
        )
    if not seen.listening(port):
        return
    own = seen.process(node.name)
    if own and own.runs and any(holder.pid == own.pid for holder in seen.holders.get(port, ())):
        return
    yield Problem(
        "port-taken",
        Severity.ERROR,
        f"port {port} is held by {seen.holders_in_words(port)}",
        "stop it yourself, or choose another port; clusterctl touches only what it started",
    )


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "it printed nothing")[:200]
