"""The tables of docs/proven.md, from the results of FOLDER/results."""

import collections
import json
import re

from . import forms


def load(cases, folder):
    found = {}
    for case in cases:
        path = folder / "results" / f"{case.name}.json"
        if path.exists():
            found[case.name] = json.loads(path.read_text())
    return found


def version(case, programs):
    if "version" in case.table:
        return case.table["version"]
    source = programs["source"][case.table["sources"][0]]
    return source["version"]


def share(runs, **wanted):
    rows = [row for row in runs if all(row[key] == value for key, value in wanted.items())]
    return f"{sum(row['verdict'] == 'right' for row in rows)}/{len(rows)}"


def faults(runs, reading):
    kinds = collections.Counter(row["kind"] or row["verdict"] for row in runs
                                if row["reading"] == reading and row["verdict"] != "right")
    return ", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "none"


def case_row(case, result, programs):
    runs = result.get("runs", [])
    mutants = [row for row in result.get("mutants", []) if not row["redundant"]]
    verdicts = collections.Counter(row["verdict"] for row in mutants)
    loads = "no" if all(row["verdict"] == "refused" for row in runs) else "yes"
    return [case.table["library"], case.name, version(case, programs), loads,
            share(runs, reading="proven", checked=0), share(runs, reading="proven", checked=1),
            faults(runs, "proven"), faults(runs, "strict"),
            f"{verdicts['named']} / {verdicts['wrong']} / {verdicts['missed']}"]


def operator_rows(case, result):
    return [[case.table["library"], case.name, f"`{name}`", of["of"], of["cases"], of["right"], of["wrong"],
             len(of["refused"])] for name, of in result.get("operators", {}).items()]


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def shipped_texts(folder):
    """PTX of Annulus's own kernels, out of the files of a folder of compiled kernels.

    Tests leave kernels of changed templates there as well, hence the templates that most were of.
    """
    files = [path.read_bytes() for path in sorted(folder.glob("*.kernel"))]
    files = [data for data in files if b"entry annulus::kernels::" in data[:4000] and
             b"image ptx" in data[:4000]]
    def templates(data):
        return re.search(rb"\ntemplates (\w+)", data[:4000]).group(1)
    most = collections.Counter(map(templates, files)).most_common(1)
    for data in files:
        if templates(data) != most[0][0]:
            continue
        at = data.find(b"\n.version ")
        if at > 0:
            yield data[at:].split(b"\0")[0].decode(errors="replace")


def confirmed(results, libraries):
    """Which libraries have each form and each protocol in a program that was right everywhere."""
    by_form, by_protocol = collections.defaultdict(set), collections.defaultdict(set)
    for name, result in results.items():
        runs = [row for row in result.get("runs", []) if row["reading"] == "proven"]
        if not runs or any(row["verdict"] != "right" for row in runs):
            continue
        for form in result["forms"]:
            by_form[form].add(libraries[name])
        for protocol in forms.protocols(result["forms"]):
            by_protocol[protocol].add(libraries[name])
    return by_form, by_protocol


def form_table(shipped, by):
    rows = []
    for form, count in sorted(shipped.items()):
        names = sorted(by.get(form, ()))
        word = "confirmed" if len(names) > 1 else "by one" if names else "by none"
        rows.append([f"`{form}`", count, word, ", ".join(names)])
    return rows


def mutant_count(results):
    verdicts = collections.Counter(row["verdict"] for result in results.values()
                                   for row in result.get("mutants", []) if not row["redundant"])
    return (f"{verdicts.total()} mutants: {verdicts['named']} are named, {verdicts['wrong']} shown by a wrong "
            f"answer, {verdicts['missed']} missed.")


def put_into(path, tables, count):
    """Replaces the tables of a document by those with the same head, and the count of mutants.

    A table of which nothing was run here stays."""
    text = path.read_text()
    for table in tables:
        head = table.split("\n")[0]
        if head not in text:
            raise SystemExit(f"proven: {path} has no table that begins with {head}")
        begin = text.index(head)
        text = text[:begin] + table + text[text.index("\n\n", begin):]
    if not count.startswith("0 "):
        text = re.sub(r"^\d+ mutants: .*$", count, text, flags=re.M)
    path.write_text(text)


def write(cases, programs, folder, kernels, into):
    results = load(cases, folder)
    libraries = {case.name: case.table["library"] for case in cases}
    run = [case for case in cases if case.name in results]
    rows = [case_row(case, results[case.name], programs) for case in run if not case.is_engine]
    tables = []
    if rows:
        tables.append(markdown(["library", "case", "version", "loads", "fast: right", "checked: right",
                                "faults, proven", "faults, strict", "mutants named / wrong / missed"], rows))
    operators = [row for case in run if case.is_engine for row in operator_rows(case, results[case.name])]
    if operators:
        tables.append(markdown(["engine", "case", "operator", "tests of it", "run", "right", "wrong", "refused"],
                               operators))
    by_form, by_protocol = confirmed(results, libraries)
    shipped, shipped_protocols = collections.Counter(), collections.Counter()
    if kernels:
        for ptx in shipped_texts(kernels):
            counts = forms.forms(ptx)
            shipped.update(counts.keys())
            shipped_protocols.update(forms.protocols(counts))
        of_protocols = form_table({name: shipped_protocols[name] for name in forms.PROTOCOLS}, by_protocol)
        tables.append(markdown(["protocol", "kernels of Annulus", "", "by"],
                               [[row[0].strip("`"), *row[1:]] for row in of_protocols]))
        tables.append(markdown(["form", "kernels of Annulus", "", "by"], form_table(shipped, by_form)))
    text = "\n\n".join([*tables, mutant_count(results)])
    print(text)
    whole = dict(cases=[dict(zip(("library", "case", "version", "loads", "fast", "checked",
                                  "faults_proven", "faults_strict", "mutants"), row)) for row in rows],
                 forms={form: sorted(by) for form, by in sorted(by_form.items())},
                 protocols={name: sorted(by) for name, by in sorted(by_protocol.items())},
                 shipped=dict(sorted(shipped.items())))
    (folder / "results.json").write_text(json.dumps(whole, indent=1))
    (folder / "table.md").write_text(text + "\n")
    if into:
        put_into(into, tables, mutant_count(results))
