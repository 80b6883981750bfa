#!/usr/bin/env python3
"""Attention of PyTorch, measured when tools/bench/gpu_bench asks for it (tools/bench/gpu_peers.h has the words).

Backends: flash and cudnn of scaled_dot_product_attention, and FlexAttention, compiled. Needs a
PyTorch of 2.5 or later with CUDA; exits with 3 where there is none. The library itself needs no
Python.

    gpu_bench --peers "python3 tools/gpu_peers.py --device cuda:0" ...

--rehearse answers on the CPU instead, by PyTorch's plain kernels: the same words and shapes, to try
this file where there is no GPU. Such times say nothing.
"""

import argparse
import json
import sys
import time

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
except ImportError as error:
    print(f"gpu_peers: {error}; install PyTorch 2.5 or later, with CUDA", file=sys.stderr)
    sys.exit(3)

SDPA = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
TILE = 128  # largest tile of FlexAttention's default configurations
PAUSE_CYCLES = 1_000_000  # half a millisecond: longer than Python takes to queue a run


def causal_mod(_b, _h, q, k):
    return q >= k


class Gpu:
    def __init__(self, name):
        self.device = torch.device(name)
        torch.cuda.set_device(self.device)
        l2_bytes = getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", 64 << 20)
        self.flush = torch.empty(max(2 * l2_bytes, 1 << 20), dtype=torch.int8, device=self.device)
        # A kernel is compiled for each problem. Beyond a limit PyTorch would run the rest of them
        # uncompiled; its name has changed.
        config = torch._dynamo.config
        for limit in ("recompile_limit", "cache_size_limit"):
            if hasattr(config, limit):
                setattr(config, limit, 1000)
        self.flex = torch.compile(flex_attention, dynamic=False)

    sdpa = SDPA

    def milliseconds(self, run, cold):
        if cold:
            self.flush.zero_()
        # The device is kept busy meanwhile: what Python takes to queue the run does not count.
        torch.cuda._sleep(PAUSE_CYCLES)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)


class Rehearsal:
    device = torch.device("cpu")
    sdpa = {name: SDPBackend.MATH for name in SDPA}
    flex = staticmethod(flex_attention)

    @staticmethod
    def milliseconds(run, _cold):
        begin = time.perf_counter()
        run()
        return (time.perf_counter() - begin) * 1e3


def operands(ask, device):
    torch.manual_seed(0)

    def tensor(heads):
        shape = (ask["batch"], heads, ask["seq"], ask["dim"])
        return torch.randn(shape, device=device, dtype=torch.bfloat16)

    return tensor(ask["heads"]), tensor(ask["kv_heads"]), tensor(ask["kv_heads"])


def block_mask(ask, device):
    """The kept blocks of a problem as FlexAttention takes them: all full."""
    rows = columns = ask["seq"] // ask["block"]
    kept = ask["kept"]
    with open(ask["indices"], "rb") as file:
        flat = torch.frombuffer(bytearray(file.read()), dtype=torch.int32)
    # As wide as there are columns, which is how a mask knows their number.
    indices = torch.zeros((1, ask["layouts"], rows, columns), dtype=torch.int32)
    indices[..., :kept] = flat.reshape(1, ask["layouts"], rows, kept)
    counts = torch.full((1, ask["layouts"], rows), kept, dtype=torch.int32)
    indices, counts = indices.to(device), counts.to(device)
    return BlockMask.from_kv_blocks(
        torch.zeros_like(counts), torch.zeros_like(indices), counts, indices,
        BLOCK_SIZE=ask["block"])


def runner(ask, on, q, k, v):
    """A function without arguments that queues one run and returns O."""
    grouped = ask["heads"] != ask["kv_heads"]
    if ask["backend"] == "flex":
        mask = None
        options = {}
        if ask["block"]:
            mask = block_mask(ask, on.device)
            if ask["block"] < TILE:  # tiles must divide blocks
                options = {"BLOCK_M": ask["block"], "BLOCK_N": ask["block"]}
        elif ask["causal"]:
            mask = create_block_mask(
                causal_mod, None, None, ask["seq"], ask["seq"], device=on.device)
        return lambda: on.flex(
            q, k, v, block_mask=mask, enable_gqa=grouped, kernel_options=options or None)
    if ask["block"]:
        raise ValueError("has no block-sparse kernel")
    backend = on.sdpa[ask["backend"]]

    def run():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=ask["causal"], enable_gqa=grouped)

    return run


class Peers:
    def __init__(self, on):
        self.on = on
        # Of one problem at a time: its operands, and a run for each backend that was asked for.
        self.name, self.operands, self.runs = None, None, {}

    def measure(self, ask):
        if self.name != ask["name"]:
            self.name, self.operands, self.runs = None, None, {}
            self.operands = operands(ask, self.on.device)
            self.name = ask["name"]
        if ask["backend"] not in self.runs:
            run = runner(ask, self.on, *self.operands)
            for _ in range(2):
                if run().shape != self.operands[0].shape:
                    raise RuntimeError("O has another shape than Q")
            self.runs[ask["backend"]] = run
        run = self.runs[ask["backend"]]
        return [self.on.milliseconds(run, ask["cold"]) for _ in range(ask["runs"])]


def main():
    parser = argparse.ArgumentParser(description="attention of PyTorch for tools/bench/gpu_bench")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU, to try this file")
    arguments = parser.parse_args()
    if not arguments.rehearse and not torch.cuda.is_available():
        print(f"gpu_peers: PyTorch {torch.__version__} sees no GPU", file=sys.stderr)
        return 3
    torch.set_grad_enabled(False)  # as ours: no log-sum-exp is kept for a backward pass
    peers = Peers(Rehearsal() if arguments.rehearse else Gpu(arguments.device))
    version = f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
    if arguments.rehearse:
        version += ", rehearsed on the CPU"
    print(json.dumps({"version": version, "backends": [*SDPA, "flex"]}), flush=True)
    for line in sys.stdin:
        try:
            answer = {"ms": peers.measure(json.loads(line))}
        except Exception as error:  # whatever a backend throws is its answer
            answer = {"error": str(error).strip().split("\n")[0][:300] or type(error).__name__}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
