#ifndef ANNULUS_PROGRAM_INPUT_BATCH_INPUT_H_
#define ANNULUS_PROGRAM_INPUT_BATCH_INPUT_H_

// From what the command line says of a batch of requests to the batch.

#include <string>
#include <string_view>
#include <vector>

#include "annulus/batch.h"
#include "annulus/tune.h"
#include "base/json.h"
#include "program/input/batch_step.h"
#include "program/input/options.h"

namespace annulus::program {

constexpr std::int64_t kMostRequests = 65535;  // as BatchBounds has it

struct BatchInput {
  BatchProblem problem;  // whose bounds hold the requests exactly, unless bounds were given
  std::vector<Request> requests;  // may be none where bounds were given
  Placing placing;
  BatchOptions options;
  std::string origin;  // "random, seed 0; pages of 16 rows by a table"

  std::int64_t queries() const;  // of all requests
  std::int64_t keys() const;
  // What tune_batch() measures: requests without queries or keys take no time.
  std::vector<StepRequests> step() const;
};

// "1/4096 x 8, 1/77, 512/2048": queries / keys of each request, and how many of them there are.
// Throws Error{kParse} with the column of what is none, and Error{kInvalidArgument} for numbers out
// of range.
std::vector<Request> parse_requests(std::string_view text);

// `carry` is as that of make_shape. Throws Error{kInvalidArgument} where options were given that
// batches do not have, and what make_shape, parse_requests and validate throw.
BatchInput make_batch(const ProblemArguments& problem, const BatchArguments& batch,
                      const std::string& carry = "none");

// As of a problem; for operands of requests, and their places.
void check_host_memory(const BatchInput& input);

// Says on stderr where that takes long.
BatchPlan plan_of(const Device& device, const BatchInput& input, std::int64_t max_work);

base::Json batch_json(const BatchInput& input);
std::string batch_text(const BatchInput& input);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_BATCH_INPUT_H_
