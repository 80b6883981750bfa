#ifndef ANNULUS_PROGRAM_INPUT_SHAPES_H_
#define ANNULUS_PROGRAM_INPUT_SHAPES_H_

// Lists of problems to tune: from a file or built in. One shape on each line, written as options of
// the command line; blank lines and lines that begin with # say nothing:
//
//   # prefill, 8 query heads on 2 key heads
//   --heads 8 --kv-heads 2 --seq 4096 --dim 128 --pattern causal
//   --heads 8 --kv-heads 2 --seq 4096 --dim 128 --pattern "causal & (window(511,0) | global(16))"
//
// White space separates the words of a line. A word, or what follows the = of an option, may be in
// quotes of one of three kinds (", ' and `), of which a backslash makes a character of the word.
//
// A log of what an engine has planned (DeviceOptions::shape_log) is such a file. A line of a log
// that does not parse is left out, and stderr names it; in any other file it is an error.

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "annulus/kernels.h"
#include "annulus/problem.h"
#include "program/input/batch_input.h"

namespace annulus::program {

// What is tuned by one search, or by one for each class of a batch's requests.
using Tunable = std::variant<Problem, BatchInput>;

// What a line says: the options of a problem without operands, --carry, those of a plan or of a
// batch, and --count, how often it was planned.
struct ShapeToTune {
  Tunable what;
  std::int64_t count = 0;  // not given: 0
  std::string left_out;    // what it is where there is nothing to tune: "plans of ..."
};
// Throws Error{kInvalidFile} for other words, else as make_shape and make_batch.
ShapeToTune parse_shape(const std::string& line);
// What such a line asks for where kernels are compiled ahead. Likewise.
void parse_warm_shape(const std::string& line, std::int64_t max_work, WarmWork* work);

// `name` is a preset (small, common) or a path. Those with the highest counts first, others in
// their order. Lines of which nothing can be tuned are left out, and one line on stderr says so.
// Throws Error{kFile} or Error{kInvalidFile}, naming the line.
std::vector<Tunable> read_shapes(const std::string& name);

// The words of a line. Throws Error{kInvalidFile} with the column of quotes that do not end where a
// word does.
std::vector<std::string> words_of(std::string_view line);

// Calls read() with each line of such a list.
void read_shape_lines(const std::string& name, const std::function<void(const std::string&)>& read);

// Gives the shapes of a model of annulus/kernels.h, by its name. Throws Error{kInvalidArgument}
// where none has it.
std::vector<Problem> read_model(const std::string& name);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_SHAPES_H_
