"""What an error tells of the logs: the cause, the node where it is, and the lines that say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.cluster.failure import NO_CAUSE_HINT, explain, explaining
from clusterctl.cluster.starting import Launch, start
from clusterctl.errors import BuildSkew, ClusterctlError, NodesFailed, NodeUnreachable, NotReady, StartFailed
from clusterctl.model import NodeCommand, Role
from clusterctl.remote.local import LocalTransport
from tests.ssh.waiting import until
from tests.unit.programs import CLUSTER, files_of, running, says

NO_LIBRARY = "error while loading shared libraries: libggml.so: cannot open shared object file"
NO_SOCKET = "Failed to create server socket"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


async def explained(scripts: dict[str, str], error: ClusterctlError) -> ClusterctlError:
    async with running(scripts) as transports:
        return await explain(transports, CLUSTER, error)


async def test_a_program_that_ended_is_told_with_its_status_its_cause_and_its_log() -> None:
    async with running({"w1": says(NO_LIBRARY, then="exit 127")}) as transports:
        await until((files_of("w1") / "exit").exists)
        error = await explain(transports, CLUSTER, StartFailed("it ended at once", node="w1"))
    assert str(error).startswith(
        "w1: it ended at once (exit status 127): the shared library libggml.so is missing"
    )
    assert error.log == (NO_LIBRARY,)
    assert "LD_LIBRARY_PATH" in str(error.hint)


async def test_a_program_that_ends_at_once_is_told_with_what_it_said() -> None:
    command = NodeCommand("w1", Role.WORKER, ("sh", "-c", says(NO_SOCKET, then="exit 1")))
    with pytest.raises(StartFailed, match=r"ended at once \(exit status 1\): the worker could not bind") as caught:
        await start({"w1": LocalTransport("w1")}, CLUSTER, Launch(command, "127.0.0.1", 50052, "b1", "digest"))
    assert caught.value.log == (NO_SOCKET,)


@pytest.mark.parametrize("kind", [StartFailed, NotReady])
async def test_the_log_of_a_program_that_lives_is_shown_too(kind: type[ClusterctlError]) -> None:
    error = await explained({"w1": says("still waiting")}, kind("it does not listen", node="w1"))
    assert isinstance(error, kind)
    assert (str(error), error.log, error.hint) == ("w1: it does not listen", ("still waiting",), NO_CAUSE_HINT)


async def test_without_a_cause_in_the_log_the_next_step_of_the_error_stands() -> None:
    error = await explained({"w1": says("fine")}, StartFailed("listens elsewhere", node="w1", hint="beware"))
    assert (error.log, error.hint) == (("fine",), "beware")


async def test_a_cause_on_another_node_is_told_with_that_node_and_its_log() -> None:
    scripts = {"head": says("Remote RPC server crashed or returned malformed response"), "w1": says(NO_SOCKET)}
    error = await explained(scripts, StartFailed("the head has died", node="head"))
    assert str(error).endswith("(on w1)")
    assert error.log == (NO_SOCKET,)


async def test_of_several_nodes_each_is_told_its_own_cause() -> None:
    scripts = {"w1": says(NO_LIBRARY), "w2": says(NO_SOCKET)}
    with pytest.raises(NodesFailed) as caught:
        async with running(scripts) as transports, explaining(transports, CLUSTER):
            raise NodesFailed([StartFailed("died", node=node) for node in scripts])
    first, second = caught.value.errors
    assert (first.log, second.log) == ((NO_LIBRARY,), (NO_SOCKET,))
    assert "could not bind" in str(second)


@pytest.mark.parametrize(
    "error",
    [NodeUnreachable("gone", node="w1"), BuildSkew("differs", node="w1"), StartFailed("not a node's")],
)
async def test_what_no_log_can_explain_is_left_as_it_is(error: ClusterctlError) -> None:
    assert await explained({"w1": says(NO_LIBRARY)}, error) is error
