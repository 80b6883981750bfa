#ifndef ANNULUS_PROGRAM_RUN_RUN_RESULT_H_
#define ANNULUS_PROGRAM_RUN_RUN_RESULT_H_

// What annulus run found out, and how it tells it.

#include <optional>

#include "annulus/device.h"
#include "base/json.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"
#include "program/run/checked.h"
#include "program/run/ring_run.h"
#include "program/run/run.h"

namespace annulus::program {

// What came of a run that did not wait for the problem's own kernel.
struct LateAnswer {
  std::string general_config;  // that the first answer came from
  double answered_millis = 0;  // of this machine, from the call for a plan to the first answer
  double swapped_millis = 0;   // from that call until the own kernel was there, or was given up
  std::string why_general;     // why it was given up; else empty
  std::optional<double> difference = {};  // between the first answer and the own kernel's
};

struct RunResult {
  ProblemInput input;
  Device device;
  Plan plan;                      // of one rank
  std::optional<double> density;  // of pairs; nothing where that is too much to count
  std::vector<double> millis = {};
  // Seconds of this machine: to plan and compile, to run, to compare with the oracle.
  double plan_seconds = 0, run_seconds = 0, check_seconds = 0;
  Counters counters = {};  // of all distinct devices

  std::optional<RingAnswer> ring = {};    // without its answer
  std::optional<double> difference = {};  // between the ring and one rank
  bool around = false;                    // the ring has several ranks, and made the answer
  std::optional<LateAnswer> late = {};

  Checked checked = {};
};

base::Json run_json(const RunResult& result, const RunArguments& arguments);
void print_run(const RunResult& result, const RunArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RUN_RESULT_H_
