"""Lines that failed on the GPU, as suggestions for src/attention/kernels/withheld.def."""

import re

from .folder import BROKEN, number_of, object_of, text_of

HOW = {"hang": "does not end", "crash": "ends the process", "fail": "fails"}


def known_kernels(root):
    """The names of families and of kernels of batches, the longest first."""
    names = set()
    for path, pattern in (("src/attention/kernels/families.def", r"^FAMILY\((\w+)\)"),
                          ("src/batch/batch_config.cc", r"ConfigFamily\{\.name = \"(\w+)\"")):
        if (root / path).is_file():
            names |= set(re.findall(pattern, (root / path).read_text(), re.MULTILINE))
    return sorted(names, key=len, reverse=True)


def kernels_of(name, says, known):
    """The kernels of a line: of its configurations, or else the one that its name names."""
    configs = [config.split() for config in text_of(says, "config").split(",")]
    if any(configs):
        return [words[0] for words in configs if words]
    found = [each for each in known if re.search(rf"(?<![a-z0-9]){each}(?![a-z0-9])", name)]
    return found[:1]


def dim_of(name, says):
    """The head dim of Q and K of a line, or None."""
    dim = number_of(object_of(says, "problem"), "dim_qk")
    named = re.search(r"(?<![a-z0-9])d(?:im)?[ _-]?(\d+)(?!\d)", name)
    return int(dim) if dim else int(named.group(1)) if named else None


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def how(step, says):
    """What a kernel does, in words for users."""
    if step is not None and step.outcome in ("hang", "crash"):
        return HOW[step.outcome]
    return "gives wrong results" if says.get("within_tolerance") is False else HOW["fail"]


def withheld(results, gpu, known):
    """(lines for withheld.def, names of failed lines whose kernel or head dim is not known)."""
    says = {said.step: said.says for said in results.said if said.step.startswith("line ")}
    steps = {step.name: step for step in results.in_group("line")}
    lines, unknown = [], []
    architecture = results.architecture() or "sm_90a"
    for name in dict.fromkeys([*steps, *says]):
        said, step = says.get(name, {}), steps.get(name)
        wrong = said.get("within_tolerance") is False
        if not wrong and (step is None or step.outcome not in BROKEN):
            continue
        kernels, dim = kernels_of(name, said, known), dim_of(name, said)
        if not kernels or dim is None:
            unknown.append(name)
        for kernel in kernels if dim is not None else []:
            reason = f"{how(step, said)} on {gpu}"
            lines.append(f'WITHHELD({kernel}, {dim}, "{architecture}", {quoted(reason)})')
    return list(dict.fromkeys(lines)), unknown
