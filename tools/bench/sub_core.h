#ifndef ANNULUS_TOOLS_BENCH_SUB_CORE_H_
#define ANNULUS_TOOLS_BENCH_SUB_CORE_H_

// A cycle model of one sub-core: the quarter of a multiprocessor with one scheduler, one tensor
// core and a quarter of all other units. It executes the main loop of a kernel as ptxas made it
// (read_step in sass.h) for the warps that share the sub-core. The result is the time of a step,
// the use of each pipe, and the reasons for which the warps wait. No GPU is used.
//
//   CoreProblem problem = {.step = read_step(decode_sass(cubin, symbol, arch), products), ...};
//   const CoreReport report = model_core(problem, core_assumptions(arch));
//   report.use(Pipe::kTensor);   // 0.9: the tensor core works in 90 % of the cycles
//
// The rules are in docs/kernels.md, "The cycle model of a sub-core", together with the measurement
// that would confirm each. In short: a warp issues in order, and a sub-core issues one instruction
// in a cycle. The warp can issue when its stall count has run out, when the scoreboards for which
// it waits are clear, and when the pipe accepts an instruction. The four sub-cores of a
// multiprocessor do the same at the same time. So each has a quarter of shared memory, and the four
// warps of a warpgroup are one warp here. The producer is not modelled: data are always there,
// unless CoreProblem::copy_latency is set.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/arch.h"
#include "sass.h"

namespace annulus::bench {

enum class Pipe { kIssue, kFloat, kLogic, kSpecial, kShared, kTensor };
inline constexpr int kPipes = 6;
const char* to_string(Pipe pipe);

// The state of a warp in a cycle: it issues, or it waits for one of these reasons.
enum class Wait {
  kIssues,
  kStall,      // the stall count of its last instruction
  kBranch,     // a branch that was taken
  kShuffle,    // the scoreboard of a shuffle
  kSpecial,    // the scoreboard of a special function
  kShared,     // the scoreboard of a load from shared memory
  kGlobal,     // the scoreboard of a load from global memory
  kData,       // the scoreboard of an mbarrier or a copy
  kOther,      // another scoreboard
  kOneGroup,   // products, in all groups but the last
  kAllGroups,  // products, in all groups
  kQueue,      // the queue of products is full
  kTurn,       // the turn of another consumer
  kBarrier,    // a barrier of the CTA
  kPipe,       // the pipe is busy with other instructions
  kOtherWarp,  // another warp issues in this cycle
};
inline constexpr int kWaits = 16;
const char* to_string(Wait wait);

// Properties that no document states, in cycles unless noted otherwise.
struct CoreAssumptions {
  // Cycles between instructions of a warp on one pipe.
  int float_interval = 1;    // FFMA, FMUL, FADD
  int integer_interval = 2;  // IMAD, on the same pipe
  int logic_interval = 2;
  int special_interval = 8;
  int shared_interval = 4;   // a wavefront: a quarter of 128 bytes in a cycle
  int product_interval = 6;  // HMMA m16n8k16
  // Instructions that can wait in front of a pipe while their warp continues.
  int special_queue = 2;
  int shared_queue = 4;
  int product_queue = 4;  // HGMMA of one warpgroup that are not complete
  // From the issue of an instruction, or from its end in the queue, until its scoreboard clears.
  int special_latency = 20;
  int shuffle_latency = 24;
  int shared_latency = 22;  // latency of one wavefront; each further wavefront adds two
  int global_latency = 40;  // a hit in L1
  int phase_latency = 24;   // an mbarrier's try that succeeds
  int system_latency = 24;
  int fence_latency = 400;  // a fence beyond the CTA
  int read_latency = 10;    // until the operands have been read
  int other_latency = 20;
  // From the end of a group's last product until a wait for the group ends.
  int product_latency = 32;
  // From the last arrival at a barrier to the first instruction after it.
  int barrier_latency = 20;
  // From a taken branch to the next instruction, if the stall count is less.
  int branch_latency = 12;
  // The most by which barriers and mbarriers are sometimes delayed. The delays are drawn from the
  // same sequence each time. Without them the warps may settle into one of many patterns, and a
  // change of some latency by one cycle would select another pattern.
  int jitter = 16;
  // Between the first instructions of two warps.
  int stagger = 100;
  // 1: copies and loads take their share of shared memory first, evenly over the step, and products
  // take the rest. 0: copies and loads do not slow products.
  int copies_first = 1;
  // 1: of the warps that can issue, the last one continues, or else the youngest issues. 0: the
  // oldest issues.
  int youngest = 1;
};

// The assumptions for sm_80 or sm_90. Throws std::runtime_error for other architectures, which are
// not modelled.
CoreAssumptions core_assumptions(jit::Arch arch);

// The assumptions by name, for the command line.
struct NamedAssumption {
  const char* name;
  int CoreAssumptions::*value;
};
std::span<const NamedAssumption> named_assumptions();

struct CoreProblem {
  std::vector<Sass> step;
  int ctas = 1;   // CTAs that share the multiprocessor
  int warps = 1;  // warps of a CTA on the sub-core: its consumers, or a quarter of its warps
  int stages = 2;
  // Bytes that asynchronous copies write to shared memory in a step of one CTA.
  double copied_bytes = 0;
  int copy_latency = 0;  // from a buffer's release until the next data are there; 0: at once
  int steps = 80;        // steps of each warp; the first quarter is not counted
};

// A line of a trace: an instruction, and the waits of its warp since its previous instruction.
struct TraceLine {
  std::int64_t cycle = 0;
  int warp = 0;
  std::int64_t address = 0;
  const char* name = "";
  std::array<int, kWaits> waited{};
};

struct CoreReport {
  double step_cycles = 0;             // the cycles in which every warp makes one step
  std::array<double, kPipes> busy{};  // busy cycles of each pipe in a step
  // Cycles of a warp in a step by reason; their sum is step_cycles.
  std::array<double, kWaits> waits{};

  double use(Pipe pipe) const { return busy[static_cast<std::size_t>(pipe)] / step_cycles; }
};

// Throws std::runtime_error if no warp can ever issue again. If `trace` is not null, it gets the
// last instructions, as many as the warps execute in one step.
CoreReport model_core(const CoreProblem& problem, const CoreAssumptions& assumptions,
                      std::vector<TraceLine>* trace = nullptr);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_SUB_CORE_H_
