// Mutants of the mma kernel, with one mistake each.

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "support/device.h"
#include "support/mutant.h"
#include "support/nvrtc.h"

namespace {

using namespace annulus;

using test::Mutant;

// The kernel that a mutant is made of, and its problem.
enum Kind : int { kTwoStages, kOneStage, kNoKeys, kListed, kCausal };

constexpr char kKernel[] = "kernels/mma/mma_forward.cu";
constexpr char kBarrier[] =
    "      ptx::wait_copies<kStages == 1 ? 0 : kStages - 2>();\n      __syncthreads();\n";

constexpr char kLastWait[] = "ptx::wait_copies<0>(); if (row.count == 0) __syncthreads();";

const std::set<std::string> kRaces = {"shared memory race", "access to bytes in flight"};
// The products read K and V; the copies write them.
const std::set<std::string> kTiles = {"ptx::load_matrices", "ptx::copy_async_16"};

std::vector<Mutant> mutants() {
  std::set<std::string> races_or_unwritten = kRaces;
  races_or_unwritten.insert("uninitialised read");
  return {
      {"no barrier between the copies and their readers",
       {{kKernel, kBarrier, "      ptx::wait_copies<kStages == 1 ? 0 : kStages - 2>();\n"}},
       races_or_unwritten,
       kTiles},
      {"a wait that leaves one group too many",
       {{kKernel, "kStages == 1 ? 0 : kStages - 2>", "kStages == 1 ? 0 : kStages - 1>"}},
       {"access to bytes in flight"},
       kTiles},
      {"copies that are never committed",
       {{kKernel, "    ptx::commit_copies();\n    const tile::ColumnTile next = window.tile(1);",
         "    const tile::ColumnTile next = window.tile(1);"}},
       {"access to bytes in flight"},
       kTiles},
      {"the next tile goes into the stage that is being read",
       {{kKernel, "const int free_stage = stage == 0 ? kStages - 1 : stage - 1;",
         "const int free_stage = stage;"}},
       races_or_unwritten,
       kTiles},
      {"V is read from the first stage always",
       {{kKernel, "value_lane + stage * kValueBytes);", "value_lane);"}},
       races_or_unwritten,
       kTiles},
      {"Q is never copied",
       {{kKernel, "queries.template start<kRows>(query_tile, first_row, rows.end);", ""}},
       {"uninitialised read"},
       {"ptx::load_matrices"}},
      {"rows beyond the end are read",
       {{"tile/copy.cuh", "exists ? source : tensor_;", "source;"},
        {"tile/copy.cuh", "exists ? 16 : 0;", "16;"}},
       {"out of bounds", "uninitialised read"},
       {"ptx::copy_async_16"}},
      {"a thread's chunk begins at half of 16 bytes",
       {{"tile/copy.cuh", "thread % Layout::kPhases * 16),", "thread % Layout::kPhases * 8),"}},
       {"misaligned address"},
       {"ptx::copy_async_16"}},
      {"rows of O beyond the end are written",
       {{"tile/row_io.cuh", "if (row + pass * kRowsPerPass < rows) {", "{"}},
       {"out of bounds"},
       {"ptx::store_global_16"}},
      {"LSE of rows beyond the end is written",
       {{"tile/row_io.cuh", "if (row >= at.rows) continue; const float lse", "const float lse"}},
       {"out of bounds", "global memory race"},  // beyond the end are rows of the next head
       {"params.lse["}},
      {"no __syncwarp between staging O and reading it",
       {{"tile/row_io.cuh", "  __syncwarp();\n", ""}},
       {"shared memory race"},
       {"ptx::store_shared", "ptx::load_shared_16"}},
      {"the list is read beyond the row",
       {{"tile/tile_row.cuh", "index < row_.count ? row_.entry(index) : 0;",
         "row_.entries[index + (1 << 24)];"}},
       {"out of bounds", "uninitialised read"},
       {"row_.entries[index"},
       kListed},
      {"a shuffle for half of the warp",
       {{"tile/softmax.cuh", "  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));",
         "  x = fmaxf(x, __shfl_xor_sync(0x0000ffffu, x, 1));"}},
       {"invalid operand"},
       {"__shfl_xor_sync(0x0000ffffu"}},
      {"a barrier for half of each warp",
       {{kKernel, kBarrier,
         "      ptx::wait_copies<kStages == 1 ? 0 : kStages - 2>();\n"
         "      if (lane < 16) __syncthreads();\n"}},
       {"divergent barrier", "deadlock"},
       {"__syncthreads", "ptx::load_matrices"}},
      {"one tile too many is started and not waited for",
       {{kKernel, "else if (current + kStages - 1 < row.count)", "else if (true)"},
        {kKernel, kLastWait, "if (row.count == 0) __syncthreads();"}},
       {"unwaited asynchronous effect"},
       {"}"}},
      {"one stage: the keys are overwritten before all have read them",
       {{kKernel, "      ptx::wait_copies<0>();\n      __syncthreads();\n      if (current + 1",
         "      ptx::wait_copies<0>();\n      if (current + 1"}},
       races_or_unwritten,
       kTiles,
       kOneStage},
      {"one stage: no barrier for the keys",
       {{kKernel, kBarrier, "      ptx::wait_copies<kStages == 1 ? 0 : kStages - 2>();\n"}},
       races_or_unwritten,
       kTiles,
       kOneStage},
      {"no keys: O is staged while others still fill Q",
       {{kKernel, "if (row.count == 0) __syncthreads();", ""}},
       kRaces,
       {"ptx::store_shared", "ptx::copy_async_16", "ptx::load_shared_16"},
       kNoKeys},
      // Mistakes that only the answer shows.
      {"keys beyond the end are not masked",
       {{kKernel, "if (now.partial || keys_left < kColumns) {", "if (now.partial) {"}},
       {"wrong answer"}},
      {"copies are swizzled for the next row",
       {{"tile/copy.cuh", "slot_(Layout::offset(row_, thread % Layout::kPhases)) {}",
         "slot_(row_ * Layout::kPitch + ((thread % Layout::kPhases ^ Layout::phase(row_ + 1)) << "
         "4)) {}"}},
       {"wrong answer"}},
      {"the old output is not rescaled",
       {{"tile/softmax.cuh", "output[r][d][i] *= correction[r][i / 2];", ";"}},
       {"wrong answer"}},
      {"tiles on the diagonal are taken for full ones",
       {{"params/tile_order_params.h",
         "return static_cast<unsigned>(i - full_begin) >= static_cast<unsigned>(full_count);",
         "return false;"}},
       {"wrong answer"},
       {},
       kCausal},
      {"a row of a band ends a tile early",
       {{"params/tile_order_params.h", "return {static_cast<int>(end - first), ",
         "return {static_cast<int>(end - first) - 1, "}},
       {"wrong answer"},
       {},
       kCausal},
      // Mistakes that only the counters show.
      {"no swizzle",
       {{"tile/swizzle.cuh", "return kPhases == 8 ? row % 8 : row / 2 % 4;", "return 0;"}},
       {"bank conflicts"}},
      // Redundant changes, which must not be reported as mistakes.
      {"a second barrier behind the first",
       {{kKernel, kBarrier, std::string(kBarrier) + "      __syncthreads();\n"}},
       {"nothing"}},
      {"no wait for the empty groups at the end",
       {{kKernel, kLastWait, "if (row.count == 0) __syncthreads();"}},
       {"nothing"}},
      {"unchanged, two stages", {}, {"nothing"}},
      {"unchanged, one stage", {}, {"nothing"}, {}, kOneStage},
      {"unchanged, listed", {}, {"nothing"}, {}, kListed},
      {"unchanged, causal", {}, {"nothing"}, {}, kCausal},
  };
}

// The problem has tails on both sides, and more tiles than two turns of any pipeline.
test::MutantRun run_of(const Mutant& mutant) {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = 64 + 5;
  problem.seq_k = mutant.variant == kNoKeys ? 0 : 64 * 6 + 3;
  problem.dim_qk = mutant.variant == kOneStage ? 192 : 64;
  problem.dim_v = mutant.variant == kOneStage ? 128 : 64;
  problem.want_lse = true;
  if (mutant.variant == kCausal) problem.pattern = causal();
  if (mutant.variant == kListed) problem.pattern = strided(1, 0, 64);  // all, block by block
  PlanOptions options;
  options.config = mutant.variant == kOneStage ? "mma m64 n64 w4 s1 x2" : "mma m64 n64 w4 s2 x3";
  return {.device = test::device_name(), .options = options, .problem = problem};
}

TEST_CASE("every mistake in the attention kernel is noticed, and redundancy is not") {
  if (!test::on_simulator()) return;
  if (test::nvrtc() == nullptr) return;
  base::ThreadPool pool;
  for (const Mutant& mutant : test::to_try(mutants())) {
    SUBCASE(mutant.name.c_str()) { test::try_mutant(mutant, run_of(mutant), pool); }
  }
}

}  // namespace
