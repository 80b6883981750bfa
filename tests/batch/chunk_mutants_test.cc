// Mutants of the kernel that computes chunks of prompts on sm_90a. Each mistake must cause a fault
// of the checked mode, or a wrong answer of some request.

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "batch/step_mutants.h"

namespace {

using namespace annulus;
using test::kEarly;
using test::kElsewhere;
using test::kWrong;
using test::Mutant;
using test::Request;

constexpr char kProducer[] = "kernels/batch/chunk_producer.cuh";
constexpr char kConsumer[] = "kernels/batch/chunk_consumer.cuh";

std::vector<Mutant> mutants() {
  const std::set<std::string> kLate = {"wrong answer",
                                       "deadlock",
                                       "barrier misuse",
                                       "shared memory race",
                                       "access to bytes in flight",
                                       "uninitialised read"};
  return {
      {"nothing is changed", {}, {"nothing"}},
      // Mistakes in reads, and in zeros that replace missing keys.
      {"keys that are not there are read",
       {{kProducer, "load(maps.row, key, is_there ? origin.row + row : -1, page_of_unit(page));",
         "load(maps.row, key, origin.row + row, page_of_unit(page));"}},
       kElsewhere},
      {"parts without keys keep what they had",
       {{kProducer, "if (lane_ < kParts && (in_rows >> lane_ & 1u) == 0) {",
         "if (lane_ < kParts && (in_rows >> lane_ & 1u) == 0 && keys != 0) {"}},
       kLate},
      {"queries of nobody are read",
       {{kProducer, "query < work.row.queries ? work.row.q_row + query : -1",
         "work.row.q_row + query"}},
       kElsewhere},
      {"rows without a query keep what they had",
       {{"kernels/batch/chunk_wgmma_forward.cu", "clear_rest<Shape>(params, shared);", ""}},
       kEarly},
      {"the places of a step are those of the one before",
       {{kProducer, "next = find(tables, work.row.runs, tiles.key(i + 1, 0));",
         "next = find(tables, work.row.runs, tiles.key(i, 0));"}},
       kElsewhere},
      {"no step is masked", {{kProducer, "!(step.whole && full);", "0u;"}}, kWrong},
      // Mistakes in waits and releases.
      {"keys are not waited for",
       {{kConsumer, "ptx::wait(barrier(place_, 0), place_.parity);\n      turns_.take();",
         "turns_.take();"}},
       kLate},
      {"free keys are not waited for",
       {{kProducer, "ptx::wait(barriers + ptx::kBarrierBytes, place_.parity ^ 1);", ""}},
       kLate},
      {"Q is given back before its last scores",
       {{kConsumer, "    release_queries();\n    if constexpr (kRescaleFirst)",
         "    if constexpr (kRescaleFirst)"},
        {kConsumer, "#pragma unroll 1\n    for (int step = 1; step < steps; ++step) {",
         "    release_queries();\n#pragma unroll 1\n    for (int step = 1; step < steps; ++step) "
         "{"}},
       kLate},
      {"a work is told over the one that is finished",
       {{kProducer, "memory_ + Layout::kWorks)[parity];", "memory_ + Layout::kWorks)[0];"},
        {kConsumer, "memory_ + Layout::kWorks)[parity]);", "memory_ + Layout::kWorks)[0]);"}},
       kLate},
      // Mistakes in outputs.
      {"the lower rows leave as the upper ones",
       {{kConsumer, "const float first = lower ? others[i] : own;",
         "const float first = others[i];"}},
       kWrong},
  };
}

// Runs on one multiprocessor, so that works follow one another, and with more steps than stages.
TEST_CASE("mistakes in the kernel of chunks for sm_90a are noticed") {
  const std::vector<Request> requests = {{37, 550, 0, 1}, {45, 250, 5, 2}};
  BatchProblem problem = test::problem_for(requests, 6);
  problem.pattern = Pattern::parse("causal & window(450, 0)");
  problem.most.rows += 2;  // rows that belong to no request
  BatchOptions options;
  options.max_multiprocessors = 1;
  test::try_steps(mutants(), "sim:sm_90a", problem, options, requests);
}

}  // namespace
