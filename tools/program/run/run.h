#ifndef ANNULUS_PROGRAM_RUN_RUN_H_
#define ANNULUS_PROGRAM_RUN_RUN_H_

// The options of annulus run.

#include <optional>
#include <string>

#include "program/cli/exit.h"
#include "program/input/options.h"

namespace annulus::program {

// RunArguments::ranks where this process is one rank, as the launcher that started it says.
constexpr int kLaunchedRanks = 0;
constexpr int kDefaultDeadline = 30000;  // milliseconds

struct RunArguments {
  DeviceArguments device;
  ProblemArguments problem;
  BatchArguments batch;
  int ranks = 1;
  std::string shard = "zigzag";
  std::string route = "auto";
  bool processes = false;       // starts a process for each rank
  std::string rendezvous;       // where launched ranks meet; empty: where the launcher says
  std::optional<int> deadline;  // milliseconds that ranks of processes wait; 0: any time
  bool go_on = false;           // without ranks that have died or are late
  std::string seat;             // of a process that was started: "RANK:FOLDER" (ring_processes.h)
  std::string picture;          // where to draw the ring's schedule; empty: nowhere
  std::string output;
  bool no_check = false;
  bool no_wait = false;  // runs with a general kernel first
  int repeat = 1;
  bool json = false;
};

// The verb for a batch of requests.
Exit run_batch(const RunArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RUN_H_
