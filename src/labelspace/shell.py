"""Commands as the user's shell takes them."""

import os
import shlex
import subprocess


def command_line(*words: object) -> str:
    """Return words as one line for the shell, each quoted where it needs it.

    Example:
        >>> command_line("labelspace", "lint", "my labels.yaml")
        "labelspace lint 'my labels.yaml'"
    """
    # cmd.exe takes ' as a part of the name, and shlex quotes every backslash.
    parts = [str(word) for word in words]
    return subprocess.list2cmdline(parts) if os.name == "nt" else shlex.join(parts)
