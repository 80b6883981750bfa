#ifndef ANNULUS_PROGRAM_INPUT_SHAPES_H_
#define ANNULUS_PROGRAM_INPUT_SHAPES_H_

// Lists of problems to tune, from a file or built in. Each line has one shape, written as options
// of the command line. Blank lines and lines that begin with # are ignored:
//
//   # prefill, 8 query heads on 2 key heads
//   --heads 8 --kv-heads 2 --seq 4096 --dim 128 --pattern causal
//   --heads 8 --kv-heads 2 --seq 4096 --dim 128 --pattern "causal & (window(511,0) | global(16))"
//
// White space separates the words of a line. A word may be in quotes of one of three kinds (", '
// and `), and so may the text after the = of an option. A backslash before the quote character
// makes it a character of the word.
//
// The log of the shapes that an engine has planned (DeviceOptions::shape_log) is such a file. A
// line of a log that does not parse is left out with a message on stderr. In any other file it is
// an error.

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "annulus/kernels.h"
#include "annulus/problem.h"
#include "program/input/batch_input.h"

namespace annulus::program {

// A problem is tuned by one search. A batch is tuned by one search for each class of its requests.
using Tunable = std::variant<Problem, BatchInput>;

// The contents of a line: the options of a problem without operands, --carry, the options of a plan
// or of a batch, and --count, which is how often the shape was planned.
struct ShapeToTune {
  Tunable what;
  std::int64_t count = 0;  // 0 if not given
  std::string left_out;    // if there is nothing to tune, a text that says why: "plans of ..."
};
// Throws Error{kInvalidFile} for other words, and what make_shape and make_batch throw.
ShapeToTune parse_shape(const std::string& line);
// Adds the shape or the batch of such a line to the kernels to compile ahead. Throws like
// parse_shape().
void parse_warm_shape(const std::string& line, std::int64_t max_work, WarmWork* work);

// Reads the shapes of a preset (small, common) or of a file. The shapes with the highest counts
// come first, and shapes with equal counts keep their order. Lines with nothing to tune are left
// out, with one message on stderr. Throws Error{kFile} or Error{kInvalidFile} that names the line.
std::vector<Tunable> read_shapes(const std::string& name);

// Splits a line into words. Throws Error{kInvalidFile} with the column if quotes do not end at the
// end of a word.
std::vector<std::string> words_of(std::string_view line);

// Calls read() with each line of a preset or file.
void read_shape_lines(const std::string& name, const std::function<void(const std::string&)>& read);

// The shapes of a model of annulus/kernels.h. Throws Error{kInvalidArgument} if no model has that
// name.
std::vector<Problem> read_model(const std::string& name);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_SHAPES_H_
