"""llama.cpp's CUDA backend, built from its sources with its own test of operators, and run.

programs.toml says which files are compiled and which operators are run, in parts. The program
compares each case with llama.cpp's CPU backend and writes one line for it. A fault of a kernel ends
the program: the case it ran is counted as refused, and the program is started anew with the others.
"""

import collections
import csv
import hashlib
import io
import os
import re
import resource
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import building

# The types of K and V that attention may have, and the types that are compiled for both, as in
# ggml's build.
TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16", "F16")
COMPILED = ("F16", "BF16", "Q4_0", "Q8_0")

LINE = re.compile(r"\b([A-Z0-9_]+\(.*?\)): (.*)$")  # an error is before the name, if there is one
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def attention_types():
    return [f"-DGGML_CUDA_FA_{key}_{value}={int(key == value and key in COMPILED)}"
            for key in TYPES for value in TYPES]


def commands(builder, case):
    """The program, and {object: (source, command)} of all that is compiled for it."""
    table = case.table
    paths = {key: os.path.realpath(path) for key, path in builder.paths(table).items()}
    root = Path(table["root"].format(**paths))
    sources = [path for pattern in table["units"] for path in sorted(root.glob(pattern))]
    sources += [building.HERE / name for name in table["own"]]
    folder = builder.folder / "objects" / case.program
    both = [*(f"-D{text}" for text in table["defines"]),
            *(f"-I{root / text}" for text in table["includes"]), f"-I{building.HERE / case.program}"]
    code = f"compute_{table['architecture']}"
    nvcc = [builder.nvcc, "-std=c++17", "-O2", "-w", "--no-compress", *table["nvcc"], "-gencode",
            f"arch={code},code={code}", *both, *attention_types()]
    host = {".c": ["gcc", "-std=gnu11"], ".cpp": ["g++", "-std=c++17"]}
    found = {}
    for path in sources:
        begin = nvcc if path.suffix == ".cu" else [*host[path.suffix], "-O2", "-w", "-march=native", *both]
        name = path.relative_to(root if path.is_relative_to(root) else building.HERE)
        target = folder / f"{name}.o"
        found[target] = (path, [*begin, "-c", str(path), "-o", str(target)])
    return builder.folder / "bin" / case.program, found


def key_of(path, command):
    own = path.read_bytes() if path.is_relative_to(building.HERE) else b""  # other files are pinned
    return hashlib.sha256("\0".join(command).encode() + own).hexdigest()


def compile_one(target, path, command):
    stamp, key = target.with_suffix(".key"), key_of(path, command)
    if target.exists() and stamp.exists() and stamp.read_text() == key:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise building.Failed(f"{path}: the compiler failed:\n{(done.stderr + done.stdout)[:2000]}")
    stamp.write_text(key)
    print(f"  compiled {path.name} in {time.time() - begin:.0f} s", flush=True)
    return True


def build(builder, case, jobs):
    program, units = commands(builder, case)
    with ThreadPoolExecutor(jobs) as pool:
        fresh = list(pool.map(lambda item: compile_one(item[0], *item[1]), units.items()))
    if any(fresh) or not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        stubs = Path(builder.nvcc).resolve().parent.parent / "lib64" / "stubs"
        done = subprocess.run([builder.nvcc, "-cudart", "shared", "-o", str(program), *map(str, units),
                               f"-L{stubs}", "-lcuda", "-lpthread"], capture_output=True, text=True)
        if done.returncode:
            raise building.Failed(f"{case.program}: linking failed:\n{done.stderr[-2000:]}")
    return program


def spread(cases, most):
    """At most so many of the cases, at equal distances."""
    return [cases[i * len(cases) // most] for i in range(most)] if len(cases) > most else cases


class Tests:
    """The cases of the program, and runs of some of them in the environment of the simulator."""

    def __init__(self, program, environment, seconds):
        self.program, self.environment, self.seconds = program, environment, seconds
        self.cases = collections.defaultdict(dict)  # by operator, in the program's order, each once
        for row in csv.DictReader(io.StringIO(self.start(["support", "--output", "csv"])[0])):
            if row["supported"] == "1":
                self.cases[row["op_name"]][f"{row['op_name']}({row['op_params']})"] = None

    def start(self, arguments):
        begin = [str(self.program), *arguments, "-b", "CUDA0"]
        try:
            done = subprocess.run(begin, env=self.environment, capture_output=True, text=True,
                                  errors="replace", timeout=self.seconds)
            return done.stdout, done.stderr, ""
        except subprocess.TimeoutExpired as late:
            texts = [(text or b"").decode(errors="replace") for text in (late.stdout, late.stderr)]
            return *texts, f"ran longer than {self.seconds} s"

    def run(self, cases):
        """{case: right, wrong, or why it did not end}"""
        verdicts, left = {}, list(cases)
        while left:
            written, errors, late = self.start(["-o", ",".join(left)])
            for line in COLOUR.sub("", written).splitlines():
                match = LINE.search(line)
                if match and match[1] in left and not match[2].startswith("not supported"):
                    verdicts[match[1]] = "right" if match[2].endswith("OK") else "wrong"
                if match and match[1] in left:
                    left.remove(match[1])
            if left:
                lines = [line for line in errors.splitlines() if line.startswith("annulus simulator")]
                reason = late or (lines or [errors.strip()[-300:] or "the program ended early"])[-1]
                verdicts[left.pop(0)] = reason
        return verdicts


def failures(case, found):
    """How many cases of a part were wrong, or refused for a reason that programs.toml does not name."""
    reasons = [why for of in found.values() for why in of["refused"].values()]
    return sum(of["wrong"] for of in found.values()) + sum(
        not any(re.search(known, why) for known in case.table["explained"]) for why in reasons)


def run(case, program, environment, seconds):
    """What came of each operator of a part: {operator: {right, wrong, refused: {case: why}}}."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    tests = Tests(program, environment, seconds)
    found = {}
    for operator in case.table["operators"]:
        left_out = case.table["left_out"].get(operator)
        cases = [name for name in tests.cases[operator] if not left_out or not re.search(left_out, name)]
        begin = time.time()
        most = case.table["most_of"].get(operator, case.table["most"])
        verdicts = tests.run(spread(cases, most))
        counts = collections.Counter(verdicts.values())
        refused = {name: why for name, why in verdicts.items() if why not in ("right", "wrong")}
        found[operator] = dict(of=len(tests.cases[operator]), cases=len(verdicts), right=counts["right"],
                               wrong=counts["wrong"], refused=refused)
        print(f"  {operator}: {counts['right']} of {len(verdicts)} right, {counts['wrong']} wrong, "
              f"{len(refused)} refused; {time.time() - begin:.0f} s", flush=True)
        for name, why in [*((n, w) for n, w in verdicts.items() if w == "wrong"), *refused.items()][:5]:
            print(f"    {name}: {why[:400]}", flush=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found, round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
