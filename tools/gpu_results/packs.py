"""Tuned results of a GPU become a pack that ships with the library."""

import os
import shutil
import tempfile
from pathlib import Path

from .folder import PACK, Problem
from .programs import run


def merged(pack, target, program, folder):
    """The pack together with the one that is there, as the program reads and writes them."""
    made = Path(folder) / "merged.pack"
    there = [target] if target.is_file() else []
    code, lines = run([program, "tuned", "merge", pack, *there, "-o", made])
    if code != 0 or not made.is_file():
        raise Problem(f"{PACK} is not taken: annulus tuned merge ends with {code}: "
                      f"{' '.join(lines[-2:])}")
    data = made.read_bytes()
    if b"\n{" not in data:
        raise Problem(f"{PACK} is not taken: it holds no results")
    return made, data


def check_measured(made, root):
    """Problem if the pack holds predictions: the rule of the build."""
    cmake = shutil.which("cmake")
    if not cmake:
        raise Problem(f"{PACK} is not taken: cmake is needed to check that all of it was measured")
    code, lines = run([cmake, f"-DPACKS={made}", "-P", root / "tools" / "cmake" / "packs.cmake"])
    if code != 0:
        raise Problem(f"{PACK} is not taken: {' '.join(lines[:3])}")


def take_pack(results, words, root, build, folder, rehearsal):
    """Merges the pack into folder/WORDS.pack and says what was done. Problem if it is refused.

    In a rehearsal results may be predictions.
    """
    program = build / "annulus"
    if not program.is_file():
        return f"left alone: {program} is not built"
    target = folder / f"{words}.pack"
    with tempfile.TemporaryDirectory() as scratch:
        made, data = merged(results.path / PACK, target, program, scratch)
        if not rehearsal:
            check_measured(made, root)
    results.read_anything = True
    shown = os.path.relpath(target, root)
    if target.is_file() and target.read_bytes() == data:
        return f"{shown} holds all of it"
    folder.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    count = data.count(b"\n{")
    return f"{shown} was written, with {count} results"
