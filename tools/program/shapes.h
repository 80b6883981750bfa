#ifndef ANNULUS_PROGRAM_SHAPES_H_
#define ANNULUS_PROGRAM_SHAPES_H_

// Lists of problems to tune: from a file or built in. One shape on each line, written as options of
// the command line; blank lines and lines that begin with # say nothing:
//
//   # prefill, 8 query heads on 2 key heads
//   --heads 8 --kv-heads 2 --seq 4096 --dim 128 --pattern causal
//   --heads 8 --kv-heads 2 --seq 4096 --dim 128 --pattern "causal & (window(511,0) | global(16))"
//
// A log of what an engine has planned (DeviceOptions::shape_log) is such a file.

#include <functional>
#include <string>
#include <vector>

#include "annulus/attention.h"

namespace annulus::program {

// `name` is a preset (small, common) or a path. Those with the highest counts first, others in
// their order. Lines of which nothing can be tuned are left out, and one line on stderr says so.
// Throws Error{kFile} or Error{kInvalidFile}, naming the line.
std::vector<Problem> read_shapes(const std::string& name);

// Calls read() with each line of such a list.
void read_shape_lines(const std::string& name, const std::function<void(const std::string&)>& read);

// Gives the shapes of a model of annulus/models.h, by its name. Throws Error{kInvalidArgument}
// where none has it.
std::vector<Problem> read_model(const std::string& name);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_SHAPES_H_
