#ifndef ANNULUS_TOOLS_GPU_CALLS_H_
#define ANNULUS_TOOLS_GPU_CALLS_H_

// What the calls of gpu_check run, in which order: first what the kernels rest on, then the kernels
// themselves, then what takes longest.

#include <string>
#include <vector>

#include "gpu/schedule.h"

namespace annulus::gpu {

// The folder that holds the programs, the kernels and the lists (tools/gpu_check makes it), and how
// they are run.
struct Kit {
  std::string folder;
  std::string scratch;  // an empty folder of this process
  std::string device = "cuda:0";
  // Simulated devices take the place of the GPU: problems of questions and timings are small.
  bool rehearsal = false;
  std::string python;  // empty: there is none
  bool torch = false;  // whether that python has PyTorch
  std::vector<std::string> variables;
  std::string shape_log;  // where the lines count what they plan (annulus run --shape-log)

  std::string path(const std::string& name) const { return folder + "/" + name; }
  Command command(std::vector<std::string> words) const {
    return {.words = std::move(words), .variables = variables};
  }
};

// A line of right.lines. Throws std::runtime_error where the text is none.
//   wgmma: run -H 4 -S 1024 -D 128           annulus run, whose kernel must be of that family
//   decode, chunk: run --requests "1/512"    of a batch, those of both classes of requests
//   test: batch/merge_test.cc "empty*"       the test cases of a file whose names match
struct Line {
  std::string expected;            // families, ", " between them; or "test"
  std::vector<std::string> words;  // after "run"; or the file and the names
  std::string text;                // the line without what is expected
};
Line parse_line(const std::string& text);
std::vector<Line> read_lines(const std::string& path);

// Is everything right?
std::vector<Group> right_groups(const Kit& kit, Results& results);
// How fast is it? Of so many seconds, tune_seconds at the end are for the tuner; 0: it does not
// run.
std::vector<Group> fast_groups(const Kit& kit, double seconds, double tune_seconds,
                               Results& results);

}  // namespace annulus::gpu

#endif  // ANNULUS_TOOLS_GPU_CALLS_H_
