"""Which of the machines should be the head, and why. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clusterctl.cluster.survey import Site
from clusterctl.errors import UsageError
from clusterctl.llama.backends import device_backend
from clusterctl.llama.device_choice import is_software, usable_devices
from clusterctl.model import MIB, Device, Offer
from clusterctl.planning.bandwidth import bandwidth_gb_s, known_bandwidth_gb_s


@dataclass(frozen=True, slots=True)
class HeadChoice:
    """The head and a sentence on it. `equals` are nodes with no worse a claim: only the user can tell."""

    name: str
    reason: str
    equals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Criterion:
    """`value` is what counts, more being better; `words` says what the best one has."""

    value: Callable[[Site], float]
    words: Callable[[Site], str]


def choose_head(sites: Sequence[Site]) -> HeadChoice:
    """Choose the site that can serve and has the model files, else the fastest device, else the most memory.

    The model file must lie on the head, and the head's own devices are the only ones reached without a network.

    Raises:
        UsageError: if no site has a program that can be the head.
    """
    able = [site for site in sites if _can_serve(site, alone=len(sites) == 1)]
    if not able:
        raise UsageError(
            f"no head is possible: none of {', '.join(site.name for site in sites)} has a llama-server with --rpc",
            hint="install llama.cpp built with -DGGML_RPC=ON on the node that is to serve",
        )
    if len(sites) == 1:
        return HeadChoice(able[0].name, "it is the only node")
    if len(able) == 1:
        return HeadChoice(able[0].name, "it is the only node with a llama-server that knows --rpc")
    return _best(able)


def accelerators(devices: Iterable[Device] | None) -> tuple[Device, ...]:
    """Return the devices that compute faster than the CPU does."""
    kept, _ = usable_devices(devices or (), None)
    return tuple(device for device in kept if device_backend(device.name) != "cpu" and not is_software(device))


def _best(able: Sequence[Site]) -> HeadChoice:
    leaders, words = list(able), []
    for criterion in _CRITERIA:
        best = max(map(criterion.value, leaders))
        ahead = [site for site in leaders if criterion.value(site) == best]
        if len(ahead) < len(leaders):
            words.append(criterion.words(ahead[0]))
        leaders = ahead
    first, *equals = (site.name for site in leaders)
    if equals:
        words.append(f"is named before {', '.join(equals)}, with which it is level")
    return HeadChoice(first, f"it {' and '.join(words)}", tuple(equals))


def _can_serve(site: Site, *, alone: bool) -> bool:
    flags = site.as_head.flags
    return site.as_head.head_program is not None and flags is not None and (alone or "--rpc" in flags)


def _model_words(site: Site) -> str:
    gib = sum(site.models.values()) / MIB / 1024
    largest = max(site.models, key=lambda path: site.models[path])
    if len(site.models) == 1:
        return f"holds a model file ({gib:.1f} GiB, {largest})"
    return f"holds {len(site.models)} model files ({gib:.1f} GiB, the largest {largest})"


def _fastest(site: Site) -> Offer | None:
    return max(map(_as_offer, accelerators(site.as_head.devices)), key=bandwidth_gb_s, default=None)


def _as_offer(device: Device) -> Offer:
    return Offer("", device.name, device.description, device_backend(device.name), None, 0)


def _bandwidth(site: Site) -> float:
    fastest = _fastest(site)
    return bandwidth_gb_s(fastest) if fastest else 0.0


def _bandwidth_words(site: Site) -> str:
    fastest = _fastest(site)
    assert fastest is not None
    known = known_bandwidth_gb_s(fastest)
    figure = f", {known:g} GB/s" if known else ""
    return f"has the fastest device ({fastest.device}, {fastest.description}{figure})"


def _memory_mib(site: Site) -> int:
    return sum(device.total_mib or 0 for device in accelerators(site.as_head.devices))


def _memory_words(site: Site) -> str:
    return f"has the most device memory ({_memory_mib(site) / 1024:.0f} GiB)"


_CRITERIA = (
    _Criterion(lambda site: bool(site.models), _model_words),
    _Criterion(_bandwidth, _bandwidth_words),
    _Criterion(_memory_mib, _memory_words),
)
