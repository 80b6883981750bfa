#ifndef ANNULUS_PROGRAM_INPUT_BATCH_INPUT_H_
#define ANNULUS_PROGRAM_INPUT_BATCH_INPUT_H_

// Makes a batch of requests from the options of the command line.

#include <string>
#include <string_view>
#include <vector>

#include "annulus/batch.h"
#include "annulus/tune.h"
#include "base/json.h"
#include "program/input/batch_step.h"
#include "program/input/options.h"

namespace annulus::program {

constexpr std::int64_t kMaxRequests = 65535;  // the limit of BatchBounds::requests

struct BatchInput {
  // If no bounds were given, its bounds are exactly the bounds of the requests.
  BatchProblem problem;
  std::vector<Request> requests;  // may be empty if bounds were given
  Placing placing;
  BatchOptions options;
  std::string origin;  // "random, seed 0; pages of 16 rows by a table"

  std::int64_t queries() const;  // the sum over all requests
  std::int64_t keys() const;
  // The step that tune_batch() measures. It leaves out requests without queries or keys, which take
  // no time.
  std::vector<StepRequests> step() const;
};

// Parses "1/4096 x 8, 1/77, 512/2048": the queries and the keys of a request, and the number of
// such requests. Throws Error{kParse} with the column if the text is not such a list, and
// Error{kInvalidArgument} for a number that is out of range.
std::vector<Request> parse_requests(std::string_view text);

// `carry` is "none", "in", "out" or "both". Throws Error{kInvalidArgument} if an option was given
// that does not apply to batches. Also throws what make_shape, parse_requests and validate throw.
BatchInput make_batch(const ProblemArguments& problem, const BatchArguments& batch,
                      const std::string& carry = "none");

// Like check_host_memory() for a problem, with the operands of the requests at their places.
void check_host_memory(const BatchInput& input);

// Plans the batch. If that takes long, a line on stderr shows it.
BatchPlan plan_of(const Device& device, const BatchInput& input, std::int64_t max_work);

base::Json batch_json(const BatchInput& input);
std::string batch_text(const BatchInput& input);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_INPUT_BATCH_INPUT_H_
