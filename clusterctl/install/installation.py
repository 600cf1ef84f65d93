"""What an installation knows so far: the value that its phases hand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.session import Session
from clusterctl.cluster.steps import Tell
from clusterctl.config.inventory import Inventory
from clusterctl.install.choice import Choice
from clusterctl.install.order import Order
from clusterctl.install.site import Look, Site
from clusterctl.reports import SkewReport


@dataclass(frozen=True, slots=True)
class Links:
    """The builds that `current` and `previous` lead to; `None` where there is none."""

    current: str | None
    previous: str | None


@dataclass(frozen=True, slots=True)
class Installation:
    """What is known so far; every phase returns a new one. Without an `order`, it is a way back."""

    inventory: Inventory
    order: Order | None
    opened: Session
    tell: Tell
    scratch: Path
    sites: Mapping[str, Site]
    looks: Mapping[str, Look] = field(default_factory=dict)
    choices: Mapping[str, Choice] = field(default_factory=dict)
    links: Mapping[str, Links] = field(default_factory=dict)
    facts: Mapping[str, NodeFacts] = field(default_factory=dict)
    skew: SkewReport | None = None

    @property
    def real(self) -> bool:
        """Whether anything may really be changed."""
        return not self.opened.dry

    @property
    def missing(self) -> Mapping[str, Choice]:
        """The choices of sites that do not have their build yet."""
        return {name: each for name, each in self.choices.items() if each.directory not in self.looks[name].builds}

    @property
    def old_links(self) -> Mapping[str, Links]:
        """Where the links led before."""
        return {name: Links(look.current, look.previous) for name, look in self.looks.items()}

    @property
    def changes(self) -> Mapping[str, Links]:
        """The links that are to lead elsewhere."""
        return {name: links for name, links in self.links.items() if links != self.old_links[name]}

    @property
    def directories(self) -> Mapping[str, str]:
        """The build that each site is to use."""
        return {name: links.current for name, links in self.links.items() if links.current is not None}
