"""Which forms of instructions, and which protocols made of them, a text of PTX uses."""

import re

# The counted instructions: those that move data asynchronously, synchronise, multiply matrices, or
# affect other threads. Arithmetic has the same definition on a GPU, and tests compare it.
FAMILIES = re.compile(
    r"(wgmma|mma|ldmatrix|stmatrix|cp\.async|cp\.reduce|mbarrier|fence|membar|bar|barrier|elect|"
    r"setmaxnreg|mapa|getctarank|griddepcontrol|shfl|vote|match|redux|atom|red|prefetch|"
    r"(?:ld|st)(?:\.global)?\.(?:acquire|release|relaxed|volatile)|discard|applypriority|tensormap|"
    r"createpolicy|activemask|nanosleep|ex2|lg2|cvt\.rn\.satfinite|movmatrix|st\.async|"
    r"ld\.shared::cluster|st\.shared::cluster)\b")
INSTRUCTION = re.compile(r"(?:^|[;{}])\s*(?:@!?%?\w+\s+)?([a-z][a-z0-9_]*(?:\.[a-zA-Z0-9_:]+)+)\s*([^;{}]*"
                         r"(?:\{[^{}]*\}[^;{}]*)*);", re.M)

# Opcodes whose N or register count is one of many similar ones.
ALIKE = ((re.compile(r"(wgmma\.mma_async\.sync\.aligned\.m64n)\d+"), r"\1N"),
         (re.compile(r"(setmaxnreg\.(?:inc|dec)\.sync\.aligned\.u32)"), r"\1"))

CAST = {"shared::cta": "shared"}  # two names of one state space
# Modifiers that may be left out, or be in another order, without a change of meaning: the default
# mode of a bulk tensor copy, a hint about caches, and the shape of matrices before their number.
DROPPED = {"tile", "L2::cache_hint", "L2::128B", "L2::256B"}
ORDER = {"m8n8": 0, "x1": 1, "x2": 1, "x4": 1, "trans": 2}
MEMORY = {"relaxed": 0, "acquire": 0, "release": 0, "acq_rel": 0, "volatile": 0, "cta": 1, "cluster": 1,
          "gpu": 1, "sys": 1, "global": 2, "shared": 2, "shared::cluster": 2}  # others come after these
# The defaults of modifiers that are left out.
DEFAULTS = {("atom", "red"): {"relaxed", "gpu"}, ("mbarrier",): {"release", "acquire", "cta"}}
CLUSTER_BARRIER = {"arrive": "release", "wait": "acquire"}


def operand_form(opcode, operands):
    """What matters of an instruction beyond its opcode."""
    if opcode.startswith("wgmma.mma_async"):
        tail = re.sub(r"\{[^}]*\}", "REGISTERS", operands).split(",")
        source = " A in registers" if tail[1:2] and "REGISTERS" in tail[1] else " A in shared memory"
        # After D, A, B and the flag that adds D, there are two signs, and then the flags of
        # transposed operands.
        flags = [word.strip() for word in tail[4:] if word.strip() in ("0", "1", "-1")]
        if ".bf16.bf16" in opcode or opcode.endswith(".f16.f16"):
            transposed = flags[2:]
            names = ("A", "B") if "in shared" in source else ("B",)
            major = [name for name, flag in zip(names, transposed) if flag == "1"]
            return source + (f", {' and '.join(major)} MN-major" if major else ", K-major")
        return source
    if opcode.startswith(("bar.", "barrier.sync", "barrier.arrive", "barrier.red")):
        counted = "," in operands
        return " some threads" if counted else ""
    return ""


def normal(opcode):
    parts = [CAST.get(part, part) for part in opcode.split(".") if part not in DROPPED]
    if parts[0] in ("ldmatrix", "stmatrix"):
        parts[3:] = sorted(parts[3:], key=lambda part: ORDER.get(part, 3))  # after .sync.aligned
    if parts[0] in ("ld", "st", "atom", "red"):
        parts[1:] = sorted(parts[1:], key=lambda part: MEMORY.get(part, 3))
    for opcodes, unsaid in DEFAULTS.items():
        if parts[0] in opcodes and not {"cluster", "sys"} & set(parts):
            parts = [part for part in parts if part not in unsaid]
    if parts[:2] == ["barrier", "cluster"] and not {"release", "acquire", "relaxed"} & set(parts):
        parts.insert(3, CLUSTER_BARRIER[parts[2]])
    name = ".".join(parts)
    for pattern, put in ALIKE:
        name = pattern.sub(put, name)
    return name


