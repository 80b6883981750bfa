"""Triton's programs of this suite, compiled without a GPU.

    python3 triton_kernels.py FOLDER sm_80|sm_90a

writes FOLDER/NAME.ptx with what a launch of it needs as comments in its first lines, which
triton.cu reads: the entry, threads, bytes of shared memory. The
kernels are written after Triton's own tutorials; what they prove is the compiler's output.
"""

import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    score = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    score = tl.exp(score - tl.max(score, axis=0))
    tl.store(y + row * columns + at, score / tl.sum(score, axis=0), mask=inside)


@triton.jit
def layer_norm(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0)
    mean = tl.sum(value, axis=0) / columns
    off = tl.where(inside, value - mean, 0.0)
    variance = tl.sum(off * off, axis=0) / columns
    tl.store(y + row * columns + at, off / tl.sqrt(variance + 1e-5), mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    m = tl.program_id(0) // tiles_n * BM + tl.arange(0, BM)
    n = tl.program_id(0) % tiles_n * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K),
                       other=0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N),
                        other=0.0)
        sums = tl.dot(left, right, sums)
    tl.store(c + m[:, None] * N + n[None, :], sums.to(tl.bfloat16),
             mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention(q, k, v, o, S, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              D: tl.constexpr):
    head = tl.program_id(1) * S * D
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + head + m[:, None] * D + d[None, :])
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    sums = tl.zeros((BM, D), dtype=tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else S
    for first in range(0, end, BN):
        n = first + tl.arange(0, BN)
        key = tl.load(k + head + n[None, :] * D + d[:, None])
        score = tl.dot(query, key) * (scale * 1.44269504)
        if CAUSAL:
            score = tl.where(n[None, :] <= m[:, None], score, -float("inf"))
        new = tl.maximum(most, tl.max(score, axis=1))
        weight = tl.exp2(score - new[:, None])
        old = tl.exp2(most - new)
        total = total * old + tl.sum(weight, axis=1)
        value = tl.load(v + head + n[:, None] * D + d[None, :])
        sums = tl.dot(weight.to(tl.bfloat16), value, sums * old[:, None])
        most = new
    tl.store(o + head + m[:, None] * D + d[None, :], (sums / total[:, None]).to(tl.bfloat16))


@triton.jit
def persistent_matmul(a, b, c, M, N, K, SMS, BM: tl.constexpr, BN: tl.constexpr,
                      BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, SMS):
        m = tile // tiles_n * BM
        n = tile % tiles_n * BN
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            sums = tl.dot(a.load([m, k]), b.load([n, k]).T, sums)
        c.store([m, n], sums.to(tl.bfloat16))


BF16, F32 = "*bf16", "*fp32"
WIDE = dict(BM=128, BN=128, BK=64)
ROWS = dict(x=F32, y=F32, columns="i32")
GEMM = dict(a=BF16, b=BF16, c=BF16, M="i32", N="i32", K="i32")
HEADS = dict(q=BF16, k=BF16, v=BF16, o=BF16, S="i32", scale="fp32")
MAPS = dict(a="tensordesc<bf16[128, 64]>", b="tensordesc<bf16[128, 64]>",
            c="tensordesc<bf16[128, 128]>", M="i32", N="i32", K="i32", SMS="i32")

# Name: function, arguments, constants, architectures, warps, stages.
PROGRAMS = {
    "softmax": (softmax, ROWS, dict(BLOCK=1024), "sm_80 sm_90a", 4, 3),
    "layer_norm": (layer_norm, ROWS, dict(BLOCK=1024), "sm_80 sm_90a", 4, 3),
    "matmul": (matmul, GEMM, dict(WIDE), "sm_80 sm_90a", 4, 3),
    "attention": (attention, HEADS, dict(CAUSAL=0, BM=128, BN=64, D=64), "sm_80 sm_90a", 4, 3),
    "attention_causal": (attention, HEADS, dict(CAUSAL=1, BM=128, BN=64, D=64), "sm_80 sm_90a", 4,
                         3),
    "persistent": (persistent_matmul, MAPS, dict(WIDE), "sm_90a", 8, 3),
}


def main():
    folder, architecture = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    capability = int(architecture[3:5])
    for name, (function, arguments, constants, of, warps, stages) in PROGRAMS.items():
        if architecture not in of.split():
            continue
        signature = dict(arguments, **{key: "constexpr" for key in constants})
        # Pointers and leading dimensions are multiples of 16, as in the tensors of a framework.
        aligned = {(index,): [["tt.divisibility", 16]] for index, key in enumerate(signature)
                   if signature[key].startswith("*") or key in ("N", "K", "S")}
        source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=aligned)
        done = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                              options=dict(num_warps=warps, num_stages=stages))
        data = done.metadata
        head = (f"// entry {data.name} threads {32 * getattr(data, 'num_warps', warps)} "
                f"shared {data.shared}\n")
        # triton.cu makes maps of tensors of this kind only, and has no other memory for kernels.
        assert not getattr(data, "global_scratch_size", 0)
        assert all(map["swizzle"] == 3 and map["elem_size"] == 2 for map in data.tensordesc_meta)
        (folder / f"{name}.ptx").write_text(head + done.asm["ptx"])
        print(f"{name}.ptx")


if __name__ == "__main__":
    main()
