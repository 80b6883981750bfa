"""What tools/proven does with each case; results are kept in FOLDER/results/CASE.json."""

import collections
import json
import tempfile
import time
from pathlib import Path

from . import building, engine, fatbin, forms, mutation, running, sources

# A mutant is first tried in the checked mode. If no fault is reported there, it is also tried in
# the fast mode, where only the answer can show the mistake.
MUTANT_CHECKED = [dict(checked=1, reading="proven", seed=s, landing=l, quantum=q)
                  for s, l, q in ((1, 2, 0), (2, 1, 0), (3, 0, 1), (4, 2, 3))]
ENGINE_SECONDS = 1200  # the longest time of one call of an engine's program
MUTANT_FAST = [dict(options, checked=0) for options in MUTANT_CHECKED]


class Campaign:
    def __init__(self, options, builder, runner, edits):
        self.folder, self.builder, self.runner, self.edits = options.folder, builder, runner, edits

    def result_file(self, case):
        return self.folder / "results" / f"{case.name}.json"

    def keep(self, case, **what):
        path = self.result_file(case)
        path.parent.mkdir(parents=True, exist_ok=True)
        held = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(dict(held, case=case.name, **what), indent=1))

    def each(self, cases, what):
        """Does it for each case; how many went wrong."""
        wrong = 0
        for case in cases:
            try:
                if case.is_engine:
                    wrong += self.each_engine(case, what)
                    continue
                program, ptx = self.builder.build(case)
            except (sources.Missing, building.Failed) as error:
                print(f"{case.name}: NOT BUILT: {error}", flush=True)
                wrong += 1
                continue
            if what in ("run", "all"):
                wrong += self.run(case, program, ptx)
            if what in ("mutants", "all"):
                wrong += self.mutate(case, program, ptx)
        return wrong

    def each_engine(self, case, what):
        program = engine.build(self.builder, case, self.runner.jobs)
        if what not in ("run", "all"):
            return 0
        environment = dict(self.runner.environment(dict(checked=1, reading="proven")), CUDA_VISIBLE_DEVICES="0")
        found, seconds = engine.run(case, program, environment, ENGINE_SECONDS)
        self.keep(case, operators=found, cpu_seconds=seconds)
        bad = engine.failures(case, found)
        right, cases = (sum(of[name] for of in found.values()) for name in ("right", "cases"))
        print(f"{case.name}: {right} of {cases} right, {bad} failures; {seconds} s of CPU", flush=True)
        return bad != 0

    def run(self, case, program, ptx):
        begin = time.time()
        sets = list(running.option_sets())
        outcomes = self.runner.each(program, case.arguments, sets)
        texts = [ptx.read_text()] if ptx else fatbin.texts(program.read_bytes())
        counts = collections.Counter()
        for text in texts:
            counts.update(forms.forms(text))
        self.keep(case, runs=[dict(options, **outcome.row()) for options, outcome in zip(sets, outcomes)],
                  forms=dict(sorted(counts.items())))
        proven = [outcome for options, outcome in zip(sets, outcomes) if options["reading"] == "proven"]
        bad = [outcome for outcome in proven if outcome.verdict != "right"]
        strict = collections.Counter(
            outcome.kind or outcome.verdict for options, outcome in zip(sets, outcomes)
            if options["reading"] == "strict" and outcome.verdict != "right")
        print(f"{case.name}: proven {len(proven) - len(bad)}/{len(proven)} right; strict: "
              f"{dict(strict) or 'all right'}; {time.time() - begin:.0f} s", flush=True)
        for verdict, detail in sorted({(o.verdict, o.detail) for o in bad})[:3]:
            print(f"    {verdict}: {detail[:300]}", flush=True)
        return len(bad) != 0

    def mutate(self, case, program, ptx):
        rows, counts = [], collections.Counter()
        keys = self.edits.get("mutants", {}).get(case.name, [])
        whole = self.runner.each(program, case.arguments, MUTANT_CHECKED) if keys else []
        if any(outcome.verdict != "right" for outcome in whole):
            # A fault of the unchanged program would be taken for a fault of each mutant.
            self.keep(case, mutants=[])
            print(f"{case.name}: mutants are not judged, as the whole program is not silent", flush=True)
            return 1
        redundant = self.edits.get("redundant", {}).get(case.name, {})
        for key in keys:
            name, _, place = key.partition(":")
            try:
                row = self.one_mutant(case, program, ptx, name, int(place or 1))
            except mutation.NoPlace as error:
                print(f"    {case.name} {key}: NO PLACE: {error}", flush=True)
                counts["no place"] += 1
                continue
            row["redundant"] = redundant.get(key, "")
            counts["redundant" if row["redundant"] else row["verdict"]] += 1
            rows.append(row)
            if row["verdict"] != "named":
                print(f"    {case.name} {key}: {row['verdict']} {row['detail'][:200]}", flush=True)
        self.keep(case, mutants=rows)
        print(f"{case.name}: mutants {dict(counts)}", flush=True)
        return counts["missed"] + counts["no place"] + counts["not reached"] != 0

    def one_mutant(self, case, program, ptx, name, place):
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            target = Path(scratch) / (case.name + (".ptx" if ptx else ""))
            mutation.write(program, ptx, self.edits["edit"][name], place, target,
                           case.table.get("entry", ""))
            arguments = [str(target), *case.arguments[1:]] if ptx else case.arguments
            to_run = program if ptx else target
            outcomes = self.runner.each(to_run, arguments, MUTANT_CHECKED)
            verdict = mutation.judge(outcomes)
            if verdict != "named":
                outcomes += self.runner.each(to_run, arguments, MUTANT_FAST)
                verdict = mutation.judge(outcomes)
            if verdict == "missed":
                # If a trap at that place is not noticed either, this problem never reaches the
                # place.
                mutation.write(program, ptx, dict(self.edits["edit"][name], put=r"trap;\n\g<0>"), place,
                               target, case.table.get("entry", ""))
                if self.runner.run(to_run, arguments, MUTANT_CHECKED[0]).verdict == "right":
                    verdict = "not reached"
        shown = next((o for o in outcomes if o.verdict == "fault"), None) or \
            next((o for o in outcomes if o.verdict != "right"), outcomes[0])
        return dict(edit=name, place=place, verdict=verdict, kind=shown.kind, detail=shown.detail,
                    named=sum(o.verdict == "fault" for o in outcomes), runs=len(outcomes))
