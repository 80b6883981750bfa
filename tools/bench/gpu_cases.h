#ifndef ANNULUS_TOOLS_BENCH_GPU_CASES_H_
#define ANNULUS_TOOLS_BENCH_GPU_CASES_H_

// The cases that gpu_bench measures, the most wanted first. They are the problems of
// gpu_problems.h, other problems of one sequence, and steps of batches.

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
  // Its name, density, useful work and targets are used for every kind, and its other members only
  // for kAttention.
  GpuProblem attention;
  std::int64_t window = 0;        // keys that a query sees, including its own; 0: no window
  BatchProblem batch;             // used by kDecode, kChunk and kPrepare
  AppendProblem append;           // used by kAppend
  std::vector<Request> requests;  // the requests of a batch; all are equal
  std::int64_t part_keys = 0;     // BatchOptions::part_keys
  double least_bytes = 0;         // bytes of all operands and the output, each moved once
  double bar_memory = 0;          // the target share of the rate of a copy; 0: none
  bool late_peers = false;        // whether peers with "late" are measured too

  const std::string& name() const { return attention.name; }
};

// tiny: cases of the same kinds with a few hundred tokens, to test the program when times do not
// matter.
std::vector<GpuCase> gpu_cases(bool tiny);

// The fields of a case as they begin a result line, and as they are sent to peers (gpu_process.h):
//
//   {"name": "D128 16k causal", "kind": "attention", "batch": 1, "heads": 16, "kv_heads": 16,
//    "seq_q": 16384, "seq_k": 16384, "dim": 128, "dtype": "bf16", "mask": "causal", "window": 0,
//    "block": 0, "layouts": 0, "kept_of_a_row": 0, "density": 0.50003, "useful_flop": 1.1e12,
//    "least_bytes": 268435456}
//
// `kind` is "attention", "decode", "chunk", "prepare" or "append". `mask` is "dense", "causal" (the
// last query sees the last key), "window" (causal, with at most `window` keys) or "blocks". With
// "blocks", each row of each of `layouts` layouts keeps `kept_of_a_row` blocks of `block` x
// `block`. For a batch, `batch` is its number of requests.
nlohmann::json describe(const GpuCase& one);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_GPU_CASES_H_
