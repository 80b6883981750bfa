"""Runs programs of the build tree."""

import subprocess

from .folder import Problem, clean

MOST_SECONDS = 600


def run(command):
    """(exit code, lines of stdout and stderr). Problem if it does not start or does not end."""
    try:
        done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Problem(f"{command[0]} has not ended after {MOST_SECONDS} s") from None
    except OSError as error:
        raise Problem(f"{command[0]} cannot be run: {clean(error)}") from None
    text = done.stdout.decode("utf-8", "replace")
    return done.returncode, [line for line in map(clean, text.splitlines()) if line]
