"""Programs with one thing taken out, so that silence about the whole ones keeps its meaning.

An edit is a regular expression over the compacted PTX, and what is put in its place; mutants.toml
lists them by name, and per case which of its places are edited. A mutant is a copy of the program
with other PTX in it (fatbin.py), or another PTX file.
"""

import re

from . import fatbin


class NoPlace(Exception):
    """An edit that matches less often than the list of mutants says."""


def matches(edit, text):
    return list(re.finditer(edit["find"], text, re.S))


def apply(edit, place, text):
    """The text with the edit at its `place`-th match, counted from 1; 0: at all of them."""
    found = matches(edit, text)
    if len(found) < max(place, 1):
        raise NoPlace(f"{edit['find']!r} matches {len(found)} times, so there is no place {place}")
    for match in reversed(found if place == 0 else [found[place - 1]]):
        text = text[:match.start()] + match.expand(edit["put"]) + text[match.end():]
    return text


def write(program, ptx, edit, place, target):
    """Makes the mutant at `target`, a program where `ptx` is None, else a PTX file."""
    if ptx is not None:
        head = [line for line in ptx.read_text().split("\n")[:1] if line.startswith("// entry")]
        changed = apply(edit, place, fatbin.compact(ptx.read_text()))
        target.write_text("\n".join([*head, changed]))
        return
    image = program.read_bytes()
    for index, text in enumerate(fatbin.texts(image)):
        small = fatbin.compact(text)
        if len(matches(edit, small)) >= max(place, 1):
            target.write_bytes(fatbin.replace(image, index, apply(edit, place, small)))
            target.chmod(0o755)
            return
    raise NoPlace(f"{edit['find']!r} has no place {place} in {program.name}")


def judge(outcomes):
    """What the runs of a mutant say: named by a fault, wrong or hung, else missed."""
    verdicts = [outcome.verdict for outcome in outcomes]
    if "fault" in verdicts:
        return "named"
    return "wrong" if {"wrong", "timeout", "failed"} & set(verdicts) else "missed"
