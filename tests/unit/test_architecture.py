"""Who may import whom, and the few other rules that hold for every file."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clusterctl"
MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted(
    script
    for script in ROOT.rglob("*.sh")
    if not any(part.startswith(".") for part in script.relative_to(ROOT).parts)
)

# What each part may import of the others. The parts are the packages and modules right under `clusterctl`.
VALUES = frozenset({"errors", "model"})
DOCUMENTS = frozenset({"install_reports", "measurements", "plan_reports", "reports", "small_reports"})
LOOKING = VALUES | {"config", "llama", "plan_reports", "planning", "remote", "reports"}
DOING = LOOKING | {"cluster", "measurements"}
ARROWS: Mapping[str, frozenset[str]] = {
    "data": frozenset(),
    "escaping": frozenset(),
    "errors": frozenset(),
    "model": frozenset(),
    "measurements": frozenset({"model"}),
    "plan_reports": frozenset({"model"}),
    "reports": frozenset({"model", "llama"}),
    "install_reports": frozenset({"reports"}),
    "small_reports": frozenset(),
    "config": VALUES | {"escaping"},
    "remote": VALUES,
    "llama": VALUES | {"data"},
    "planning": VALUES | {"data", "llama"},
    "cluster": LOOKING,
    "bench": DOING,
    "install": DOING | {"data", "install_reports"},
    "ui": VALUES | DOCUMENTS | {"escaping"},
    "cli": VALUES | DOCUMENTS | {"bench", "cluster", "config", "install", "planning", "ui"},
}
ALSO_ALLOWED = {
    # Where a node is reached is a value; of how, the commands know nothing.
    ("cli", "clusterctl.remote.target"),
    # Which arguments of llama-server a file must not have is known once, and a file is judged when it is read.
    ("config", "clusterctl.llama.arguments"),
}

PURE = ("llama", "planning")
INPUT_AND_OUTPUT = {
    *("asyncio", "asyncssh", "click", "concurrent", "http", "httpx", "io", "multiprocessing", "os", "pathlib"),
    *(
        "psutil",
        "rich",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "subprocess",
        "sys",
        "tempfile",
    ),
    *("threading", "time", "urllib"),
}


def part_of(module: str) -> str:
    """The part of the product that a module belongs to, `cluster` for `clusterctl.cluster.lock`."""
    return [*module.split("."), ""][1]


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module
            # A package gives its modules by name; what a module gives is the module's.
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if is_module(inner) else node.module


def at_import_time(file: Path) -> ast.Module:
    """What a module imports at once, without what functions and type checkers import later."""
    return ast.Module([node for node in tree_of(file).body if isinstance(node, ast.Import | ast.ImportFrom)], [])


def is_module(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").is_file() or place.is_dir()


def loaded_by(statement: str) -> set[str]:
    """The product's own modules that a statement loads in a new interpreter."""
    code = f"{statement}; import sys; print(*(name for name in sys.modules if name.startswith('clusterctl')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("file", MODULES, ids=module_of)
def test_every_import_goes_the_right_way(file: Path) -> None:
    part = part_of(module_of(file))
    if not part:  # the package itself: what it offers comes from anywhere, but only when it is asked for
        assert loaded_by("import clusterctl") == {"clusterctl"}
        return
    for imported in imports_of(tree_of(file)):
        if not imported.startswith("clusterctl.") or part_of(imported) == part:
            continue
        allowed = part_of(imported) in ARROWS[part] or (part, imported) in ALSO_ALLOWED
        assert allowed, f"{part} must not import {imported}"


@pytest.mark.parametrize("file", [f for f in MODULES if part_of(module_of(f)) in PURE], ids=module_of)
def test_what_only_reckons_knows_no_input_and_output(file: Path) -> None:
    assert {name.partition(".")[0] for name in imports_of(tree_of(file))}.isdisjoint(INPUT_AND_OUTPUT)


def test_one_file_knows_ssh() -> None:
    assert importing("asyncssh") == ["clusterctl.remote.ssh"]


def test_one_file_starts_programs_on_this_machine() -> None:
    assert importing("subprocess") == []
    assert calling("create_subprocess_exec") == ["clusterctl.remote.local"]
    assert calling("create_subprocess_shell") == []


def test_one_file_quotes_for_a_shell_and_one_for_people() -> None:
    quoting = {*calling("quote"), *calling("join", of="shlex")}
    assert quoting == {"clusterctl.remote.command", "clusterctl.ui.shell"}


def importing(library: str) -> list[str]:
    """The modules that import a library."""
    return [
        module_of(file)
        for file in MODULES
        if any(name.partition(".")[0] == library for name in imports_of(tree_of(file)))
    ]


def calling(function: str, of: str | None = None) -> list[str]:
    """The modules that use a function by its name, `of` a module of that name if one is given."""
    return [
        module_of(file)
        for file in MODULES
        if any(
            isinstance(node, ast.Attribute)
            and node.attr == function
            and (of is None or (isinstance(node.value, ast.Name) and node.value.id == of))
            for node in ast.walk(tree_of(file))
        )
    ]


def test_no_two_modules_need_each_other() -> None:
    needs = {module_of(file): set(imports_of(at_import_time(file))) for file in MODULES}
    while needs:
        free = [module for module, needed in needs.items() if needed.isdisjoint(needs)]
        assert free, f"these import each other: {', '.join(sorted(needs))}"
        for module in free:
            del needs[module]


@pytest.mark.parametrize("file", [*MODULES, *SCRIPTS], ids=lambda file: str(file.relative_to(ROOT)))
def test_every_file_can_be_read_in_one_sitting(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").count("\n")
    assert lines < 300


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: str(script.relative_to(ROOT)))
def test_shellcheck_finds_nothing(script: Path) -> None:
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
