#ifndef ANNULUS_PROGRAM_RUN_RUN_H_
#define ANNULUS_PROGRAM_RUN_RUN_H_

// The options of annulus run.

#include <optional>
#include <string>

#include "program/cli/exit.h"
#include "program/input/options.h"

namespace annulus::program {

// The value of RunArguments::ranks if a launcher started this process as one rank.
constexpr int kLaunchedRanks = 0;
constexpr int kDefaultDeadline = 30000;  // milliseconds

struct RunArguments {
  DeviceArguments device;
  ProblemArguments problem;
  BatchArguments batch;
  int ranks = 1;
  std::string shard = "zigzag";
  std::string route = "auto";
  bool processes = false;  // start one process per rank
  // The address for the rendezvous of launched ranks. If empty, the launcher's variables give it.
  std::string rendezvous;
  std::optional<int> deadline;  // how long ranks in processes wait, in milliseconds; 0: forever
  bool go_on = false;           // continue without ranks that have died or are late
  std::string seat;             // set in a started process: "RANK:FOLDER" (ring_processes.h)
  std::string picture;          // SVG file for the ring's schedule; empty: none
  std::string output;
  bool no_check = false;
  bool no_wait = false;  // run with a general kernel first
  int repeat = 1;
  bool json = false;
};

// Runs a batch of requests.
Exit run_batch(const RunArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RUN_H_
