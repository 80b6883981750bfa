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


def entry_of(text, entry):
    """Where the body of the kernel lies whose name matches `entry`, of those in the text."""
    for match in re.finditer(r"\.entry\s+([\w$]+)", text):
        if re.search(entry, match.group(1)):
            depth, at = 0, text.index("{", match.end())
            for brace in re.finditer(r"[{}]", text[at:]):
                depth += 1 if brace.group() == "{" else -1
                if depth == 0:
                    return at, at + brace.end()
    raise NoPlace(f"no kernel is called like {entry!r}")


def apply(edit, place, text, entry=""):
    """The text with the edit at its `place`-th match in the kernel, counted from 1; 0: at all."""
    begin, end = entry_of(text, entry)
    return text[:begin] + change(edit, place, text[begin:end]) + text[end:]


def change(edit, place, text):
    found = matches(edit, text)
    if len(found) < max(place, 1):
        raise NoPlace(f"{edit['find']!r} matches {len(found)} times, so there is no place {place}")
    for match in reversed(found if place == 0 else [found[place - 1]]):
        text = text[:match.start()] + match.expand(edit["put"]) + text[match.end():]
    return text


def write(program, ptx, edit, place, target, entry=""):
    """Makes the mutant at `target`, a program where `ptx` is None, else a PTX file."""
    if ptx is not None:
        head = [line for line in ptx.read_text().split("\n")[:1] if line.startswith("// entry")]
        changed = apply(edit, place, fatbin.compact(ptx.read_text()), entry)
        target.write_text("\n".join([*head, changed]))
        return
    image, reason = program.read_bytes(), NoPlace(f"no PTX is in {program.name}")
    for index, text in enumerate(fatbin.texts(image)):
        try:
            changed = apply(edit, place, fatbin.compact(text), entry)
        except NoPlace as error:
            reason = error
            continue
        target.write_bytes(fatbin.replace(image, index, changed))
        target.chmod(0o755)
        return
    raise reason


def judge(outcomes):
    """What the runs of a mutant say: named by a fault, wrong or hung, else missed."""
    verdicts = [outcome.verdict for outcome in outcomes]
    if "fault" in verdicts:
        return "named"
    return "wrong" if {"wrong", "timeout", "failed"} & set(verdicts) else "missed"
