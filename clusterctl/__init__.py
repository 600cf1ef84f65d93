"""clusterctl: llama.cpp RPC clusters of unlike machines, over SSH and nothing else.

    import clusterctl

    inventory = clusterctl.load_inventory(Path("inventory/homelab.yaml"), os.environ)

What a script may rely on is named in `__all__`; a name is imported only when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterctl.cluster.bringup import Options as Options
    from clusterctl.cluster.down import tear_down as tear_down
    from clusterctl.cluster.plan_report import plan_report as plan_report
    from clusterctl.cluster.prepare import prepare_plan as prepare_plan
    from clusterctl.cluster.status import read_status as read_status
    from clusterctl.cluster.up import bring_up as bring_up
    from clusterctl.config.loading import load_inventory as load_inventory
    from clusterctl.config.loading import load_recipe as load_recipe
    from clusterctl.errors import ClusterctlError as ClusterctlError
    from clusterctl.model import Outcome as Outcome
    from clusterctl.model import Step as Step

__version__ = "0.1.0"

_HOMES = {
    "ClusterctlError": "clusterctl.errors",
    "Options": "clusterctl.cluster.bringup",
    "Outcome": "clusterctl.model",
    "Step": "clusterctl.model",
    "bring_up": "clusterctl.cluster.up",
    "load_inventory": "clusterctl.config.loading",
    "load_recipe": "clusterctl.config.loading",
    "plan_report": "clusterctl.cluster.plan_report",
    "prepare_plan": "clusterctl.cluster.prepare",
    "read_status": "clusterctl.cluster.status",
    "tear_down": "clusterctl.cluster.down",
}

__all__ = ["ClusterctlError", "Options", "Outcome", "Step", "bring_up", "load_inventory", "load_recipe"]
__all__ += ["plan_report", "prepare_plan", "read_status", "tear_down"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
