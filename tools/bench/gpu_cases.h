#ifndef ANNULUS_TOOLS_BENCH_GPU_CASES_H_
#define ANNULUS_TOOLS_BENCH_GPU_CASES_H_

// What gpu_bench measures, most wanted first: the problems of gpu_problems.h and others of one
// sequence, and steps of batches.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "batch_step.h"
#include "gpu_problems.h"

namespace annulus::bench {

enum class GpuCaseKind {
  kAttention,  // Plan::run of `attention`
  kDecode,     // BatchPlan::run of requests with one query each
  kChunk,      // BatchPlan::run of requests with many queries
  kPrepare,    // BatchPlan::prepare
  kAppend,     // AppendPlan::run
};

struct GpuCase {
  GpuCaseKind kind = GpuCaseKind::kAttention;
  GpuProblem attention;           // its name, density, useful work and bars are those of any case
  std::int64_t window = 0;        // keys that a query sees, with its own; 0: no window
  BatchProblem batch;             // of kDecode, kChunk and kPrepare
  AppendProblem append;           // of kAppend
  std::vector<Request> requests;  // of a batch; they are all alike
  std::int64_t part_keys = 0;     // BatchOptions::part_keys
  double least_bytes = 0;         // each operand and the output, moved once
  double bar_memory = 0;          // the target for the share of a copy's rate; 0: none
  bool late_peers = false;        // peers that say "late" are asked for it

  const std::string& name() const { return attention.name; }
};

// tiny: the same kinds with a few hundred tokens, to try the program where times mean nothing.
std::vector<GpuCase> gpu_cases(bool tiny);

// The case as the first lines of a result, and as peers are asked for it (gpu_process.h):
//
//   {"name": "D128 16k causal", "kind": "attention", "batch": 1, "heads": 16, "kv_heads": 16,
//    "seq_q": 16384, "seq_k": 16384, "dim": 128, "dtype": "bf16", "mask": "causal", "window": 0,
//    "block": 0, "layouts": 0, "kept_of_a_row": 0, "density": 0.50003, "useful_flop": 1.1e12,
//    "least_bytes": 268435456}
//
// `kind` is "attention", "decode", "chunk", "prepare" or "append". `mask` is "dense", "causal" (the
// last query sees the last key), "window" (causal, and no more than `window` keys) or "blocks":
// each row of each of `layouts` layouts keeps `kept_of_a_row` blocks of `block` x `block`. `batch`
// of a batch is its number of requests.
nlohmann::json describe(const GpuCase& one);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_CASES_H_
