#ifndef ANNULUS_PROGRAM_INPUT_PROBLEM_INPUT_H_
#define ANNULUS_PROGRAM_INPUT_PROBLEM_INPUT_H_

// From what the command line says of a problem to the problem, and to its operands.

#include <functional>
#include <optional>
#include <string>

#include "annulus/device.h"
#include "annulus/problem.h"
#include "program/input/host_tensor.h"
#include "program/input/options.h"

namespace annulus::program {

// The problem with its operands: from the file, or random. `with_operands` false leaves the tensors
// empty (their shapes are set). Throws Error of the input's kind.
struct ProblemInput {
  Problem problem;
  HostTensor q, k, v;
  Order order = Order::kBshd;
  std::string origin;           // "random, seed 0", or the file
  std::int64_t overflowed = 0;  // finite values of the file that its dtype here has no number for
  bool shares_kv = false;       // K and V are of one batch, which every batch of Q reads
};
// `check` throws for a problem that is not computed, before operands are made.
ProblemInput make_input(const ProblemArguments& arguments, bool with_operands,
                        const std::function<void(const Problem&)>& check = {});

// plan_options() with the strides of operands that are not those of whole batches.
PlanOptions plan_options(const ProblemArguments& arguments, const ProblemInput& input);

// The problem of a shape, whose operands nobody has. `carry`: none, in, out or both.
Problem make_shape(const ProblemArguments& arguments, const std::string& carry);

// The pattern that --pattern says. Throws as text_or_file, and TextError (text_error.h) for a text
// that does not parse.
Pattern parse_pattern(const std::string& option);

LseBase lse_base_of(const ProblemArguments& arguments);

// The share of visible pairs; nothing where counting them would take more than --max-work.
std::optional<double> density_of(const Problem& problem, const ProblemArguments& arguments);
// That in words, beside the density of blocks.
std::string density_text(const std::optional<double>& pairs, double blocks);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_PROBLEM_INPUT_H_
