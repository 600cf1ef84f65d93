"""Which of the devices that a node lists are real, and whether the promised backend is among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusterctl.llama.backends import BACKENDS, device_backend, device_prefix
from clusterctl.model import Device, Problem, Severity

_NOT_COMPUTE = {
    "blas": "computes in the host's memory and holds no layers",
    "coreml": "repeats the memory of the Metal device",
    "rpc": "is a device of another node",
}
# Vulkan drivers that compute on the CPU, or pass through Direct3D to a card that is listed by its own driver.
_SOFTWARE = re.compile(
    r"llvmpipe|lavapipe|softpipe|swiftshader|microsoft basic render|direct3d12|\bdozen\b", re.IGNORECASE
)
_VENDORS = {
    "nvidia": re.compile(r"nvidia|geforce|quadro|tesla|\brtx\b", re.IGNORECASE),
    "amd": re.compile(r"\bamd\b|radeon|instinct", re.IGNORECASE),
    "intel": re.compile(r"intel|\barc\b|\biris\b", re.IGNORECASE),
    "apple": re.compile(r"apple", re.IGNORECASE),
}

Dropped = tuple[Device, str]


@dataclass(frozen=True, slots=True)
class _Listing:
    devices: tuple[Device, ...]
    backend: str | None


def usable_devices(
    devices: Iterable[Device], backend: str | None
) -> tuple[tuple[Device, ...], tuple[Dropped, ...]]:
    """Return the devices that may take layers, in listed order, and the dropped ones, each with the reason.

    `backend` is what the inventory says of the node, `None` where it says nothing. Memory is never counted
    twice: when in doubt whether two backends list the same card, one of them is dropped. A device that only
    does not tell its memory stays, because the inventory can (see `budget_mib`).
    """
    kept, dropped = tuple(devices), []
    for rule in _RULES:
        listing = _Listing(kept, backend)
        verdicts = [(device, rule(device, listing)) for device in kept]
        kept = tuple(device for device, reason in verdicts if reason is None)
        dropped += [(device, reason) for device, reason in verdicts if reason is not None]
    return kept, tuple(dropped)


def is_software(device: Device) -> bool:
    """Whether a device that is listed like a card computes on the CPU, or repeats a card through Direct3D."""
    return _SOFTWARE.search(device.description) is not None


def missing_backend_problem(backend: str, devices: Sequence[Device] | None) -> Problem | None:
    """Return an error if a node lacks the backend that the inventory names, or has it only in software.

    `devices` is what `parse_devices` gave: `None`, no listing at all, is an error for every backend.
    """
    hint = "; ".join(BACKENDS[backend].needs)
    if devices is None:
        return Problem(
            "backend-missing", Severity.ERROR, f"no devices are listed, so {backend} can't be confirmed", hint
        )
    if backend == "cpu":
        return None
    found = [device for device in devices if device_backend(device.name) == backend]
    if not found:
        names = ", ".join(device.name for device in devices) or "none"
        return Problem(
            "backend-missing",
            Severity.ERROR,
            f"the inventory says backend {backend}, but the devices are: {names}",
            f"{hint}; or this build lacks the backend, or the inventory is wrong",
        )
    if all(map(is_software, found)):
        return Problem(
            "backend-in-software",
            Severity.ERROR,
            f"{found[0].name} is {found[0].description}, which computes on the CPU",
            f"{hint}; or say `backend: cpu` if that is meant",
        )
    return None


def _not_compute(device: Device, _listing: _Listing) -> str | None:
    if device_backend(device.name) is not None:
        return None
    prefix = device_prefix(device.name)
    return _NOT_COMPUTE.get(prefix, "is of a backend that clusterctl does not know")


def _beside_wanted_cpu(device: Device, listing: _Listing) -> str | None:
    if listing.backend == "cpu" and not _is_cpu(device):
        return "is not the CPU, which the inventory asks for"
    return None


def _software(device: Device, listing: _Listing) -> str | None:
    if is_software(device) and any(_is_card(other) for other in listing.devices):
        return "computes on the CPU or repeats a card, and a real card is present"
    return None


def _same_card(device: Device, listing: _Listing) -> str | None:
    if _is_cpu(device):
        return None
    rivals = [other for other in listing.devices if _vendor(other) == _vendor(device)]
    best = min(rivals, key=lambda rival: _preference(rival, listing.backend))
    if device_backend(best.name) != device_backend(device.name):
        return f"is a card that {best.name} already stands for"
    if device_backend(device.name) == "metal" and device != best:
        return f"is another view of {best.name}, with the same memory"
    return None


def _cpu_beside_accelerator(device: Device, listing: _Listing) -> str | None:
    if _is_cpu(device) and not all(_is_cpu(other) for other in listing.devices):
        return "takes no layers where an accelerator is present"
    return None


# In this order: each rule sees only what the ones before it kept.
_RULES = (_not_compute, _beside_wanted_cpu, _software, _same_card, _cpu_beside_accelerator)


def _is_cpu(device: Device) -> bool:
    return device_backend(device.name) == "cpu"


def _is_card(device: Device) -> bool:
    return not _is_cpu(device) and not is_software(device)


def _preference(device: Device, wanted: str | None) -> tuple[bool, int]:
    """A sort key: the inventory's backend first, then the order of `BACKENDS`."""
    backend = device_backend(device.name)
    return backend != wanted, list(BACKENDS).index(backend or "cpu")


def _vendor(device: Device) -> str:
    """Whose card it is; cards of an unknown vendor are told apart by their description."""
    named = next((vendor for vendor, pattern in _VENDORS.items() if pattern.search(device.description)), None)
    backend = BACKENDS.get(device_backend(device.name) or "")
    return named or (backend.vendor if backend else None) or device.description
