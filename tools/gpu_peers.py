#!/usr/bin/env python3
"""Attention of PyTorch, measured when tools/bench/gpu_bench asks for it (tools/bench/gpu_process.h has the words).

One backend to a process: flash or cudnn of scaled_dot_product_attention, or FlexAttention, compiled.
Needs a PyTorch of 2.5 or later with CUDA; exits with 3 where there is none. The library itself needs
no Python.

    gpu_bench --peer flash="python3 tools/gpu_peers.py --device cuda:0 --backend flash" ...

--rehearse answers on the CPU instead, by PyTorch's plain kernels: the same words and shapes, to try
this file where there is no GPU. Such times say nothing.
"""

import argparse
import json
import os
import sys
import time

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
except ImportError as error:
    print(f"gpu_peers: {error}; install PyTorch 2.5 or later, with CUDA", file=sys.stderr)
    sys.exit(3)
try:
    from torch.nn.attention.bias import causal_lower_right
except ImportError:
    causal_lower_right = None

SDPA = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
TILE = 128  # the largest tile of FlexAttention's default configurations
PAUSE_CYCLES = 1_000_000  # half a millisecond, which is longer than Python takes to queue a run


class Gpu:
    gemm_side, gemm_runs = 8192, 100

    def __init__(self, name):
        self.device = torch.device(name)
        torch.cuda.set_device(self.device)
        l2_bytes = getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", 64 << 20)
        self.flush = torch.empty(max(2 * l2_bytes, 1 << 20), dtype=torch.int8, device=self.device)
        # A kernel is compiled for each problem. Above a limit PyTorch would run further problems
        # uncompiled. The name of the limit has changed between versions.
        config = torch._dynamo.config
        for limit in ("recompile_limit", "cache_size_limit"):
            if hasattr(config, limit):
                setattr(config, limit, 1000)
        self.flex = torch.compile(flex_attention, dynamic=False)

    def sdpa(self, backend):
        return SDPA[backend]

    def milliseconds(self, run, cold):
        if cold:
            self.flush.zero_()
        # This keeps the device busy, so that the time in which Python queues the run does not
        # count.
        torch.cuda._sleep(PAUSE_CYCLES)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def synchronize(self):
        torch.cuda.synchronize(self.device)

    def forget(self):
        torch.cuda.empty_cache()


class Rehearsal:
    gemm_side, gemm_runs = 256, 3
    device = torch.device("cpu")
    flex = staticmethod(flex_attention)

    def sdpa(self, _backend):
        return SDPBackend.MATH

    def milliseconds(self, run, _cold):
        begin = time.perf_counter()
        run()
        return (time.perf_counter() - begin) * 1e3

    def synchronize(self):
        pass

    def forget(self):
        pass


def operands(ask, device):
    torch.manual_seed(0)

    def tensor(heads, rows):
        shape = (ask["batch"], heads, rows, ask["dim"])
        return torch.randn(shape, device=device, dtype=torch.bfloat16)

    q = tensor(ask["heads"], ask["seq_q"])
    return q, tensor(ask["kv_heads"], ask["seq_k"]), tensor(ask["kv_heads"], ask["seq_k"])


def block_mask(ask, indices, device):
    """The kept blocks of a problem as FlexAttention takes them: all full."""
    rows, columns = ask["seq_q"] // ask["block"], ask["seq_k"] // ask["block"]
    kept = ask["kept_of_a_row"]
    with open(indices, "rb") as file:
        flat = torch.frombuffer(bytearray(file.read()), dtype=torch.int32)
    # The array has one place for each column, because the mask takes the number of columns from its
    # width.
    wide = torch.zeros((1, ask["layouts"], rows, columns), dtype=torch.int32)
    wide[..., :kept] = flat.reshape(1, ask["layouts"], rows, kept)
    counts = torch.full((1, ask["layouts"], rows), kept, dtype=torch.int32)
    wide, counts = wide.to(device), counts.to(device)
    return BlockMask.from_kv_blocks(
        torch.zeros_like(counts), torch.zeros_like(wide), counts, wide, BLOCK_SIZE=ask["block"])


def flex_runner(ask, indices, on, q, k, v):
    mask = None
    options = {}
    offset, window = ask["seq_k"] - ask["seq_q"], ask["window"]
    if ask["mask"] == "blocks":
        mask = block_mask(ask, indices, on.device)
        if ask["block"] < TILE:  # tiles must divide the blocks
            options = {"BLOCK_M": ask["block"], "BLOCK_N": ask["block"]}
    elif ask["mask"] != "dense":

        def visible(_b, _h, row, column):
            seen = row + offset >= column
            return seen & (row + offset - column < window) if window else seen

        mask = create_block_mask(
            visible, None, None, ask["seq_q"], ask["seq_k"], device=on.device)
    grouped = ask["heads"] != ask["kv_heads"]
    return lambda: on.flex(
        q, k, v, block_mask=mask, enable_gqa=grouped, kernel_options=options or None)


