#ifndef ANNULUS_PROGRAM_INPUT_PROBLEM_INPUT_H_
#define ANNULUS_PROGRAM_INPUT_PROBLEM_INPUT_H_

// Makes a problem and its operands from the options of the command line.

#include <functional>
#include <optional>
#include <string>

#include "annulus/device.h"
#include "annulus/problem.h"
#include "program/input/host_tensor.h"
#include "program/input/options.h"

namespace annulus::program {

// A problem with its operands, which are random or come from a file.
struct ProblemInput {
  Problem problem;
  HostTensor q, k, v;
  Order order = Order::kBshd;
  std::string origin;  // "random, seed 0", or the file
  // Finite values of the file that became infinite in the problem's dtype.
  std::int64_t overflowed = 0;
  bool shares_kv = false;  // K and V have one batch, which every batch of Q reads
};
// If `with_operands` is false, the tensors stay empty, but their shapes are set. `check` is called
// before the operands are made, and throws if the problem is not computed. Throws the Error of the
// input's kind.
ProblemInput make_input(const ProblemArguments& arguments, bool with_operands,
                        const std::function<void(const Problem&)>& check = {});

// The options of the plan. They contain the strides of the operands if K and V have one batch for
// all batches of Q.
PlanOptions plan_options(const ProblemArguments& arguments, const ProblemInput& input);

// The problem of a shape, for which no operands exist. `carry`: none, in, out or both.
Problem make_shape(const ProblemArguments& arguments, const std::string& carry);

// The pattern of --pattern. Throws what text_or_file throws, and TextError (text_error.h) for a
// text that does not parse.
Pattern parse_pattern(const std::string& option);

LseBase lse_base_of(const ProblemArguments& arguments);

// The share of visible pairs. Nothing if counting them would exceed --max-work.
std::optional<double> density_of(const Problem& problem, const ProblemArguments& arguments);
// A text with the share of visible pairs and the density of blocks.
std::string density_text(const std::optional<double>& pairs, double blocks);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_PROBLEM_INPUT_H_
