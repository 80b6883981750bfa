"""Which GPU results are of, and where the repository keeps them."""

import functools
import re
from typing import NamedTuple

from .folder import GOLDEN, NAMES, PACK, Problem, object_of, read_bytes, text_of


DIFFERENCES = "golden_differences.txt"
# An absolute path, at the beginning of a word or after an escaped line end of JSON.
PATH = re.compile(r"""(?:(?<![^\s"'`=:;,<(\[{])|(?<=\\[nrt]))(?:/[\w.+@~-]+)+/?""")


class Origin(NamedTuple):
    gpu: str     # "NVIDIA H100 80GB HBM3"
    driver: str  # "580.159.04", or empty
    commit: str  # at most 12 characters
    date: str    # "2026-11-27"

    @property
    def words(self):
        """The GPU as the name of a folder: "nvidia-h100-80gb-hbm3"."""
        return words(self.gpu)


def words(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def origin_of_call(call):
    doctor = object_of(object_of(call, "doctor"), "device")
    gpu = text_of(call, "gpu") or text_of(doctor, "tuned_key").split(",")[0]
    parts = [part.strip() for part in gpu.split(",")]
    return Origin(parts[0], parts[1] if len(parts) > 1 else "",
                  words(text_of(call, "commit"))[:12], text_of(call, "date")[:10])


def origin_of(results):
    """The one origin of all calls, with the date of the first; Problem if there is none or several."""
    origins = [origin_of_call(call) for call in results.calls]
    if not origins:
        raise Problem("no first line of a call was read, so GPU, commit and date are not known")
    for what, kind in (("words", "GPUs"), ("commit", "commits")):
        found = sorted({getattr(origin, what) for origin in origins} - {""})
        if len(found) > 1:
            raise Problem(f"calls are of several {kind} ({', '.join(found)}): give the files of "
                          "each a folder of its own")
    # If nvidia-smi and the doctor gave nothing for a call, the call gets the GPU of the other
    # calls.
    origin = max((each for each in origins if each.words), default=origins[0],
                 key=lambda each: each.driver != "")
    origin = origin._replace(date=min(each.date for each in origins))
    if not origin.words or not origin.commit or not re.fullmatch(r"\d{4}-\d\d-\d\d", origin.date):
        raise Problem("the first line of the call lacks the GPU, the commit or the date: "
                      f"'{origin.gpu}', '{origin.commit}', '{origin.date}'")
    return origin


def without_paths(data, checkout):
    """A text in which no absolute path of a machine is left.

    It keeps the end of a path that the folder `checkout` has too, or else its last name.
    """
    @functools.cache
    def shortened(path):
        parts = path.strip("/").split("/")
        ends = ("/".join(parts[first:]) for first in range(len(parts)))
        return next((end for end in ends if (checkout / end).exists()), parts[-1])

    text = data.decode("utf-8", "surrogateescape")
    return PATH.sub(lambda found: shortened(found[0]), text).encode("utf-8", "surrogateescape")


def takes(folder, contents):
    """Whether each file that `folder` has is the beginning of the new one, or the reverse."""
    for name, data in contents.items():
        path = folder / name
        if not path.exists():
            continue
        held = path.read_bytes()
        if not data.startswith(held) and not held.startswith(data):
            return False
    return True


def keep(results, origin, root, differences, checkout):
    """Copies the files of results below `root` and gives the folder that holds them now.

    Texts are copied as without_paths() has them. In place of the results of golden programs, which
    are megabytes that a simulated device can make again, it holds a text, `differences`, of those
    that differ; nothing if that is None.

    The folder is GPU/DATE-COMMIT. If that holds other results, it is GPU/DATE-COMMIT-2 and so on:
    nothing is overwritten, except by the same file with more at its end.
    """
    contents = {name: read_bytes(results, name) for name in NAMES if name in results.files}
    contents.pop(GOLDEN, None)
    if differences is not None:
        contents[DIFFERENCES] = differences.encode()
    contents = {name: data if name == PACK else without_paths(data, checkout)
                for name, data in contents.items() if data is not None}
    base = f"{origin.date}-{origin.commit}"
    number = 1
    folder = root / origin.words / base
    while not takes(folder, contents):
        number += 1
        folder = root / origin.words / f"{base}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        path = folder / name
        if not path.exists() or path.stat().st_size < len(data):
            path.write_bytes(data)
    return folder
