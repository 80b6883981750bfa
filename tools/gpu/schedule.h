#ifndef ANNULUS_TOOLS_GPU_SCHEDULE_H_
#define ANNULUS_TOOLS_GPU_SCHEDULE_H_

// Runs steps, several at a time, until a deadline. Each step is a program with a time limit. The
// schedule continues whatever a step does: a step that takes too long is killed, and a step that a
// driver does not release is abandoned.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "gpu/child.h"
#include "gpu/results.h"

namespace annulus::gpu {

using Clock = std::chrono::steady_clock;

struct Step {
  std::string name;
  Command command;
  double max_seconds = 30;
  // Exit codes other than 0 that are not failures.
  std::vector<int> good_exits = {};
  // Checks a JSON object that the step printed. Returns the error, or "" if the object is right. A
  // step with a check fails if it prints no object. Null: there is no check.
  std::function<std::string(const Json&)> check = nullptr;
  // Whether the step runs in every process, even if it ended in an earlier process.
  bool always = false;
  // Called when the step has ended, whatever its outcome.
  std::function<void()> after = nullptr;
};

// Steps of one kind. They start in this order, and at most `width` run at a time.
struct Group {
  std::string name;
  int width = 1;
  std::vector<Step> steps;
};

struct Tally {
  int passed = 0;
  int failed = 0;     // steps that ended with an error, hung or crashed
  int not_begun = 0;  // steps that did not begin or were ended by the deadline
  int earlier = 0;    // steps that had ended before, according to the results
};

// Runs the groups one after another and writes to the results. Prints a line for each step. Returns
// at the deadline at the latest, or up to a second later if killed programs take that long to end.
Tally run_groups(const std::vector<Group>& groups, Clock::time_point deadline, Results& results);

// Whether the output of a program that fails is used.
enum class Failing { kSaysNothing, kCounts };

// Runs a program that needs little time, and returns the lines that it prints. Returns no lines if
// it takes longer than `max_seconds`, or if it fails and `failing` is kSaysNothing.
std::vector<std::string> lines_of(const Command& command, double max_seconds,
                                  Failing failing = Failing::kSaysNothing);

}  // namespace annulus::gpu

#endif  // ANNULUS_TOOLS_GPU_SCHEDULE_H_
