"""The compute backends that an inventory may name, and what each of them needs on a node."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LIBRARIES = "ldd on the program must show no library as 'not found'"
_GROUPS = "the SSH user must be in the groups render and video (log in again after usermod -aG)"


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend of ggml.

    `device_prefixes` begin its device names, in lower case. `vendor` is whose cards it drives, `None` for
    any. `free_is_guessed` marks backends that report all memory as free when the driver can't tell. `needs`
    says what must hold for its devices to show up.
    """

    name: str
    device_prefixes: tuple[str, ...]
    vendor: str | None
    free_is_guessed: bool
    needs: tuple[str, ...]


# In order of preference where two backends drive the same card.
BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(
            "cuda",
            ("cuda",),
            vendor="nvidia",
            free_is_guessed=False,
            needs=(
                "nvidia-smi must work for the SSH user, with a driver not older than the build's CUDA",
                _LIBRARIES,
                "CUDA_VISIBLE_DEVICES must not be empty",
            ),
        ),
        Backend(
            "rocm",
            ("rocm",),
            vendor="amd",
            free_is_guessed=False,
            needs=(
                f"{_GROUPS} and able to open /dev/kfd",
                "a card that ROCm does not list needs env HSA_OVERRIDE_GFX_VERSION in the inventory",
                _LIBRARIES,
            ),
        ),
        Backend(
            "metal",
            ("mtl", "metal"),
            vendor="apple",
            free_is_guessed=False,
            needs=("Metal works in a macOS build on the machine itself, not in a container or virtual machine",),
        ),
        Backend(
            "sycl",
            ("sycl",),
            vendor="intel",
            free_is_guessed=True,
            needs=(
                "oneAPI's setvars.sh does not run over SSH: put its LD_LIBRARY_PATH into the node's env",
                _GROUPS,
                "the Level Zero driver must be installed",
            ),
        ),
        Backend(
            "vulkan",
            ("vulkan",),
            vendor=None,
            free_is_guessed=True,
            needs=(
                "vulkaninfo --summary must show the card to the SSH user: install its Vulkan driver (ICD)",
                _GROUPS,
                "VK_ICD_FILENAMES and GGML_VK_VISIBLE_DEVICES must not hide it",
            ),
        ),
        Backend("cpu", ("cpu",), vendor=None, free_is_guessed=False, needs=(_LIBRARIES,)),
    )
}
_BY_PREFIX = {prefix: backend.name for backend in BACKENDS.values() for prefix in backend.device_prefixes}


def device_backend(name: str) -> str | None:
    """Return the backend of a device name, `None` for devices that hold no layers here (BLAS, RPC, unknown).

    A HIP worker says "using CUDA backend", but its devices are `ROCm0`, …: the device name decides.
    """
    return _BY_PREFIX.get(device_prefix(name))


def device_prefix(name: str) -> str:
    """Return the letters that begin a device name, in lower case: `rocm` of `ROCm0`."""
    letters = re.match(r"[A-Za-z]+", name)
    return letters[0].lower() if letters else ""
