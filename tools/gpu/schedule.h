#ifndef ANNULUS_TOOLS_GPU_SCHEDULE_H_
#define ANNULUS_TOOLS_GPU_SCHEDULE_H_

// Steps, each a program with a time limit, run several at a time until a deadline. Whatever a step
// does, the schedule goes on: a step that takes too long is killed, and one that a driver does not
// let go is left behind.

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
  // Exit codes besides 0 that are no failure.
  std::vector<int> good_exits = {};
  // Looks at a JSON object that the step printed. Returns why it is not as it should be; empty if
  // it is. A step that has a check and prints no object fails. Null: every object is good, and so
  // is none.
  std::function<std::string(const Json&)> check = nullptr;
  // Whether it is run in every process, also if it ended in an earlier one.
  bool always = false;
  // Called once the step has ended, whatever its outcome.
  std::function<void()> after = nullptr;
};

// Steps of one kind, of which up to `width` run at a time, in their order.
struct Group {
  std::string name;
  int width = 1;
  std::vector<Step> steps;
};

struct Tally {
  int passed = 0;
  int failed = 0;     // ended with an error, hung or crashed
  int not_begun = 0;  // or ended by the deadline
  int earlier = 0;    // had ended before, as the results say
};

// Runs the groups one after another and writes to the results. Prints a line for each step. Returns
// at the deadline at the latest, but for the time that a killed program needs to go, at most a
// second.
Tally run_groups(const std::vector<Group>& groups, Clock::time_point deadline, Results& results);

// Whether a program that fails has said anything.
enum class Failing { kSaysNothing, kCounts };

// Runs a program that answers at once and returns the lines that it prints; none if it takes longer
// or, unless that counts, fails.
std::vector<std::string> lines_of(const Command& command, double max_seconds,
                                  Failing failing = Failing::kSaysNothing);

}  // namespace annulus::gpu

#endif  // ANNULUS_TOOLS_GPU_SCHEDULE_H_
