"""The measured times of all kept results, as a section of docs/performance.md."""

import re
import statistics

from .folder import (BROKEN, LINES, Problem, clean, list_of, number_of, object_of, positive_of,
                     read_folder, text_of, times_of)
from .keeping import origin_of

BEGIN = "<!-- measured on GPUs: made by tools/gpu_report -->\n"
END = "<!-- end of measured -->"
NOTHING = ("\nNo GPU has been measured yet: [gpu-backlog.md](gpu-backlog.md) lists what to measure, "
           "and `tools/gpu_report` fills\nthis section.\n\n")
HEAD = ("problem", "configuration", "measured", "bar", "predicted", "measured over predicted",
        "best peer", "over the best peer", "share of the ceiling", "spread", "cold L2", "clocks")
MOST_NAMED = 8
OURS = "annulus"


def cell(text):
    """Text as a cell of a table, or as prose, in which it can be no markup."""
    return clean(text).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def significant(number, digits=3):
    """A number with so many digits and without an exponent."""
    if number == 0:
        return "0"
    magnitude = len(f"{abs(number):.0f}") if abs(number) >= 1 else 0
    return f"{number:.{max(0, digits - magnitude)}f}" if abs(number) >= 1e-3 else f"{number:.2g}"


class Unit:
    """How times of a problem are shown: as a rate of useful work, or in microseconds."""

    def __init__(self, problem):
        flop, data = positive_of(problem, "useful_flop"), positive_of(problem, "least_bytes")
        computes = text_of(problem, "kind") in ("attention", "chunk", "")
        self.name, self.work, self.ceiling = "us", None, None
        if computes and flop:
            self.name, self.work, self.ceiling = "TFLOP/s", flop / 1e12, "gemm"
        elif data:
            self.name, self.work, self.ceiling = "TB/s", data / 1e12, "copy"

    def value(self, milliseconds):
        """The rate, or the microseconds; None without a time."""
        if not milliseconds:
            return None
        return self.work / (milliseconds / 1e3) if self.work else milliseconds * 1e3

    def shown(self, milliseconds):
        value = self.value(milliseconds)
        return "" if value is None else f"{significant(value)} {self.name}"


def middle(times):
    return statistics.median(times) if times else None


def over(ours, theirs):
    """How many times as fast as theirs ours is."""
    return f"{theirs / ours:.2f}" if ours and theirs else ""


class Timing:
    """One problem that was measured. Times are milliseconds, or None."""

    def __init__(self, says):
        self.says = says
        self.name, self.config = text_of(says, "name"), text_of(says, "config")
        self.unit = Unit(says)
        programs = object_of(says, "programs")
        own = object_of(programs, OURS)
        self.rounds = times_of(own, "warm_ms")
        self.warm, self.cold = middle(self.rounds), middle(times_of(own, "cold_ms"))
        self.error = text_of(own, "error")
        peers = {clean(name): value for name, value in programs.items()
                 if name != OURS and isinstance(value, dict)}
        self.peers = {name: middle(times_of(value, "warm_ms")) for name, value in peers.items()}
        self.peer_errors = {name: text_of(value, "error") for name, value in peers.items()
                            if not self.peers[name]}
        micros = positive_of(says, "predicted_micros")
        self.predicted = micros / 1e3 if micros else None
        limits = times_of(says, "predicted_range")
        self.range = [limit / 1e3 for limit in limits] if len(limits) == 2 else []

    def best_peer(self):
        """(milliseconds, name), or None."""
        return min(((ms, name) for name, ms in self.peers.items() if ms), default=None)

    def measured(self):
        if self.warm:
            return self.unit.shown(self.warm)
        return f"no time: {self.error[:80]}" if self.error else "no time"

    def bar(self, ceilings):
        """The least TFLOP/s, or the least share of a copy's rate."""
        wanted = object_of(self.says, "bars")
        value = self.unit.value(self.warm) if self.warm else None
        least, unit = positive_of(wanted, "tflops"), ""
        if self.unit.name != "TFLOP/s":
            least, unit = positive_of(wanted, "share_of_copy"), " of a copy"
            copy = ceilings.get("copy")
            value = value / copy if value and copy else None
        if not least:
            return ""
        missed = value is not None and value < least
        return f">= {significant(least)}{unit}" + (" (missed)" if missed else "")

    def prediction(self):
        if not self.predicted:
            return ""
        shown = self.unit.shown(self.predicted)
        if not self.range:
            return shown
        ends = sorted(self.unit.value(limit) for limit in self.range)
        outside = self.warm and not min(self.range) <= self.warm <= max(self.range)
        return f"{shown} ({significant(ends[0])} to {significant(ends[1])}" + (
            "; outside)" if outside else ")")

    def share(self, ceilings):
        ceiling = ceilings.get(self.unit.ceiling)
        return f"{self.unit.value(self.warm) / ceiling:.2f}" if ceiling and self.warm else ""

    def spread(self):
        """The range of the rounds in percent of their median."""
        if len(self.rounds) < 2:
            return ""
        return f"{100 * (max(self.rounds) - min(self.rounds)) / self.warm:.1f} %"

    def clocks(self):
        states = [each for each in list_of(self.says, "state") if isinstance(each, dict)]
        state = states[-1] if states else {}
        megahertz, watts = positive_of(state, "sm_mhz"), positive_of(state, "watts")
        parts = [f"{megahertz:.0f} MHz"] if megahertz else []
        return ", ".join(parts + ([f"{watts:.0f} W"] if watts else []))

    def row(self, ceilings):
        peer = self.best_peer()
        cells = (self.name, self.config, self.measured(), self.bar(ceilings), self.prediction(),
                 over(self.warm, self.predicted),
                 f"{self.unit.shown(peer[0])} ({peer[1]})" if peer else "",
                 over(self.warm, peer[0]) if peer else "", self.share(ceilings), self.spread(),
                 self.unit.shown(self.cold), self.clocks())
        return "| " + " | ".join(cell(each) for each in cells) + " |"


