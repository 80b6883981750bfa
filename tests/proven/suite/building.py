"""Compiles the mains of tests/proven with the libraries' sources."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import mutation, sources

HERE = Path(__file__).resolve().parent.parent


@dataclass
class Case:
    """One variant of a program: what is compiled, and what one line of the table is about."""
    name: str
    program: str
    table: dict
    arguments: list = field(default_factory=list)

    @property
    def is_triton(self):
        return "triton" in self.table

    @property
    def is_engine(self):
        return "operators" in self.table


class Failed(Exception):
    """Something that did not compile; the message has the compiler's last lines."""


def cases_of(programs):
    found = []
    for name, table in programs["program"].items():
        for variant in table["variants"]:
            found.append(Case(f"{name}_{variant['name']}", name, dict(table, **variant)))
    for name, table in programs["engine"].items():
        for number, operators in enumerate(table["parts"], 1):
            found.append(Case(f"{name}_part_{number}", name, dict(table, operators=operators)))
    return found


def included(main):
    """The file, and those of this folder that it or they include."""
    found, left = [], [main]
    while left:
        path = left.pop()
        if path not in found and path.is_file():
            found.append(path)
            names = re.findall(r'^#include ["<]([^">]+)[">]', path.read_text(), re.M)
            left += [folder / name for name in names for folder in (HERE, HERE / "include")]
    return sorted(found)


class Builder:
    def __init__(self, programs, folder, nvcc, edits):
        self.programs, self.folder, self.nvcc, self.edits = programs, folder, nvcc, edits

    def provide(self, name):
        return sources.provide(name, self.programs["source"][name], self.folder)

    def paths(self, table):
        return {name: str(self.provide(name)) for name in table.get("sources", [])}

    def build(self, case):
        """The program of a case, and the PTX file beside it where that is a file."""
        if case.is_triton:
            return self.build_triton(case)
        program = self.compile(case.name, case.table)
        for name in case.table.get("repair", []):
            repaired, part = (self.folder / "bin" / (case.name + end) for end in (".repaired", ".part"))
            try:
                mutation.write(program, None, self.edits["edit"][name], 0, part, case.table.get("entry", ""))
            except mutation.NoPlace as error:
                raise Failed(f"{case.name}: the repair does not fit: {error}") from None
            program = part.rename(repaired)  # another call may be running the old program
        return program, None

    def compile(self, name, table):
        paths = {key: os.path.realpath(path) for key, path in self.paths(table).items()}
        command = [self.nvcc, "-std=c++20", "-O2", "-w", "-DNDEBUG", "--no-compress", "-cudart", "shared",
                   "--expt-relaxed-constexpr", "--expt-extended-lambda", f"-I{HERE}", f"-I{HERE}/include"]
        architecture = f"compute_{table['architecture']}"
        command += ["-gencode", f"arch={architecture},code={architecture}"]
        command += [f"-D{text.format(**paths)}" for text in table.get("defines", [])]
        if "variant" in table:
            command.append(f"-DVARIANT={table['variant']}")
        command += [f"-I{text.format(**paths)}" for text in table.get("includes", [])]
        command += [str(HERE / table["main"])]
        key = self.key(command, HERE / table["main"])
        program = self.folder / "bin" / name
        stamp = program.with_suffix(".key")
        if program.exists() and stamp.exists() and stamp.read_text() == key:
            return program
        program.parent.mkdir(parents=True, exist_ok=True)
        begin = time.time()
        stubs = Path(self.nvcc).resolve().parent.parent / "lib64" / "stubs"
        done = subprocess.run(command + ["-o", str(program), f"-L{stubs}", "-lcuda", "-ldl"],
                              capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{name}: nvcc failed:\n{(done.stderr + done.stdout)[:2000]}")
        stamp.write_text(key)
        print(f"  compiled {name} in {time.time() - begin:.0f} s", flush=True)
        return program

    def key(self, command, main):
        """Changes with the command and with all files of ours that it reads."""
        texts = [path.read_bytes() for path in included(main)]
        return hashlib.sha256("\0".join(command).encode() + b"".join(texts)).hexdigest()

    def build_triton(self, case):
        """Triton's own compiler runs where Python finds it unpacked; the launcher is one for all."""
        table = case.table
        architecture = "sm_" + table["architecture"]
        folder = self.folder / "triton" / architecture
        script = HERE / table["triton"]
        stamp, key = folder / "key", hashlib.sha256(script.read_bytes()).hexdigest()
        if not stamp.exists() or stamp.read_text() != key:
            shutil.rmtree(folder, ignore_errors=True)
            environment = dict(os.environ, PYTHONPATH=str(self.provide("triton")),
                               TRITON_CACHE_DIR=str(self.folder / "triton" / "cache"))
            done = subprocess.run([sys.executable, str(script), str(folder), architecture],
                                  env=environment, capture_output=True, text=True)
            if done.returncode:
                raise Failed(f"{case.name}: Triton failed:\n{done.stderr[-1500:]}")
            stamp.write_text(key)
        ptx = folder / f"{table['function']}.ptx"
        case.arguments = [str(ptx), table["function"], table["architecture"][0]]
        launcher = dict(main=table["main"], architecture="90a")  # the launcher contains no kernel
        return self.compile("triton", launcher), ptx
