// Mutants of the kernel that merges: each mistake is a fault of the checked mode, or memory that is
// not as it should be.

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "batch/merge_case.h"
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
       {{kMerge, "if (row.counted == 1) return only;", ""}},
       kWrong},
      {"the LSE of the first input goes before others have read it",
       {{kMerge, "__syncwarp(0xffu << (threadIdx.x % 32 / kRowThreads * kRowThreads));", ""}},
       {"global memory race"}},
      {"heads of O lie as those of the inputs",
       {{kMerge, "head * params.merged_o_head;", "head * params.o_head;"}},
       kElsewhere},
  };
}

// In place, or not; the last row of the bound is not there.
bool is_right(const Device& device, bool in_place) {
  const MergeProblem problem = {.heads = 2, .dim_v = 72, .inputs = 2, .most_rows = 6};
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

}  // namespace
