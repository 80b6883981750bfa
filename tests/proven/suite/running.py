"""Runs a program under sets of the simulator's options, and says what came of it."""

import itertools
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# Seeds, with the time at which asynchronous effects become visible (0: random, 1: as early as
# possible, 2: as late as possible) and the turns of warps. With a quantum of 1, another warp gets
# its turn after each instruction.
ORDERS = [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 0, 1), (4, 1, 7), (5, 2, 1), (6, 0, 0), (7, 2, 0)]
STRICT_ORDERS = ORDERS[:4]


def option_sets():
    """The matrix: fast and checked, 8 orders in the proven reading and 4 in the strict one."""
    for reading, orders in (("proven", ORDERS), ("strict", STRICT_ORDERS)):
        for checked, (seed, landing, quantum) in itertools.product((0, 1), orders):
            yield dict(checked=checked, reading=reading, seed=seed, landing=landing, quantum=quantum)


def text_of(options):
    return ",".join(f"{name}={value}" for name, value in options.items())


@dataclass
class Outcome:
    verdict: str  # right, wrong, fault, refused (at load), timeout, failed
    kind: str = ""  # the kind of a fault
    detail: str = ""

    def row(self):
        return dict(verdict=self.verdict, kind=self.kind, detail=self.detail)


class Runner:
    def __init__(self, simulator, seconds, jobs):
        self.simulator, self.seconds, self.jobs = simulator, seconds, jobs

    def environment(self, options):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ANNULUS_")}
        return dict(kept, LD_LIBRARY_PATH=str(self.simulator),
                    ANNULUS_SIMULATOR_OPTIONS=text_of(dict(options, threads=1)))

    def run(self, program, arguments, options):
        try:
            done = subprocess.run([str(program), *arguments], env=self.environment(options),
                                  capture_output=True, text=True, errors="replace", timeout=self.seconds)
        except subprocess.TimeoutExpired:
            return Outcome("timeout", detail=f"ran longer than {self.seconds} s")
        faults = [line[6:] for line in done.stdout.splitlines() if line.startswith("FAULT {")]
        if faults:
            fault = json.loads(faults[-1])
            kind = fault.get("kind", "")
            detail = fault.get("message", "")
            return Outcome("refused" if kind == "module" else "fault", kind, detail[:600])
        answers = [line.split() for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
        if done.returncode in (0, 1) and answers:
            right = done.returncode == 0 and all(words[1] == "right" for words in answers)
            return Outcome("right" if right else "wrong", detail=" ".join(answers[-1][1:]))
        return Outcome("failed", detail=(done.stdout + done.stderr).strip()[-400:] or
                       f"ended with {done.returncode}")

    def each(self, program, arguments, sets):
        """Outcomes in the order of `sets`, several programs at a time."""
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda options: self.run(program, arguments, options), sets))


def default_simulator(root):
    return Path(root) / "build" / "simulator"
