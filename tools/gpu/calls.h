#ifndef ANNULUS_TOOLS_GPU_CALLS_H_
#define ANNULUS_TOOLS_GPU_CALLS_H_

// The steps of the calls of gpu_check, in this order: first the properties on which the kernels
// depend, then the kernels themselves, and last the steps that take longest.

#include <string>
#include <vector>

#include "gpu/schedule.h"

namespace annulus::gpu {

// The folder with the programs, the kernels and the lists, which tools/gpu_check makes, and the
// settings for running the programs.
struct Kit {
  std::string folder;
  std::string scratch;  // an empty folder for this process
  std::string device = "cuda:0";
  // Simulated devices take the place of the GPU, and the problems of questions and timings are
  // small.
  bool rehearsal = false;
  std::string python;  // empty: there is no python
  bool torch = false;  // whether that python has PyTorch
  std::vector<std::string> variables;
  // File in which the lines count the shapes that they plan (annulus run --shape-log)
  std::string shape_log;

  std::string path(const std::string& name) const { return folder + "/" + name; }
  Command command(std::vector<std::string> words) const {
    return {.words = std::move(words), .variables = variables};
  }
};

// A line of right.lines. Throws std::runtime_error if the text is not such a line.
//   wgmma: run -H 4 -S 1024 -D 128           annulus run, whose kernel must be of that family
//   decode, chunk: run --requests "1/512"    for a batch, the families of both request classes
//   test: batch/merge_test.cc "empty*"       the test cases of a file whose names match
struct Line {
  std::string expected;            // families with ", " between them, or "test"
  std::vector<std::string> words;  // the words after "run", or the file and the names
  std::string text;                // the line without `expected`
};
Line parse_line(const std::string& text);
std::vector<Line> read_lines(const std::string& path);

// The groups that check correctness.
std::vector<Group> right_groups(const Kit& kit, Results& results);
// The groups that measure speed in `seconds` seconds. The last tune_seconds of them are for the
// tuner. If tune_seconds is 0, the tuner does not run.
std::vector<Group> fast_groups(const Kit& kit, double seconds, double tune_seconds,
                               Results& results);

}  // namespace annulus::gpu

#endif  // ANNULUS_TOOLS_GPU_CALLS_H_
