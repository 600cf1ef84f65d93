"""Values of the command line that an inventory would take too: checked by the same types, in the same words."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

import click
from pydantic import BaseModel, ValidationError

from clusterctl.config.addresses import Host, PrivateNetwork
from clusterctl.config.fields import ClusterName, Port, User
from clusterctl.remote.target import Destination

THIS_MACHINE = ("localhost", ".")


@dataclass(frozen=True, slots=True)
class Place:
    """A machine as the user named it; `destination` is `None` for this one."""

    text: str
    destination: Destination | None


class _Given(BaseModel):
    """What may be given on the command line, each by itself."""

    cluster: ClusterName = ""
    network: PrivateNetwork | None = None
    host: Host = ""
    user: User | None = None
    port: Port | None = None


def cluster_name(text: str) -> str:
    """Return the name of a cluster, or raise `click.BadParameter`."""
    return _given(text, cluster=text).cluster


def private_network(text: str) -> IPv4Network | None:
    """Return a private network, or raise `click.BadParameter`."""
    return _given(text, network=text).network


def place(text: str) -> Place:
    """Return `[USER@]HOST[:PORT]` or this machine, or raise `click.BadParameter`."""
    if text in THIS_MACHINE:
        return Place(text, None)
    user, at, rest = text.rpartition("@")
    # More than one colon: an IPv6 address, which carries no port.
    host, colon, port = rest.partition(":") if rest.count(":") == 1 else (rest, "", "")
    given = _given(text, host=host, user=user if at else None, port=port if colon else None)
    return Place(text, Destination(given.host, user=given.user, port=given.port))


def _given(text: str, **values: str | None) -> _Given:
    try:
        return _Given.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise click.BadParameter(
            f"{text}: {first['loc'][0]} {first['msg'].removeprefix('Value error, ')}"
        ) from error
