// Mutants of the kernel that merges. Each mistake must cause a fault of the checked mode, or wrong
// contents of memory.

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "batch/merge_case.h"
#include "batch/partial_answers.h"
#include "support/device.h"
#include "support/mutant.h"
#include "support/nvrtc.h"

namespace {

using namespace annulus;
using test::MergeCase;
using test::Mutant;

constexpr char kMerge[] = "kernels/batch/merge_outputs.cu";

const std::set<std::string> kWrong = {"wrong answer"};
const std::set<std::string> kElsewhere = {"wrong answer", "uninitialised read", "out of bounds",
                                          "global memory race"};

std::vector<Mutant> mutants() {
  return {
      {"nothing is changed", {}, {"nothing"}},
      {"the O of empty inputs is read",
       {{kMerge, " || !row.counts(first + i)) continue;\n      pieces[i] =",
         ") continue;\n      pieces[i] ="}},
       {"uninitialised read"}},
      {"a row more than there are",
       {{kMerge, "if (number >= rows)", "if (number > rows)"}},
       kElsewhere},
      {"as if LSE had base 2", {{kMerge, "},\n        params.unit);", "});"}}, kWrong},
      {"a row of one input passes through the sum",
       {{kMerge, "if (!Shape::kSinkLogit && row.counted == 1) return only;", ""}},
       kWrong},
      {"the LSE of the first input goes before others have read it",
       {{kMerge, "__syncwarp(0xffu << (threadIdx.x % 32 / kRowThreads * kRowThreads));", ""}},
       {"global memory race"}},
      {"heads of O lie as those of the inputs",
       {{kMerge, "head * params.merged_o_head;", "head * params.o_head;"}},
       kElsewhere},
  };
}

// Mistakes in merging states and in counting sinks.
std::vector<Mutant> mutants_of_states() {
  return {
      {"nothing is changed", {}, {"nothing"}},
      {"the sink is left out", {{kMerge, "take(sink, 1.0f);", "take(sink, 0.0f);"}}, kWrong},
      {"a sink counts to the base of m",
       {{kMerge, "params.sinks[head] * params.sink_unit", "params.sinks[head]"}},
       kWrong},
      {"all heads have one sink", {{kMerge, "params.sinks[head]", "params.sinks[0]"}}, kWrong},
      {"a row of one input has no sink",
       {{kMerge, "if (!Shape::kSinkLogit && row.counted == 1) return only;",
         "if (row.counted == 1) return only;"}},
       kWrong},
      {"m of a state without a key counts",
       {{kMerge, "counts(i) ? lse[i] : tile::minus_infinity();", "lse[i];"}},
       kWrong},
      {"sums are 1",
       {{kMerge, "if constexpr (kStates) return l[input];\n    return 1.0f;", "return 1.0f;"}},
       kWrong},
      {"acc is not divided by the sum",
       {{kMerge, "for (int e = 0; e < 4; ++e) sum[e] *= inverse;", ""}},
       kWrong},
      {"acc of empty states is read",
       {{kMerge,
         "|| !row.counts(first + i)) continue;\n      const float weight = "
         "row.joined.weight(row.lse[first + i]);\n#pragma unroll\n      for (int e = 0; e < 4; "
         "++e)",
         ") continue;\n      const float weight = "
         "row.joined.weight(row.lse[first + i]);\n#pragma unroll\n      for (int e = 0; e < 4; "
         "++e)"},
        {kMerge, "|| !row.counts(first + i)) continue;\n      tile::load_columns",
         ") continue;\n      tile::load_columns"}},
       kWrong},
      {"LSE of states has base 2",
       {{kMerge, "return (joined.row_max + ptx::log2(joined.sum)) * params.inverse_unit;",
         "return joined.row_max + ptx::log2(joined.sum);"}},
       kWrong},
  };
}

// Merges in place or not. The step has one row less than the bound.
bool is_right(const Device& device, bool in_place) {
  const MergeProblem problem = {.heads = 2, .dim_v = 72, .inputs = 2, .max_rows = 6};
  MergeCase made(device, problem, {.in_place = in_place, .seed = 3});
  for (std::uint16_t& bits : made.at(2, 1).o[1]) bits = 0x8000;  // -0
  for (std::uint16_t& bits : made.at(2, 1).o[0]) bits = 0x8000;
  made.upload(5);
  MergeOperands operands = made.operands();
  operands.rows = made.put(5);
  plan_merge(device, problem).run(nullptr, operands);
  return made.first_wrong().empty();
}

TEST_CASE("mistakes in the kernel that merges are noticed") {
  if (!test::on_simulator() || !test::nvrtc()) return;
  test::MutantRun run;
  run.device = test::device_name();
  run.seeds = 2;
  for (const Mutant& mutant : test::to_try(mutants())) {
    CAPTURE(mutant.name);
    test::try_mutant(mutant, run, [&](const Device& device) {
      return is_right(device, false) && is_right(device, true);
    });
  }
}

TEST_CASE("mistakes about states and sinks are noticed") {
  if (!test::on_simulator() || !test::nvrtc()) return;
  test::MutantRun run;
  run.device = test::device_name();
  run.seeds = 1;
  for (const Mutant& mutant : test::to_try(mutants_of_states())) {
    CAPTURE(mutant.name);
    test::try_mutant(mutant, run, [&](const Device& device) {
      MergeProblem problem = {.heads = 3, .dim_v = 72, .inputs = 2, .max_rows = 6};
      problem.sink_logits = true;
      for (const PartialForm form : {PartialForm::kOutputs, PartialForm::kStates}) {
        problem.form = form;
        test::PartialAnswers partial(device, problem, 7);
        plan_merge(device, problem).run(nullptr, partial.operands());
        if (!partial.first_wrong().empty()) return false;
      }
      return true;
    });
  }
}

}  // namespace
