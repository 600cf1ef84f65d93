"""The memory bandwidth of devices, which decides how fast they decode."""

from __future__ import annotations

from clusterctl.model import Offer
from clusterctl.planning.data_sheets import data_sheet, shares_memory, unknown_bandwidth_gb_s


def bandwidth_gb_s(offer: Offer) -> float:
    """The bandwidth the user gives, else the data sheet's, else a cautious figure for the backend."""
    known = known_bandwidth_gb_s(offer)
    return unknown_bandwidth_gb_s(offer.backend) if known is None else known


def known_bandwidth_gb_s(offer: Offer) -> float | None:
    """The bandwidth the user gives, else the data sheet's; `None` if there is neither."""
    return offer.bandwidth_gb_s or data_sheet(offer.description).gb_s


def is_unified(offer: Offer) -> bool:
    """Whether the device is known to share its memory with the CPU."""
    return shares_memory(offer.description)
