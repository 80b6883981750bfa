#ifndef ANNULUS_PROGRAM_RUN_EXPLAIN_H_
#define ANNULUS_PROGRAM_RUN_EXPLAIN_H_

// The options of annulus explain.

#include "program/cli/exit.h"
#include "program/input/options.h"

namespace annulus::program {

struct ExplainArguments {
  DeviceArguments device;
  ProblemArguments problem;
  BatchArguments batch;
  bool source = false;
  bool brief = false;
  bool json = false;
};

// Explains a batch of requests.
Exit explain_batch(const ExplainArguments& arguments);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_EXPLAIN_H_
