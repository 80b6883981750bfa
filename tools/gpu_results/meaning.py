"""What results mean for the sentences of docs/gpu-backlog.md and tools/simulator/docs/simulator.md."""

import json
import re

from .folder import BROKEN, clean, list_of, positive_of, text_of

# The beginnings of the titles of the items in docs/gpu-backlog.md, with the group of steps that
# answers each item.
ITEMS = {"Micro tests": "micro", "Questions": "question", "Golden PTX programs": "golden",
         "Device tests": "test", "First timing": "timing"}
# The groups with a table that has one row for each step, and the heads of the first columns of
# these tables.
ROWS = {"micro": "test", "question": "question"}
NAME = re.compile(r"`([^`]+)`$")


def cells_of(line):
    """The cells of a line of a table; empty if it is none."""
    line = line.strip()
    if not line.startswith("|") or not line.endswith("|"):
        return []
    return [each.strip().replace("\\|", "|") for each in re.split(r"(?<!\\)\|", line[1:-1])]


def rows_of(text, first=None):
    """The rows of tables whose first cell is a name in backticks: {name: [(head, cell), ...]}. Of all
    tables, or of those alone whose first column is headed `first`."""
    rows, head = {}, []
    for line in text.splitlines():
        cells = cells_of(line)
        if not cells:
            head = []
        elif not head:
            head = cells
        elif NAME.match(cells[0]) and first in (None, head[0]):
            rows[NAME.match(cells[0]).group(1)] = list(zip(head[1:], cells[1:]))
    return rows


def items_of(text):
    """The numbered items before the first section of a document: {number: title}."""
    text = text.partition("\n## ")[0]
    return {int(number): title.rstrip(".,")
            for number, title in re.findall(r"^(\d+)\. \*\*(.+?)\*\*", text, re.MULTILINE)}


def row_lines(rows, name):
    """The row of a name, a line for each cell that says something."""
    if name not in rows:
        return [f"docs/gpu-backlog.md has no row for `{name}`"]
    return [f"{head}: {cell}" if head else cell for head, cell in rows[name] if cell]


def mentions(name, path, text):
    """The lines of a document that name `name` in backticks outside of the row about it."""
    return [f"{path}:{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1)
            if f"`{name}`" in line and not line.startswith(f"| `{name}`")]


def bare(step):
    """The name of a step without its group: "micro pair" is "pair"."""
    return step.partition(" ")[2] or step


class Micro:
    """A micro test that failed, with all that it said."""

    def __init__(self, name, outcome, says):
        self.name, self.outcome = name, outcome
        self.lines = [f"{key}: {text_of(says, key)}" for key in ("tells", "error")
                      if text_of(says, key)]
        if isinstance(says.get("numbers"), dict):
            self.lines.append(f"numbers: {clean(json.dumps(says['numbers']))[:300]}")


def failed_micros(results):
    """The micro tests that failed, by what they said or by how their steps ended."""
    says = {text_of(said.says, "case"): said.says for said in results.of("case")}
    outcomes = {name: text_of(value, "outcome") for name, value in says.items()}
    for step in results.in_group("micro"):
        if outcomes.get(bare(step.name)) in (None, "", "pass"):
            outcomes[bare(step.name)] = step.outcome
    return [Micro(name, outcome, says.get(name, {})) for name, outcome in outcomes.items()
            if outcome in BROKEN]


class Variant:
    def __init__(self, says):
        self.name = " ".join([text_of(says, "config")] +
                             (["drawn"] if says.get("draws") is True else []) +
                             [clean(each) for each in list_of(says, "defines")])
        self.rate = positive_of(says, "bytes_a_clock_of_a_multiprocessor")
        if self.rate:  # a question about copies with tensors of several sizes
            self.name = f"{positive_of(says, 'megabytes') or 0:g} MiB"
        self.measured = positive_of(says, "median_ms")
        self.predicted = positive_of(says, "predicted_ms")
        self.error = text_of(says, "error")
        self.other_bits = says.get("same_bits") is False

    def line(self, first):
        """Its time over that of the first variant, measured and predicted; of copies their rate."""
        if self.rate and not self.error:
            return f"{self.name}: {self.rate:.1f} bytes a clock of a multiprocessor"
        if self.error or not self.measured:
            return f"{self.name}: {self.error or 'no time'}"
        text = f"{self.name}: {self.measured:.4g} ms"
        if self is not first and first.measured:
            measured = self.measured / first.measured
            text += f", {measured:.3f} of the first's time"
            if self.predicted and first.predicted:
                predicted = self.predicted / first.predicted
                text += f", predicted {predicted:.3f}"
                if abs(measured - predicted) > 0.02 and (measured - 1) * (predicted - 1) <= 0:
                    text += " (the prediction has the wrong sign)"
        return text + ("; other bits than the first" if self.other_bits else "")


def questions_of(results):
    """The variants of each question, in order; of a variant that was measured again the last."""
    questions = {}
    for said in results.of("question"):
        variant = Variant(said.says)
        questions.setdefault(text_of(said.says, "question"), {})[variant.name] = variant
    return {name: list(variants.values()) for name, variants in questions.items() if name}


def passed(results, group, golden, text):
    """How many steps of a group passed; 0 if one of them, or of its rows in the backlog, did not.

    A call that is cut short leaves no line of the steps that it has not begun.
    """
    steps = [step for step in results.in_group(group) if step.outcome != "skipped"]
    agrees = group != "golden" or (golden is not None and not golden.note and not golden.count())
    if group == "timing":  # times mean little without the ceilings of the GPU
        agrees = {text_of(said.says, "ceiling") for said in results.of("ceiling")
                  if not text_of(said.says, "error")} >= {"copy", "gemm"}
    wanted = set(rows_of(text, ROWS[group])) if group in ROWS else set()
    agrees = agrees and wanted <= {bare(step.name) for step in steps}
    return len(steps) if agrees and all(step.outcome == "pass" for step in steps) else 0


def answered_items(results, golden, text):
    """The items of the backlog of which all that ran passed, as "1. Micro tests (19 steps)"."""
    counts = {title: passed(results, group, golden, text) for title, group in ITEMS.items()}
    return [f"{number}. {title} ({count} steps)" for number, title in items_of(text).items()
            for known, count in counts.items() if count and title.startswith(known)]


def answered_rows(results, rows):
    """The names of the rows whose micro test or question passed."""
    steps = results.in_group("micro", "question")
    return [bare(step.name) for step in steps if step.outcome == "pass" and bare(step.name) in rows]
