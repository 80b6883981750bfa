#!/usr/bin/env python3
"""Attention of PyTorch, measured when bench/gpu_bench asks for it (bench/gpu_peers.h has the words).

Backends: flash and cudnn of scaled_dot_product_attention, and FlexAttention, compiled. Needs a
PyTorch with CUDA; exits with 3 where there is none. The library itself needs no Python.

    gpu_bench --peers "python3 tools/gpu_peers.py" ...
"""

import functools
import json
import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
except ImportError as error:
    print(f"gpu_peers: {error}", file=sys.stderr)
    sys.exit(3)
if not torch.cuda.is_available():
    print("gpu_peers: PyTorch sees no GPU", file=sys.stderr)
    sys.exit(3)

DEVICE = torch.device("cuda")
SDPA = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
L2_BYTES = 2 * torch.cuda.get_device_properties(DEVICE).L2_cache_size


def causal_mod(_b, _h, q, k):
    return q >= k


@functools.lru_cache(maxsize=None)
def compiled_flex():
    return torch.compile(flex_attention, dynamic=False)


def operands(ask):
    torch.manual_seed(0)

    def tensor(heads):
        shape = (ask["batch"], heads, ask["seq"], ask["dim"])
        return torch.randn(shape, device=DEVICE, dtype=torch.bfloat16)

    return tensor(ask["heads"]), tensor(ask["kv_heads"]), tensor(ask["kv_heads"])


def block_mask(ask):
    """The kept blocks of a problem as FlexAttention takes them: all full."""
    rows = columns = ask["seq"] // ask["block"]
    kept = ask["kept"]
    with open(ask["indices"], "rb") as file:
        flat = torch.frombuffer(bytearray(file.read()), dtype=torch.int32)
    given = flat.reshape(1, ask["layouts"], rows, kept)
    indices = torch.zeros((1, ask["layouts"], rows, columns), dtype=torch.int32)
    indices[..., :kept] = given
    counts = torch.full((1, ask["layouts"], rows), kept, dtype=torch.int32)
    none = torch.zeros_like(counts)
    return BlockMask.from_kv_blocks(
        none.to(DEVICE), indices.to(DEVICE), counts.to(DEVICE), indices.to(DEVICE),
        BLOCK_SIZE=ask["block"], seq_lengths=(ask["seq"], ask["seq"]))


def runner(ask):
    """A function without arguments that queues one run."""
    q, k, v = operands(ask)
    grouped = ask["heads"] != ask["kv_heads"]
    if ask["backend"] == "flex":
        mask = None
        if ask["block"]:
            mask = block_mask(ask)
        elif ask["causal"]:
            mask = create_block_mask(causal_mod, None, None, ask["seq"], ask["seq"], device=DEVICE)
        return lambda: compiled_flex()(q, k, v, block_mask=mask, enable_gqa=grouped)
    if ask["block"]:
        raise ValueError("has no block-sparse kernel")
    backend = SDPA[ask["backend"]]

    def run():
        with sdpa_kernel(backend):
            torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=ask["causal"], enable_gqa=grouped)

    return run


class Peers:
    def __init__(self):
        self.last = None  # (key, run): one problem's operands at a time
        self.flush = torch.empty(max(L2_BYTES, 1 << 20), dtype=torch.int8, device=DEVICE)

    def measure(self, ask):
        key = (ask["backend"], ask["name"])
        if self.last is None or self.last[0] != key:
            self.last = None
            run = runner(ask)
            for _ in range(2):
                run()
            self.last = (key, run)
        run = self.last[1]
        times = []
        for _ in range(ask["runs"]):
            if ask["cold"]:
                self.flush.zero_()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return times


def main():
    peers = Peers()
    version = f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
    print(json.dumps({"version": version, "backends": ["flash", "cudnn", "flex"]}), flush=True)
    for line in sys.stdin:
        try:
            answer = {"ms": peers.measure(json.loads(line))}
        except Exception as error:  # whatever a backend throws is its answer
            answer = {"error": str(error).strip().split("\n")[0][:300] or type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
