"""Reads a folder of results. Every part may be missing, cut off or damaged: that is noted.

right.jsonl and fast.jsonl hold one JSON object in each line:

    {"kind": "gpu_check", "schema": 2, "call": "right", "commit": ..., "date": ..., "gpu": ...}
    {"of": STEP, "says": {...}}                       an object that a step printed
    {"step": STEP, "group": ..., "outcome": "pass", "exit": 0, "seconds": 1.25, "tail": ...}

Values of these objects are read by the functions below, which answer None or an empty text, list or
object if the value is missing or of another type.
"""

import json
import math
import re
from pathlib import Path
from typing import NamedTuple

LINES = ("right.jsonl", "fast.jsonl")
GOLDEN, PACK, FAILURES = "golden_device.json.gz", "tuned.pack", "failures.txt"
NAMES = LINES + (GOLDEN, PACK, FAILURES)
SCHEMA = 2
MOST_BYTES = 64 << 20  # the largest file
LEAST, MOST = 1e-12, 1e30  # positive numbers outside are not measurements
BROKEN = ("fail", "hang", "crash")  # outcomes that show a fault of the GPU or the kernels


class Problem(Exception):
    """What is wrong and what to do about it, in words for people."""


def clean(value):
    """Text that can be printed: one line, without control characters or halves of characters."""
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in text).strip()


def text_of(value, key):
    found = value.get(key)
    return clean(found) if isinstance(found, str) else ""


def finite(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def number_of(value, key):
    return finite(value.get(key))


def positive(value):
    number = finite(value)
    return number if number is not None and LEAST <= number <= MOST else None


def positive_of(value, key):
    """A number above zero, or None."""
    return positive(value.get(key))


def list_of(value, key):
    found = value.get(key)
    return found if isinstance(found, list) else []


def times_of(value, key):
    """The positive numbers of a list."""
    numbers = (positive(each) for each in list_of(value, key))
    return [number for number in numbers if number is not None]


def object_of(value, key):
    found = value.get(key)
    return found if isinstance(found, dict) else {}


class Said(NamedTuple):
    step: str
    says: dict


class Step(NamedTuple):
    name: str
    group: str  # the first word of the name if the line has no group
    outcome: str
    exit: object
    seconds: object
    tail: list  # the last lines of output, without empty ones


class Results:
    def __init__(self, path):
        self.path = Path(path)
        self.files = []    # the names of the existing result files
        self.others = []   # the names of all other files
        self.damaged = []  # sentences about damage
        self.calls = []    # the first lines of calls
        self.said = []     # Said, in order
        self.steps = {}    # name: Step, as it last ended
        self.read_anything = False

    def of(self, key):
        """The objects that have `key`, and the steps that printed them."""
        return [said for said in self.said if key in said.says]

    def in_group(self, *groups):
        return [step for step in self.steps.values() if step.group in groups]

    def unfinished(self):
        """Names of steps that printed something and never ended."""
        return sorted({said.step for said in self.said} - set(self.steps))

    def doctors(self):
        """What `annulus doctor` said of the device, of each call."""
        return [object_of(object_of(call, "doctor"), "device") for call in self.calls]

    def simulated(self):
        """Whether any of it comes from a rehearsal or from a simulated device."""
        said = [said.says for said in self.said] + self.doctors()
        return any(says.get("simulated") is True for says in said) or any(
            call.get("rehearsal") is True or text_of(call, "device").startswith("sim:")
            for call in self.calls)

    def architecture(self):
        """The architecture that `annulus doctor` named, or an empty text."""
        names = [text_of(device, "architecture") for device in self.doctors()]
        return next((name for name in names if re.fullmatch(r"sm_\d+a?", name)), "")


def read_bytes(results, name):
    """The bytes of a file of the folder, or None if there is no such file or it cannot be read."""
    path = results.path / name
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > MOST_BYTES:
            results.damaged.append(f"{name} has more than {MOST_BYTES >> 20} MiB and is not read")
            return None
        return path.read_bytes()
    except OSError as error:
        results.damaged.append(f"{name} cannot be read: {clean(error)}")
        return None


def not_a_number(word):
    raise ValueError(f"{word} is no number of JSON")


def parse_object(text):
    """The JSON object that `text` is; ValueError if it is none."""
    try:
        value = json.loads(text, parse_constant=not_a_number)
    except RecursionError:
        raise ValueError("values are nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


def step_of(value):
    name = text_of(value, "step")
    tail = value.get("tail") if isinstance(value.get("tail"), str) else ""
    return Step(name, text_of(value, "group") or name.split(" ")[0], text_of(value, "outcome"),
                number_of(value, "exit"), number_of(value, "seconds"),
                [line for line in map(clean, tail.splitlines()) if line])


def take_object(results, value):
    """Files one object; ValueError if it is none of the three kinds."""
    if value.get("kind") == "gpu_check":
        if value.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {clean(value.get('schema'))}, and {SCHEMA} is read")
        results.calls.append(value)
    elif text_of(value, "of") and isinstance(value.get("says"), dict):
        results.said.append(Said(text_of(value, "of"), value["says"]))
    elif text_of(value, "step") and text_of(value, "outcome"):
        step = step_of(value)
        results.steps[step.name] = step
    else:
        raise ValueError("it is neither a call nor what a step said nor how a step ended")


def read_lines(results, name, data):
    lines = data.split(b"\n")
    whole = lines[-1] == b""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            take_object(results, parse_object(line.decode("utf-8")))
            results.read_anything = True
        except ValueError as error:  # includes UnicodeDecodeError and JSONDecodeError
            if number == len(lines) and not whole:
                results.damaged.append(f"{name} ends in the middle of line {number}")
            else:
                results.damaged.append(f"{name}, line {number} is left out: {clean(error)[:120]}")


def read_folder(path):
    """The results of a folder; Problem if there is no such folder."""
    results = Results(path)
    try:
        names = sorted(entry.name for entry in results.path.iterdir())
    except OSError as error:
        raise Problem(f"{path} is no folder that can be read: {clean(error)}") from None
    results.files = [name for name in names if name in NAMES]
    results.others = [clean(name) for name in names if name not in NAMES]
    for name in LINES:
        data = read_bytes(results, name)
        if data is not None:
            read_lines(results, name, data)
    return results
