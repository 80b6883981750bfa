#ifndef ANNULUS_TOOLS_BENCH_SUB_CORE_H_
#define ANNULUS_TOOLS_BENCH_SUB_CORE_H_

// A cycle model of one sub-core: the quarter of a multiprocessor that has one scheduler, one tensor
// core and a quarter of everything else. It executes the main loop of a kernel as ptxas made it
// (read_step in sass.h) for the warps that share the sub-core, and says how long a step takes, how
// busy each pipe is and what the warps wait for. No GPU is used.
//
//   CoreProblem problem = {.step = read_step(decode_sass(cubin, symbol, arch), products), ...};
//   const CoreReport report = model_core(problem, core_assumptions(arch));
//   report.use(Pipe::kTensor);   // 0.9: the tensor core works in 90 % of the cycles
//
// The rules, each with the measurement that would confirm it, are in docs/kernels.md, "The cycle
// model of a sub-core". In short: a warp issues in order, one instruction of one warp in a cycle,
// when its stall count has run out, the scoreboards that it waits for are clear and the pipe takes
// one. The four sub-cores of a multiprocessor do the same at the same time, so that each has a
// quarter of shared memory, and the four warps of a warpgroup are one warp here. The producer is
// not modelled: data are there unless CoreProblem::copy_latency says otherwise.

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

// What a warp does in a cycle, or why it does not issue.
enum class Wait {
  kIssues,
  kStall,      // the stall count of its last instruction
  kBranch,     // a branch that was taken
  kShuffle,    // a scoreboard of a shuffle, ...
  kSpecial,    // of a special function
  kShared,     // of a load from shared memory
  kGlobal,     // of a load from global memory
  kData,       // of an mbarrier or a copy
  kOther,      // of something else
  kOneGroup,   // for products: all groups but the last
  kAllGroups,  // all groups
  kQueue,      // the queue of products is full
  kTurn,       // another consumer's turn
  kBarrier,    // a barrier of the CTA
  kPipe,       // the pipe is busy with other instructions
  kOtherWarp,  // another warp issues in this cycle
};
inline constexpr int kWaits = 16;
const char* to_string(Wait wait);

// What is not known from documents, in cycles unless said otherwise.
struct CoreAssumptions {
  // Cycles between instructions of a warp on one pipe.
  int float_interval = 1;    // FFMA, FMUL, FADD
  int integer_interval = 2;  // IMAD, on the same pipe
  int logic_interval = 2;
  int special_interval = 8;
  int shared_interval = 4;   // a wavefront: a quarter of 128 bytes in a cycle
  int product_interval = 6;  // HMMA m16n8k16
  // Instructions that wait in front of a pipe without keeping their warp from going on.
  int special_queue = 2;
  int shared_queue = 4;
  int product_queue = 4;  // of one warpgroup: HGMMA that are not complete
  // From issue, or from the end of the queue, to where a scoreboard clears.
  int special_latency = 20;
  int shuffle_latency = 24;
  int shared_latency = 22;  // for one wavefront; two more for each further one
  int global_latency = 40;  // a hit in L1
  int phase_latency = 24;   // a try of an mbarrier that succeeds
  int system_latency = 24;
  int fence_latency = 400;  // beyond the CTA
  int read_latency = 10;    // operands have been read
  int other_latency = 20;
  // From the end of a group's last product to where a wait for it ends.
  int product_latency = 32;
  // From the last arrival at a barrier to the first instruction behind it.
  int barrier_latency = 20;
  // From a branch that is taken to the next instruction, where the stall count is less.
  int branch_latency = 12;
  // What barriers and mbarriers take longer now and then: a number up to this, drawn from the same
  // sequence each time. Without it the warps may settle into one pattern of many, which a cycle
  // more or less of some latency would replace by another.
  int jitter = 16;
  // Between the first instructions of two warps.
  int stagger = 100;
  // 1: copies and loads take their bytes of shared memory first, evenly over the step, and products
  // what is left; 0: products are not slowed by them.
  int copies_first = 1;
  // 1: of the warps that can issue, the last one goes on, else the youngest; 0: else the oldest.
  int youngest = 1;
};

// For sm_80 or sm_90; other architectures are not modelled. Throws std::runtime_error for them.
CoreAssumptions core_assumptions(jit::Arch arch);

// The assumptions by name, for a command line.
struct NamedAssumption {
  const char* name;
  int CoreAssumptions::*value;
};
std::span<const NamedAssumption> named_assumptions();

struct CoreProblem {
  std::vector<Sass> step;
  int ctas = 1;   // that share the multiprocessor
  int warps = 1;  // of one CTA on the sub-core: its consumers, or a quarter of its warps
  int stages = 2;
  double copied_bytes = 0;  // that asynchronous copies write to shared memory for a step of one CTA
  int copy_latency = 0;     // from a buffer's release to where the next data are there; 0: always
  int steps = 80;           // of each warp; the first quarter is not counted
};

// A line of a trace: an instruction, and what its warp waited for since its last one.
struct TraceLine {
  std::int64_t cycle = 0;
  int warp = 0;
  std::int64_t address = 0;
  const char* name = "";
  std::array<int, kWaits> waited{};
};

struct CoreReport {
  double step_cycles = 0;              // in which every warp makes one step
  std::array<double, kPipes> busy{};   // cycles of a step
  std::array<double, kWaits> waits{};  // of one warp in a step: their sum is step_cycles

  double use(Pipe pipe) const { return busy[static_cast<std::size_t>(pipe)] / step_cycles; }
};

// Throws std::runtime_error where no warp can ever issue again. `trace`, if there is one, gets the
// last instructions, as many as the warps have in a step.
CoreReport model_core(const CoreProblem& problem, const CoreAssumptions& assumptions,
                      std::vector<TraceLine>* trace = nullptr);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_SUB_CORE_H_
