// Mutants of the kernels of batches with keys that are interleaved between ranks. With each mistake
// some rank must have a fault of the checked mode, or the merged answers must be wrong.

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "batch/interleaved_step.h"
#include "batch/step_mutants.h"
#include "support/device.h"
#include "support/nvrtc.h"

namespace {

using namespace annulus;
using test::kElsewhere;
using test::kWrong;
using test::Mutant;
using test::Request;

constexpr char kParams[] = "params/batch_params.h";
constexpr char kPositions[] = "tile/key_positions.cuh";
constexpr char kPrepare[] = "kernels/batch/prepare_batch.cu";

std::vector<Mutant> mutants() {
  return {
      {"nothing is changed", {}, {"nothing"}},
      {"the last block counts as whole",
       {{kParams, "(rest < 0 ? 0 : rest < block ? rest : block)", "(rest <= 0 ? 0 : block)"}},
       kElsewhere},
      {"the last block has a key less",
       {{kParams, "(rest < 0 ? 0 : rest < block ? rest : block)",
         "(rest <= 0 ? 0 : rest <= block ? rest - 1 : block)"}},
       kWrong},
      {"every rank has as many keys as the first",
       {{kParams, "const int rest = keys - whole * period - before;",
         "const int rest = keys - whole * period;"}},
       kElsewhere},
      {"positions count the keys of a rank",
       {{kPositions, "return k_position + interleave.key(first + column);",
         "return k_position + first + column;"}},
       kWrong},
      {"positions are those of the first rank",
       {{kParams, "* (period - block) + before;", "* (period - block);"}},
       kWrong},
      {"a window begins and ends a key late",
       {{kPositions, "const long long keys = position - static_cast<long long>(k_position) + 1;",
         "const long long keys = position - static_cast<long long>(k_position) + 2;"}},
       kWrong},
      {"a window is cut in the keys of a rank",
       {{kPositions,
         "interleave.held(static_cast<int>(keys < 0 ? 0 : keys < kMost ? keys : kMost))",
         "static_cast<int>(keys)"}},
       kWrong},
      {"runs count all keys",
       {{kPrepare, "if constexpr (Shape::kInterleaved) row.runs.count_held(params.interleave);",
         ""}},
       kElsewhere},
      {"a run of which a rank has no key stays in front of others",
       {{kParams, "if (i > last || begin[i] < end[i]) continue;",
         "if (i > last || begin[i] <= end[i]) continue;"}},
       kWrong},
      {"what all rows see begins below 0",
       {{kParams, "of.held(full_end[i] > 0 ? full_end[i] : 0);", "of.held(full_end[i]);"}},
       kWrong},
      {"limits of rows count the keys of a rank",
       {{"tile/row_limits.cuh", "if constexpr (kInterleaved) key = params.interleave.key(key);",
         ""}},
       kWrong},
      {"pages are asked for the keys of all ranks",
       {{kPrepare,
         "if constexpr (Shape::kInterleaved) held = params.interleave.held(request.keys);", ""}},
       kWrong},
  };
}

TEST_CASE("mistakes about interleaved keys are noticed") {
  if (!test::on_simulator() || !test::nvrtc()) return;
  const std::vector<Request> requests = {{1, 300, 0, 1}, {3, 258, 0, 2},  {4, 19, 5, 3},
                                         {16, 90, 0, 4}, {40, 130, 0, 5}, {2, 2, 0, 6}};
  BatchProblem problem = test::problem_for(requests, 4);
  problem.pattern = Pattern::parse("causal & (window(100, 0) | sink(3) | keys(21, 24))");
  problem.score.alibi = {0.02, -0.01};
  problem.row_limits = true;
  problem.interleave = {.block = 3, .ranks = 5, .rank = 0};
  test::MutantRun run;
  run.device = test::device_name();
  run.seeds = 2;
  for (const Mutant& mutant : test::to_try(mutants())) {
    CAPTURE(mutant.name);
    test::try_mutant(mutant, run, [&](const Device& on) {
      test::InterleavedStep step(on, problem, test::in_parts(), requests,
                                 {.listed = true, .own_tables = true, .nan = true, .seed = 3});
      return step.broken_rule() == BatchRule::kNone && step.first_wrong().empty();
    });
  }
}

}  // namespace
