#!/usr/bin/env python3
"""tools/gpu_report on folders as gpu_check leaves them, and on what is left of such folders.

ANNULUS_BUILD names a build tree: the tests that need golden_programs or annulus are skipped if it has
none.
"""

import contextlib
import gzip
import importlib.machinery
import importlib.util
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
BUILD = Path(os.environ.get("ANNULUS_BUILD", TREE / "build"))
PREDICTED = TREE / "tests" / "house" / "predicted.pack"
H100 = "nvidia-h100-80gb-hbm3"

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("gpu_report", str(TREE / "tools" / "gpu_report"))
gpu_report = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_report", loader))
loader.exec_module(gpu_report)

GOLDEN = {"device": "cuda:0", "programs": [{"name": "add.u32", "inputs": "0", "status": "ok",
                                           "words": ["0000000000000001"]}]}


def packed(report):
    return gzip.compress(json.dumps(report).encode(), mtime=0)


class GpuReport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "tree"
        self.build = self.root / "build"
        self.build.mkdir(parents=True)
        for path in ("tools/cmake/packs.cmake", "src/attention/kernels/families.def"):
            (self.root / path).parent.mkdir(parents=True)
            shutil.copy(TREE / path, self.root / path)
        (self.root / "docs").mkdir()
        shutil.copy(HERE / "gpu-backlog.md", self.root / "docs")
        self.document = self.root / "docs" / "performance.md"
        self.document.write_text("before\n\n" + gpu_report.table.BEGIN + gpu_report.table.NOTHING +
                                 gpu_report.table.END + "\n\nafter\n")
        self.kept = self.root / "tools" / "bench" / "results"

    def folder(self, name="good"):
        """A copy of a recorded folder; of "good" with golden results."""
        path = Path(tempfile.mkdtemp(dir=self.root)) / "out"
        shutil.copytree(HERE / name, path)
        if name == "good":
            (path / "golden_device.json.gz").write_bytes(packed(GOLDEN))
        return path

    def run_tool(self, *arguments):
        """(exit code, stdout and stderr)"""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = gpu_report.main([*map(str, arguments), "--root", str(self.root),
                                        "--build", str(self.build)])
            except SystemExit as end:
                code = end.code
        return code, out.getvalue()

    def expect(self, code, arguments, *texts):
        found, text = self.run_tool(*arguments)
        self.assertEqual(found, code, text)
        for each in texts:
            self.assertIn(each, text)
        return text

    def change(self, path, old, new):
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))

    def test_good_folder_is_kept_and_shown(self):
        folder = self.folder()
        self.expect(0, [folder], "1.100 of the first's time, predicted 0.969 (the prediction has",
                    "clusters pay", "1. Micro tests", "2. Questions",
                    "7. First timing", "0 of 1 programs differ; not compared with the simulator",
                    "rows: one_box, pair, clusters", "0.94 to 0.94 times as fast as the best peer")
        kept = self.kept / H100 / "2026-12-01-0123456789ab"
        for name in ("right.jsonl", "fast.jsonl"):
            self.assertEqual((kept / name).read_bytes(), (folder / name).read_bytes())
        table = self.document.read_text()
        self.assertTrue(table.startswith("before\n") and table.endswith("after\n"))
        for row in ("| D128 16k full | wgmma m128 n128 w8 s2 c2 | 628 TFLOP/s | >= 700 (missed) | "
                    "685 TFLOP/s (623 to 721) | 0.92 | 666 TFLOP/s (cudnn) | 0.94 | 0.87 | 5.7 % | "
                    "594 TFLOP/s | 1545 MHz, 692 W |",
                    "| B64 32/8 8k D128 | decode m16 n64 w4 s3 | 2.54 TB/s |",
                    "8.00 us (7.60 to 8.80; outside) | 1.13 |",
                    "flex has no time for D128 16k full: it is not \\| compiled"):
            self.assertIn(row, table)
        self.expect(0, ["--check"])
        self.expect(0, [folder], "docs/performance.md agrees")
        self.document.write_text(table.replace("628", "728"))
        self.expect(1, ["--check"], "--table")
        self.expect(0, ["--table"])
        self.assertEqual(self.document.read_text(), table)
        fast = folder / "fast.jsonl"
        fast.write_text(fast.read_text().replace('"tflops":720.0,', '"error":"no peer",'))
        self.assertNotIn("7. First timing", self.expect(0, [folder]))

    def test_what_is_kept_has_no_path_of_a_machine(self):
        folder = self.folder("failed")
        (self.root / "tests" / "ring").mkdir(parents=True)
        (self.root / "tests" / "ring" / "ring_test.cc").write_text("")
        step = {"step": "test ring", "outcome": "fail",
                "tail": "32/8 heads\n/home/a.b/annulus/tests/ring/ring_test.cc:34: ERROR: \"/opt/kit/x\""}
        call = {"kernels": "/opt/kit/kernels", "libraries": ":/opt/kit:/usr/lib64/libcuda.so.1"}
        with (folder / "right.jsonl").open("a") as file:
            file.write(json.dumps(step) + "\n" + json.dumps({"of": "x", "says": call}) + "\n")
        (folder / "failures.txt").write_text("/srv/annulus/tests/ring/ring_test.cc:34:\n(/opt/kit)\n")
        for _ in range(2):  # the second run finds the results that the first run kept
            self.expect(1, [folder])
        (kept,) = self.kept.glob("*/*")
        self.assertEqual((kept / "failures.txt").read_text(), "tests/ring/ring_test.cc:34:\n(kit)\n")
        lines = (kept / "right.jsonl").read_text().splitlines()
        self.assertEqual(json.loads(lines[-2])["tail"],
                         "32/8 heads\ntests/ring/ring_test.cc:34: ERROR: \"x\"")
        self.assertEqual(json.loads(lines[-1])["says"],
                         {"kernels": "kernels", "libraries": ":kit:libcuda.so.1"})
        for path in (TREE / "tools" / "bench" / "results").glob("nvidia-*/*/*"):
            self.assertIsNone(gpu_report.keeping.PATH.search(path.read_text()), path)

    def test_nothing_that_is_kept_is_overwritten(self):
        folder = self.folder()
        whole = (folder / "fast.jsonl").read_bytes()
        (folder / "fast.jsonl").write_bytes(whole[:-30])
        self.expect(1, [folder], "fast.jsonl ends in the middle of line 12")
        kept = self.kept / H100 / "2026-12-01-0123456789ab"
        self.assertEqual((kept / "fast.jsonl").read_bytes(), whole[:-30])
        (folder / "fast.jsonl").write_bytes(whole)  # the call continued
        self.expect(0, [folder])
        self.assertEqual((kept / "fast.jsonl").read_bytes(), whole)
        self.change(folder / "fast.jsonl", "3.5", "3.45")
        self.expect(0, [folder], "0123456789ab-2")
        self.expect(0, [folder], "0123456789ab-2")
        self.assertEqual((kept / "fast.jsonl").read_bytes(), whole)
        self.assertEqual(len(list(kept.parent.iterdir())), 2)

    def test_what_a_cut_call_has_not_begun_is_not_answered(self):
        folder = self.folder()
        lines = (folder / "right.jsonl").read_text().splitlines()
        begun = [line for line in lines if '"micro pair"' not in line]
        (folder / "right.jsonl").write_text("\n".join(begun) + "\n")
        text = self.expect(0, [folder], "rows: one_box, clusters", "2. Questions (1 steps)")
        self.assertNotIn("1. Micro tests", text)

    def test_a_call_that_does_not_know_its_gpu(self):
        folder = self.folder()
        lines = (folder / "right.jsonl").read_text().splitlines()
        call = {**json.loads(lines[0]), "gpu": "", "doctor": None, "date": "2026-11-30T00:00:00Z"}
        (folder / "right.jsonl").write_text("\n".join([json.dumps(call), *lines[1:]]) + "\n")
        self.expect(0, [folder], f"{H100}/2026-11-30-0123456789ab")

    def test_what_failed(self):
        text = self.expect(
            1, [self.folder("failed")], "pair: fail", "a failure says: peers differ | or counts",
            "registers_and_turns: hang", "no row for `registers_and_turns`",
            "annulus run: 12 rows are wrong", "tests/test_merge: out of time",
            "question pin: has printed results and no line says how it ended",
            "it cannot be launched", "line batch failed, and neither",
            'WITHHELD(wgmma, 128, "sm_90a", "gives wrong results on NVIDIA H100 80GB HBM3")',
            'WITHHELD(wgmma8, 64, "sm_90a", "does not end on NVIDIA H100 80GB HBM3")')
        self.assertNotIn("1. Micro tests", text)
        self.assertIn("rows: one_box", text)

    def test_a_later_call_goes_before_an_earlier_one(self):
        folder = self.folder("failed")
        lines = (HERE / "good" / "right.jsonl").read_text()
        lines = lines.replace('"gpu":"NVIDIA H100 80GB HBM3, 580.159.04, 1980 MHz, 700.00 W"', '"x":1')
        lines = lines.replace('"name":"cuda:0"', '"tuned_key":"NVIDIA H100 80GB HBM3, sm_90a"')
        with (folder / "right.jsonl").open("a") as file:
            file.write(lines)
        text = self.expect(1, [folder], "micro      2 passed, 1 hang", "WITHHELD(wgmma8", H100)
        self.assertNotIn("pair: fail", text)
        self.assertNotIn("WITHHELD(wgmma,", text)

    def test_damaged_lines_are_named_and_left_out(self):
        folder = self.folder()
        lines = (folder / "right.jsonl").read_text().splitlines()
        for number, bad in ((2, '{"of":"micro'), (3, '[1]'), (4, '{"step":1}'), (5, '{"x":NaN}'),
                            (6, "[" * 100000), (7, '{"kind":"gpu_check","schema":3}')):
            lines[number - 1] = bad
        (folder / "right.jsonl").write_text("\n".join(lines) + "\n")
        (folder / "golden_device.json.gz").write_bytes(packed(GOLDEN)[:-9])
        self.expect(1, [folder], *(f"right.jsonl, line {number} is left out" for number in
                                   range(2, 8)), "golden_device.json.gz is damaged",
                    "its schema is 3, and 2 is read", "line       1 passed")

    def test_values_that_are_no_measurements(self):
        folder = self.folder()
        path = folder / "fast.jsonl"
        self.change(path, "[3.4,3.5,3.6]", '[5e-324,1e400,true,"3",null,3.5,-1]')
        self.change(path, '"flash":{', '"\\ud800|<!-- end of measured -->":{')
        self.change(path, '"config":"decode m16 n64 w4 s3"', '"config":{"a":1}')
        self.change(path, '"predicted_micros":8.0', '"predicted_micros":1e999')
        self.expect(0, [folder])
        self.assertIn("628 TFLOP/s", self.document.read_text())
        self.assertEqual(self.document.read_text().count(gpu_report.table.END), 1)
        self.expect(0, ["--check"])

    def test_nothing_readable(self):
        empty = self.root / "empty"
        empty.mkdir()
        self.expect(5, [empty], "holds nothing that can be read")
        (empty / "right.jsonl").write_bytes(b"\0\xff" * 100)
        self.expect(5, [empty], "line 1")
        self.expect(2, [self.root / "absent"], "is no folder")
        self.expect(2, [])
        self.expect(2, [empty, "--check"])

    def test_each_file_alone(self):
        for name, code in (("right.jsonl", 0), ("fast.jsonl", 0), ("golden_device.json.gz", 1),
                           ("failures.txt", 1)):
            with self.subTest(name):
                folder = self.folder()
                (folder / "failures.txt").write_text("== test\nit failed\n")
                for path in folder.iterdir():
                    if path.name != name:
                        path.unlink()
                text = self.expect(code, [folder], "== summary")
                self.assertEqual("not done: no first line" in text, code == 1)

    def test_rehearsals_stay_below_the_build_tree(self):
        for old, new in (('"rehearsal":false', '"rehearsal":true'), ('"cuda:0"', '"sim:sm_90a"'),
                         ('"simulated":false}}', '"simulated":true}}')):
            with self.subTest(new):
                folder = self.folder()
                self.change(folder / "fast.jsonl", old, new)
                before = self.document.read_text()
                self.expect(2, [folder], "--rehearsal")
                self.expect(0, [folder, "--rehearsal"])
                self.assertFalse(self.kept.exists())
                self.assertEqual(self.document.read_text(), before)
                self.assertIn("a rehearsal", (self.build / "gpu_report/performance.md").read_text())
                shutil.rmtree(self.build / "gpu_report")

    def test_two_gpus(self):
        one, other = self.folder(), self.folder()
        for name in ("right.jsonl", "fast.jsonl"):
            self.change(other / name, "NVIDIA H100 80GB HBM3", "NVIDIA H200")
        self.expect(0, [one])
        self.expect(0, [other])
        table = self.document.read_text()
        self.assertLess(table.index("**NVIDIA H100 80GB HBM3**"), table.index("**NVIDIA H200**"))
        shutil.copy(one / "fast.jsonl", other)
        self.expect(1, [other], f"calls are of several GPUs ({H100}, nvidia-h200)")
        self.assertEqual(len(list(self.kept.glob("*/*"))), 2)

    def use(self, *names):
        """Gives the tool programs of the build tree."""
        for name in names:
            if not (BUILD / name).is_file():
                self.skipTest(f"{BUILD / name} is not built")
            (self.build / name).parent.mkdir(exist_ok=True)
            (self.build / name).symlink_to(BUILD / name)

    def test_golden_programs_are_compared_with_the_simulator(self):
        self.use("tests/golden_programs")
        (self.root / "tests").mkdir()
        (self.root / "tests" / "simulator").symlink_to(TREE / "tests" / "simulator")
        made = self.root / "device.json"
        subprocess.run([self.build / "tests" / "golden_programs", "--device", "sim:sm_90a", "--only",
                        "mov.b", "--json", made], check=True, stdout=subprocess.DEVNULL)
        report = json.loads(made.read_text())
        programs = {each["name"]: each for each in report["programs"]}
        # A GPU has a result for a program that the simulator does not model.
        programs["mov.b32 expression"].update(status="ok", words=["0000000000000001"])
        folder = self.folder()
        (folder / "golden_device.json.gz").write_bytes(packed(report))
        self.expect(0, [folder], f"0 of {len(programs)} programs differ; 1 not modelled by the",
                    "3. Golden PTX programs")
        programs["mov.b32 d, {a, b}"]["words"][3] = "0123456789abcdef"
        programs["mov.b64"].update(status="refused", error="no such instruction", words=[])
        (folder / "golden_device.json.gz").write_bytes(packed(report))
        text = self.expect(1, [folder], f"2 of {len(programs)} programs differ: mov (2); 1 not",
                           "first at 3: 0123456789abcdef", "no such instruction")
        kept = [path.read_text() for path in sorted(self.kept.rglob("golden_differences.txt"))]
        self.assertTrue(kept[0].startswith(f"0 of {len(programs)} differ"))
        self.assertIn("no such instruction", kept[1])
        self.assertFalse(list(self.kept.rglob("*.gz")))
        self.assertNotIn("3. Golden PTX programs", text)

    def test_a_pack_of_predictions_does_not_ship(self):
        self.use("annulus")
        folder = self.folder()
        shutil.copy(PREDICTED, folder / "tuned.pack")
        self.expect(1, [folder], "holds predictions")
        self.assertFalse((self.root / "src" / "tuned" / "packs").exists())
        made = self.build / "gpu_report" / "packs" / f"{H100}.pack"
        self.expect(0, [folder, "--rehearsal"], "was written, with 1 results")
        self.assertTrue(made.read_bytes().startswith(b"annulus-tuned-pack "))
        self.expect(0, [folder, "--rehearsal"], "holds all of it")
        made.unlink()
        (folder / "tuned.pack").write_bytes(PREDICTED.read_bytes()[:-5])
        self.expect(1, [folder, "--rehearsal"], "tuned.pack is not taken", "digest does not agree")
        self.assertFalse(made.exists())

    def test_a_measured_pack_ships_if_all_of_it_is_read(self):
        program = self.build / "annulus"
        program.write_text('#!/bin/sh\ncp "$3" "$(eval echo \\"\\${$#}\\")"\nexit $(cat "$0.code")\n')
        program.chmod(0o755)
        folder = self.folder()
        text = PREDICTED.read_text().replace('"predicted":true', '"predicted":false')
        (folder / "tuned.pack").write_text(text.replace(', simulated"', ', measured"'))
        pack = self.root / "src" / "tuned" / "packs" / f"{H100}.pack"
        (self.build / "annulus.code").write_text("3")
        self.expect(1, [folder], "annulus tuned merge ends with 3")
        self.assertFalse(pack.exists())
        (self.build / "annulus.code").write_text("0")
        self.expect(0, [folder], "was written, with 1 results")
        self.assertEqual(pack.read_bytes(), (folder / "tuned.pack").read_bytes())
        (folder / "tuned.pack").write_text(text.splitlines()[0] + "\n")
        self.expect(1, [folder], "holds no results")

    def test_titles_are_those_of_the_backlog(self):
        items = gpu_report.meaning.items_of((TREE / "docs" / "gpu-backlog.md").read_text())
        for title in gpu_report.meaning.ITEMS:
            self.assertTrue(any(item.startswith(title) for item in items.values()), title)

    def test_files_cut_anywhere(self):
        draw = random.Random(11)
        whole = self.folder()
        shutil.copy(HERE / "failed" / "failures.txt", whole)
        shutil.copy(PREDICTED, whole / "tuned.pack")
        for number in range(200):
            folder = self.folder()
            for path in sorted(whole.iterdir()):
                data = bytearray(path.read_bytes())
                if draw.random() < 0.6:
                    del data[draw.randrange(len(data)):]
                if number % 2 and data:
                    data[draw.randrange(len(data))] = draw.randrange(256)
                (folder / path.name).write_bytes(data)
            code, text = self.run_tool(folder)
            self.assertIn(code, (0, 1, 2, 5) if number % 2 else (0, 1, 5), text)
            self.assertEqual(self.run_tool("--check")[0], 0)
            shutil.rmtree(self.kept, ignore_errors=True)
            self.run_tool("--table")


if __name__ == "__main__":
    unittest.main()
