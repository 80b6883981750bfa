#ifndef ANNULUS_PROGRAM_RUN_RUN_RESULT_H_
#define ANNULUS_PROGRAM_RUN_RUN_RESULT_H_

// The results of annulus run, and their output.

#include <optional>

#include "annulus/device.h"
#include "base/json.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"
#include "program/run/checked.h"
#include "program/run/ring_run.h"
#include "program/run/run.h"

namespace annulus::program {

// The results of a run that did not wait for the problem's own kernel.
struct LateAnswer {
  std::string general_config;  // the configuration that gave the first answer
  double answered_millis = 0;  // host time from the call for a plan to the first answer
  // Host time from that call until the problem's own kernel was ready, or failed.
  double swapped_millis = 0;
  std::string why_general;  // the reason if this problem's own kernel failed, else empty
  // The difference between the first answer and the answer of this problem's own kernel.
  std::optional<double> difference = {};
};

struct RunResult {
  ProblemInput input;
  Device device;
  Plan plan;  // the plan for one rank
  // The share of visible pairs; nothing if counting them takes too much work.
  std::optional<double> density;
  std::vector<double> millis = {};
  // Seconds of host time to plan and compile, to run, and to compare with the oracle.
  double plan_seconds = 0, run_seconds = 0, check_seconds = 0;
  Counters counters = {};  // the sum over all distinct devices

  std::optional<RingAnswer> ring = {};    // without its answer, which was moved out
  std::optional<double> difference = {};  // between the answers of the ring and of one rank
  bool around = false;                    // the ring has several ranks and gave the answer
  std::optional<LateAnswer> late = {};

  Checked checked = {};
};

base::Json run_json(const RunResult& result, const RunArguments& arguments);
void print_run(const RunResult& result, const RunArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RUN_RESULT_H_
