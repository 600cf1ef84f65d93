"""Which values are secrets, and how they are kept out of what is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "***"
# Read by llama-server (llama.cpp common/arg.cpp, `--api-key`); unlike an argument, no other user sees it.
KEY_VARIABLE = "LLAMA_API_KEY"

_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW(OR)?D|CREDENTIAL", re.IGNORECASE)
# Bearer tokens, keys of Hugging Face and of OpenAI's form, and the password in a URL.
_VALUE = re.compile(r"(?<=Bearer )\S+|\bhf_\w{16,}|\bsk-[\w-]{16,}|(?<=://)[^\s/@:]+:[^\s/@]+(?=@)", re.IGNORECASE)


def is_secret(variable: str) -> bool:
    """Whether the value of an environment variable is likely to be a secret, such as LLAMA_API_KEY's."""
    return _NAME.search(variable) is not None


def hide_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables with the values of secrets hidden."""
    return {name: HIDDEN if is_secret(name) else value for name, value in env.items()}


def without_secrets(text: str) -> str:
    """Return text with everything in it hidden that has the form of a secret."""
    return _VALUE.sub(HIDDEN, text)
