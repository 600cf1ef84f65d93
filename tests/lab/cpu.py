"""Makes a node slow: control groups that limit its share of the processors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.lab.system import LabError

PERIOD_US = 100_000


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """How one version of control groups limits processor time (kernel: admin-guide/cgroup-v1, cgroup-v2)."""

    root: Path
    quota_file: str
    quota: str

    @property
    def usable(self) -> bool:
        """Whether groups made here limit processor time."""
        return (self.root / "cgroup.procs").exists() and "cpu" in self._controllers()

    def _controllers(self) -> list[str]:
        listed = self.root / "cgroup.controllers"
        return listed.read_text().split() if listed.exists() else ["cpu"]

    def group(self, name: str) -> Path:
        """A new or existing control group."""
        delegated = self.root / "cgroup.subtree_control"
        if delegated.exists():
            delegated.write_text("+cpu")
        group = self.root / name
        group.mkdir(exist_ok=True)
        return group


HIERARCHIES = (
    Hierarchy(Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us", "{quota_us}"),
    Hierarchy(Path("/sys/fs/cgroup"), "cpu.max", f"{{quota_us}} {PERIOD_US}"),
)


def limit_cpu(name: str, pids: Callable[[], Iterable[int]], fraction: float) -> None:
    """Let processes, and those they start later, use at most this fraction of one processor.

    `pids` is asked again until it names none that is not in the control group: processes come and go.
    Raises `LabError` where the machine has no control group for it.
    """
    hierarchy = next((each for each in HIERARCHIES if each.usable), None)
    if hierarchy is None:
        raise LabError("no cpu control group (v1 or v2) is mounted in /sys/fs/cgroup")
    try:
        group = hierarchy.group(name)
        (group / hierarchy.quota_file).write_text(hierarchy.quota.format(quota_us=round(PERIOD_US * fraction)))
        moved: set[int] = set()
        while strangers := set(pids()) - moved:
            for pid in strangers:
                with contextlib.suppress(ProcessLookupError):
                    (group / "cgroup.procs").write_text(str(pid))
            moved |= strangers
    except OSError as error:
        raise LabError(f"the cpu control group can't be set: {error}") from error


def remove_cpu_groups(prefix: str) -> None:
    """Remove the control groups whose names begin so; a group with processes stays."""
    for hierarchy in HIERARCHIES:
        for group in hierarchy.root.glob(f"{prefix}*"):
            with contextlib.suppress(OSError):  # a killed lab's last process may still be ending
                group.rmdir()