def sdpa_runner(ask, backend, on, q, k, v):
    bias, is_causal = None, False
    if ask["mask"] in ("blocks", "window"):
        raise ValueError(f"has no kernel for the mask '{ask['mask']}'")
    if ask["mask"] == "causal" and ask["seq_q"] == ask["seq_k"]:
        is_causal = True
    elif ask["mask"] == "causal" and ask["seq_q"] > 1:  # a single query sees all keys
        if backend != "flash" or causal_lower_right is None:
            raise ValueError("has no causal mask that is aligned with the last key")
        bias = causal_lower_right(ask["seq_q"], ask["seq_k"])
    grouped = ask["heads"] != ask["kv_heads"]

    def run():
        with sdpa_kernel(on.sdpa(backend)):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=bias, is_causal=is_causal, enable_gqa=grouped)

    return run


class Peer:
    def __init__(self, backend, on):
        self.backend, self.on = backend, on
        self.run = None  # runs the problem that was loaded last

    def load(self, question):
        self.run = None
        self.on.forget()
        ask = question["problem"]
        if ask["kind"] not in ("attention", "decode", "chunk"):
            raise ValueError(f"has no kernel to {ask['kind']}")
        if ask["dtype"] != "bf16":
            raise ValueError(f"has no kernel for {ask['dtype']}")
        q, k, v = operands(ask, self.on.device)
        self.on.synchronize()
        begin = time.perf_counter()
        if self.backend == "flex":
            run = flex_runner(ask, question["indices"], self.on, q, k, v)
        else:
            run = sdpa_runner(ask, self.backend, self.on, q, k, v)
        if run().shape != q.shape:
            raise RuntimeError("O has another shape than Q")
        self.on.synchronize()
        first = (time.perf_counter() - begin) * 1e3
        self.run = run
        return {"first_ms": first, "ms": self.on.milliseconds(run, False)}

    def measure(self, question):
        if self.run is None:
            raise ValueError("no problem was loaded")
        if not question["cold"]:
            self.run()  # leaves in L2 the data that a run leaves there
        return {"ms": [self.on.milliseconds(self.run, question["cold"])
                       for _ in range(question["runs"])]}

    def gemm(self, _question):
        side, runs = self.on.gemm_side, self.on.gemm_runs
        a, b = (torch.randn((side, side), device=self.on.device, dtype=torch.bfloat16)
                for _ in range(2))
        for _ in range(runs):  # repeats until the clocks have their values under load
            product = a @ b
        self.on.synchronize()
        ms = self.on.milliseconds(
            lambda: [torch.mm(a, b, out=product) for _ in range(runs)], False) / runs
        return {"tflops": 2 * side**3 / (ms * 1e9),
                "by": f"torch {torch.__version__} {side}^3 bf16, random data"}


def main():
    parser = argparse.ArgumentParser(description="attention of PyTorch for tools/bench/gpu_bench")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--backend", choices=[*SDPA, "flex"], default="flash")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU, to try this file")
    arguments = parser.parse_args()
    # Libraries may print on standard output, which is reserved for answers. So it is redirected to
    # standard error.
    answers_to = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if not arguments.rehearse and not torch.cuda.is_available():
        print(f"gpu_peers: PyTorch {torch.__version__} sees no GPU", file=sys.stderr)
        return 3
    torch.set_grad_enabled(False)  # the library too keeps nothing for a backward pass
    peer = Peer(arguments.backend, Rehearsal() if arguments.rehearse else Gpu(arguments.device))
    version = f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
    if arguments.rehearse:
        version += ", rehearsed on the CPU"
    flex = arguments.backend == "flex"
    print(json.dumps({"version": version, "gemm": not flex, "late": flex}), file=answers_to,
          flush=True)
    answers = {"load": peer.load, "measure": peer.measure, "gemm": peer.gemm}
    for line in sys.stdin:
        try:
            question = json.loads(line)
            answer = answers[question["ask"]](question)
        except Exception as error:  # any exception of a backend is its answer
            answer = {"error": str(error).strip().split("\n")[0][:300] or type(error).__name__}
        print(json.dumps(answer), file=answers_to, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