def timings_of(results):
    """One Timing for each problem: the last one, if a later call measured it again. Where a call
    measures it again for a peer that was late, the peers of the first time are kept."""
    last = {}
    for said in results.of("programs"):
        says = said.says
        key = (text_of(says, "kind"), text_of(says, "name"))
        if says.get("again") is True and key in last:
            earlier = object_of(last[key].says, "programs")
            later = {name: value for name, value in object_of(says, "programs").items()
                     if times_of(object_of({"of": value}, "of"), "warm_ms")}
            says = {**says, "programs": {**earlier, **later}}
        if key[1]:
            last[key] = Timing(says)
    return list(last.values())


def ceilings_of(results):
    """The highest rates of a plain copy (TB/s) and of a product of matrices (TFLOP/s)."""
    ceilings, by = {}, ""
    for said in results.of("ceiling"):
        kind = text_of(said.says, "ceiling")
        rate = positive_of(said.says, {"copy": "terabytes_a_second", "gemm": "tflops"}.get(kind))
        if rate and rate > ceilings.get(kind, 0):
            ceilings[kind] = rate
            by = text_of(said.says, "by") if kind == "gemm" else by
    return ceilings, by


def ceilings_text(results):
    ceilings, by = ceilings_of(results)
    parts = [f"a copy has {significant(ceilings['copy'])} TB/s"] if "copy" in ceilings else []
    if "gemm" in ceilings:
        parts.append(f"a product of matrices {significant(ceilings['gemm'])} TFLOP/s" +
                     (f" ({by})" if by else ""))
    return " and ".join(parts)


def outcomes_text(results):
    """How many of the steps of each group passed, and which failed."""
    counts = []
    for group in dict.fromkeys(step.group for step in results.steps.values()):
        steps = [step for step in results.in_group(group) if step.outcome != "skipped"]
        passed = sum(step.outcome == "pass" for step in steps)
        if steps:
            counts.append(f"{group} {passed} of {len(steps)}")
    text = "passed: " + ", ".join(counts) if counts else "no step ended"
    broken = [f"{step.name} ({step.outcome})" for step in results.steps.values()
              if step.outcome in BROKEN]
    if broken:
        text += "; failed: " + ", ".join(broken[:MOST_NAMED])
        text += f" and {len(broken) - MOST_NAMED} more" if len(broken) > MOST_NAMED else ""
    return text


def without_time(timings):
    """A sentence for each reason why a peer has no time, with the problems that it concerns."""
    reasons = {}
    for timing in timings:
        for peer, error in timing.peer_errors.items():
            reasons.setdefault((peer, error[:100]), []).append(timing.name)
    return [f"{peer} has no time for {', '.join(names)}: {error or 'no reason is given'}."
            for (peer, error), names in reasons.items()]


def paragraph(folder, link):
    """What one folder of results says: a line about it, then its table if anything was timed."""
    results = read_folder(folder)
    origin = origin_of(results)
    driver = f"driver {origin.driver}, " if origin.driver else ""
    simulated = ("**a rehearsal on a simulated device, which says nothing of a GPU**; "
                 if results.simulated() else "")
    parts = [f"commit {origin.commit}, {origin.date}", outcomes_text(results)]
    parts += [text for text in [ceilings_text(results)] if text] + results.damaged
    lines = [f"**{cell(origin.gpu)}** ([raw]({link})): {simulated}{cell(driver)} "
             f"{cell('; '.join(parts))}.".replace("  ", " "), ""]
    timings = timings_of(results)
    if timings:
        ceilings, _ = ceilings_of(results)
        lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
        lines += [timing.row(ceilings) for timing in timings] + [""]
        notes = without_time(timings)
        lines += [cell(" ".join(notes)), ""] if notes else []
    return "\n".join(lines)


def kept_folders(root):
    """The folders GPU/DATE-COMMIT below `root` that hold results, of each GPU the newest first."""
    folders = sorted(path for path in root.glob("*/*")
                     if any((path / name).is_file() for name in LINES))
    return sorted(sorted(folders, key=lambda path: path.name, reverse=True),
                  key=lambda path: path.parent.name)


def section(root, link):
    """The text between the marks, of the results below `root`; `link` is what leads there."""
    parts = [paragraph(folder, f"{link}/{folder.relative_to(root).as_posix()}")
             for folder in kept_folders(root)]
    return "\n" + "\n".join(parts) + "\n" if parts else NOTHING


def with_section(document, text):
    """The text of `document` with the section between its marks; Problem if the marks are lost."""
    old = document.read_text(encoding="utf-8")
    begin, end = old.find(BEGIN), old.find(END)
    if begin < 0 or end < begin:
        raise Problem(f"{document} has lost the marks {BEGIN.strip()} and {END}")
    return old[:begin + len(BEGIN)] + text + old[end:]


def agrees(document, text):
    return document.read_text(encoding="utf-8") == with_section(document, text)


def write_section(document, text):
    """Puts the section into the document, and says whether that changed it."""
    if agrees(document, text):
        return False
    document.write_text(with_section(document, text), encoding="utf-8")
    return True
