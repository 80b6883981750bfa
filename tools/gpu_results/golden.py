"""Golden programs: results of the GPU beside the simulator's and beside their definitions."""

import json
import re
import tempfile
import zlib
from pathlib import Path

from .folder import GOLDEN, Problem, clean, list_of, parse_object, read_bytes, text_of
from .programs import run

# The simulated device that has every program that a GPU may have run.
SIMULATED = "sim:sm_90a"
MOST_TEXT = 240        # the most characters of a line
MOST_BYTES = 512 << 20  # the most uncompressed bytes
# The output of golden_programs --compare for one program.
COMPARED = re.compile(r"(differs|refused|missing) +(.+?)(?:: \d+ words.*| by one of.*| \(or run.*)")


class Golden:
    def __init__(self):
        self.note = ""         # why nothing was compared
        self.programs = 0      # the number of programs that the GPU ran
        self.differences = {}  # instruction: {program: lines about the difference}
        self.varies = 0        # programs that differ, but only as the manual permits
        self.unmodelled = 0    # programs that the simulator refuses

    def add(self, name, text):
        programs = self.differences.setdefault(re.split(r"[. ]", name)[0], {})
        programs.setdefault(name, []).append(text[:MOST_TEXT])

    def count(self):
        return sum(len(programs) for programs in self.differences.values())

    def text(self):
        """All differences, a line each; None if nothing was compared."""
        if self.note or not self.programs:
            return None
        lines = [line for _, programs in sorted(self.differences.items())
                 for _, texts in sorted(programs.items()) for line in texts]
        return "".join(line + "\n" for line in [f"{self.count()} of {self.programs} differ", *lines])

    def by_instruction(self):
        """The instructions that differ, and how many programs of each."""
        return ", ".join(f"{name} ({len(programs)})"
                         for name, programs in sorted(self.differences.items()))


def unpacked(data):
    """The report in a compressed file; Problem if it is damaged."""
    try:
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        text = unpacker.decompress(data, MOST_BYTES)
        if not unpacker.eof:
            raise ValueError("it is cut off or too large")
        report = parse_object(text.decode("utf-8"))
    except (ValueError, zlib.error) as error:
        raise Problem(f"{GOLDEN} is damaged: {clean(error)[:120]}") from None
    programs = [each for each in list_of(report, "programs") if isinstance(each, dict)]
    if not programs:
        raise Problem(f"{GOLDEN} holds no programs")
    return text, programs


def compare(golden, text, build, root):
    """Runs the simulator's side and takes what golden_programs says of the two.

    Gives the names of the programs that the simulator refuses: what it does not model is no
    difference.
    """
    program = build / "tests" / "golden_programs"
    if not program.is_file():
        golden.note = f"not compared with the simulator: {program} is not built"
        return set()
    with tempfile.TemporaryDirectory() as folder:
        device, simulator = Path(folder) / "device.json", Path(folder) / "simulator.json"
        device.write_bytes(text)
        code, lines = run([program, "--device", SIMULATED, "--ptx",
                           root / "tests" / "simulator" / "ptx", "--json", simulator])
        if not simulator.is_file():
            raise Problem(f"{program} made nothing on {SIMULATED}: {' '.join(lines[-2:])}")
        code, lines = run([program, "--compare", device, simulator])
        refused = refused_in(simulator)
    told = [each for each in map(COMPARED.fullmatch, lines) if each]
    if code != 0 and not told:
        raise Problem(f"{GOLDEN} cannot be compared: {' '.join(lines[-2:])}")
    golden.varies = sum(line.startswith("varies ") for line in lines)
    golden.unmodelled = sum(each.group(2) in refused for each in told)
    for each in told:
        if each.group(2) not in refused:
            golden.add(each.group(2), each.group(0))
    return refused


def add_own(golden, programs, left_out):
    """Takes what the GPU's side says of each program beside the definition."""
    for each in programs:
        name, status = text_of(each, "name"), text_of(each, "status")
        if status not in ("ok", "") and name not in left_out:
            golden.add(name, f"{status} on the GPU, beside the definition: {name} "
                             f"{text_of(each, 'error')}".strip())


def refused_in(report):
    """The names of the programs that the simulator does not model."""
    programs = json.loads(report.read_text(encoding="utf-8"))["programs"]
    return {each["name"] for each in programs if each["status"] == "refused"}


def golden_of(results, build, root):
    """What the golden programs say; None if the folder has no results of them."""
    data = read_bytes(results, GOLDEN) if GOLDEN in results.files else None
    if data is None:
        return None
    golden, refused, programs = Golden(), set(), []
    try:
        text, programs = unpacked(data)
        golden.programs = len(programs)
        results.read_anything = True
        refused = compare(golden, text, build, root)
    except Problem as problem:
        results.damaged.append(str(problem))
    # If the results are from a simulated device, it refused the same programs.
    add_own(golden, programs, refused if results.simulated() else set())
    return golden