def strip(text):
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def forms(text):
    """How often each form occurs in the text: {form: count}."""
    counts = {}
    for match in INSTRUCTION.finditer(strip(text).replace("\\\n", " ")):
        opcode, operands = match.groups()
        if not FAMILIES.match(opcode):
            continue
        form = normal(opcode) + operand_form(opcode, " ".join(operands.split()))
        counts[form] = counts.get(form, 0) + 1
    return counts


# Protocols: forms that a text must contain together. They are found in the text, not in a run.
PROTOCOLS = {
    "TMA load: bytes expected, mbarrier waited for by parity":
        (r"cp\.async\.bulk\.tensor\.\dd\.shared", r"mbarrier\.arrive\.expect_tx", r"mbarrier\.try_wait\.parity"),
    "TMA store: proxy fence, commit, wait for the read":
        (r"cp\.async\.bulk\.tensor\.\dd\.global\.shared", r"fence\.proxy\.async",
         r"cp\.async\.bulk\.commit_group", r"cp\.async\.bulk\.wait_group\.read"),
    "TMA store waited for to its end": (r"cp\.async\.bulk\.tensor\.\dd\.global", r"cp\.async\.bulk\.wait_group$"),
    "TMA reduction into global memory": (r"cp\.reduce\.async\.bulk",),
    "plain bulk copies": (r"cp\.async\.bulk\.(shared|global)",),
    "multicast in a cluster, with arrivals at other CTAs":
        (r"multicast::cluster", r"mapa", r"mbarrier\.arrive(\.release\.cluster)?\.shared::cluster"),
    "mbarriers made known by fence.mbarrier_init": (r"fence\.mbarrier_init",),
    "cluster barrier with a relaxed arrival": (r"barrier\.cluster\.arrive\.relaxed", r"barrier\.cluster\.wait"),
    "cluster barrier that releases and acquires": (r"barrier\.cluster\.arrive\.release(\.aligned)?$",
                                                   r"barrier\.cluster\.wait"),
    "one elected thread issues": (r"elect\.sync",),
    "registers handed from producers to consumers": (r"setmaxnreg\.dec", r"setmaxnreg\.inc"),
    "named barriers where some arrive and others wait": (r"(bar|barrier)(\.cta)?\.arrive",
                                                         r"(bar|barrier)(\.cta)?\.sync.* some threads"),
    "named barriers of some warps": (r"(bar|barrier)(\.cta)?\.sync.* some threads",),
    "wgmma with operands in shared memory": (r"wgmma\.mma_async.*A in shared", r"wgmma\.fence",
                                             r"wgmma\.commit_group", r"wgmma\.wait_group"),
    "wgmma with A in registers": (r"wgmma\.mma_async.*A in registers", r"wgmma\.fence"),
    "wgmma with MN-major operands": (r"wgmma\.mma_async.*MN-major",),
    "cp.async groups": (r"cp\.async\.c[ag]\.shared\.global", r"cp\.async\.commit_group", r"cp\.async\.wait_group"),
    "cp.async that arrives at an mbarrier": (r"cp\.async\.mbarrier\.arrive",),
    "mma.sync fed by ldmatrix": (r"mma\.sync", r"ldmatrix"),
    "stmatrix": (r"stmatrix",),
    "the next kernel starts early (griddepcontrol)": (r"griddepcontrol",),
    "flags between CTAs by fences or acquires and releases":
        (r"(ld\.(acquire|relaxed|volatile)\.gpu|atom)",
         r"(membar\.gl|fence\.acq_rel\.gpu|st\.release\.gpu|ld\.acquire\.gpu)"),
    "atomics on global memory": (r"^(atom|red)\.(\w+\.)*global",),
    "warp shuffles": (r"shfl\.sync",),
}


def protocols(counts):
    return [name for name, needed in PROTOCOLS.items()
            if all(any(re.search(pattern, form) for form in counts) for pattern in needed)]
