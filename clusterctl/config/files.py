"""Read a configuration file, or say why it can't be read and what to do."""

from __future__ import annotations

from pathlib import Path

from clusterctl.errors import UsageError
from clusterctl.escaping import escaped

MAX_BYTES = 1024 * 1024


def read_text(path: Path, *, hint: str) -> str:
    """Return the text of a UTF-8 file of at most 1 MiB.

    Raises:
        UsageError: the file is missing, unreadable, a directory, too large or not UTF-8; it carries `hint`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) <= MAX_BYTES:
            return content.decode("utf-8-sig")
        reason = "larger than 1 MiB, so hardly the right file"
    except FileNotFoundError:
        reason = "no such file"
    except IsADirectoryError:
        reason = "a directory, not a file"
    except PermissionError:
        reason = "not readable by this user"
    except UnicodeDecodeError:
        reason = "not UTF-8 text"
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError:
        # A path with a NUL character; the operating system knows no such file.
        reason = "no such file"
    raise UsageError(f"{escaped(str(path))}: {reason}", hint=hint)
