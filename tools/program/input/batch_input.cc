#include "program/input/batch_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "annulus/types.h"
#include "base/fail.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/text_error.h"
#include "program/input/host_memory.h"
#include "program/input/problem_input.h"

namespace annulus::program {
namespace {

// Parses a list of requests from its beginning.
class RequestReader {
 public:
  explicit RequestReader(std::string_view text) : text_(text) {}

  std::vector<Request> all() {
    std::vector<Request> requests;
    do {
      Request request;
      request.queries = number("queries", 0, kMaxPosition);
      if (!take('/')) fail("'/' between queries and keys");
      request.keys = number("keys", 0, kMaxPosition);
      const std::int64_t count = take('x') ? number("requests", 1, kMaxRequests) : 1;
      if (std::ssize(requests) + count > kMaxRequests) {
        base::fail(ErrorCode::kInvalidArgument,
                   "--requests has {} requests up to column {}, and a batch at most {}; leave some "
                   "out",
                   std::ssize(requests) + count, at_ + 1, kMaxRequests);
      }
      requests.insert(requests.end(), static_cast<std::size_t>(count), request);
    } while (take(','));
    if (at_ < text_.size()) fail("',' between requests, 'x' in front of their number, or the end");
    return requests;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool take(char sign) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != sign) return false;
    ++at_;
    skip_spaces();
    return true;
  }

  std::int64_t number(const char* of, std::int64_t least, std::int64_t most) {
    skip_spaces();
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) fail(fmt::format("a number of {}", of));
    if (error != std::errc() || value < least || value > most) {
      base::fail(ErrorCode::kInvalidArgument,
                 "column {} of --requests: {} is not a number of {}; give one from {} to {}",
                 at_ + 1, std::string_view(begin, end), of, least, most);
    }
    at_ += static_cast<std::size_t>(end - begin);
    skip_spaces();
    return value;
  }

  [[noreturn]] void fail(std::string_view expected) const {
    base::fail(ErrorCode::kParse,
               "column {} of --requests: expected {}; write \"queries/keys x count, ...\" as in "
               "\"1/4096 x 8, 512/2048\"",
               at_ + 1, expected);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

KeyInterleave interleave_of(const std::string& text) {
  KeyInterleave interleave;
  if (text.empty()) return interleave;
  const std::size_t at = text.find('/');
  interleave.block = two_numbers(text.substr(0, at), '/', "--interleave").first;
  std::tie(interleave.ranks, interleave.rank) =
      two_numbers(at == text.npos ? std::string() : text.substr(at + 1), '/',
                  "--interleave (BLOCK/RANKS/RANK)");
  return interleave;
}

void check_kv_dtype(const BatchArguments& batch, Dtype dtype) {
  if (batch.kv_dtype.empty() || batch.kv_dtype == to_string(dtype)) return;
  base::fail(
      ErrorCode::kUnsupported,
      "--kv-dtype is {}, but kernels of batches read K and V of the dtype of Q, which is {}; "
      "leave it out, or give --dtype",
      batch.kv_dtype, to_string(dtype));
}

}  // namespace

std::int64_t BatchInput::queries() const {
  std::int64_t sum = 0;
  for (const Request& request : requests) sum += request.queries;
  return sum;
}

std::int64_t BatchInput::keys() const {
  std::int64_t sum = 0;
  for (const Request& request : requests) sum += request.keys;
  return sum;
}

std::vector<StepRequests> BatchInput::step() const {
  std::vector<StepRequests> step;
  for (const Request& request : requests) {
    if (request.queries > 0 && request.keys > 0) step.push_back({1, request.queries, request.keys});
  }
  return step;
}

std::vector<Request> parse_requests(std::string_view text) { return RequestReader(text).all(); }

BatchInput make_batch(const ProblemArguments& arguments, const BatchArguments& batch,
                      const std::string& carry) {
  if (!batch.refused.empty()) base::fail(ErrorCode::kInvalidArgument, "{}", batch.refused);
  BatchInput input;
  if (batch.requests) {
    parse_shown(*batch.requests, [&] { input.requests = parse_requests(*batch.requests); });
  }
  for (std::size_t r = 0; r < input.requests.size(); ++r) {
    input.requests[r].position = arguments.k0.value_or(0);
    input.requests[r].seed = arguments.seed * kMaxRequests + r;
  }
  ProblemArguments shape = arguments;
  shape.k0.reset();
  shape.pattern = "dense";  // the pattern is parsed below, as it is for the lengths of the requests
  const Problem one = make_shape(shape, carry);
  BatchProblem& problem = input.problem;
  problem.heads = one.heads;
  problem.kv_heads = one.kv_heads;
  problem.dim_qk = one.dim_qk;
  problem.dim_v = one.dim_v;
  problem.dtype = one.dtype;
  problem.pattern = parse_pattern(arguments.pattern);
  problem.score = one.score;
  problem.page_rows = batch.page;
  problem.block_keys = batch.block_keys;
  problem.max_blocks = batch.max_blocks;
  problem.row_limits = batch.row_limits;
  problem.interleave = interleave_of(batch.interleave);
  problem.carry_in = one.carry_in;
  problem.carry_out = one.carry_out;
  problem.want_lse = !one.carry_out;
  problem.lse_base = lse_base_of(arguments);
  const bool listed = batch.table == "csr";
  input.placing = {.heads_first = arguments.layout == "bhsd",
                   .listed = listed,
                   .slabs = !listed,
                   .nan = true,
                   .gap = 1,
                   .seed = arguments.seed};
  if (batch.most.requests != 0) {
    problem.most = batch.most;
    // The default is one query for each request, as when every request decodes one token.
    if (problem.most.rows == 0) problem.most.rows = problem.most.requests;
  } else {
    problem.most = bounds_of(input.requests);
    problem.most.rows += 2 * input.placing.gap;
  }
  input.options.part_keys = batch.part_keys;
  input.options.max_multiprocessors = arguments.max_multiprocessors;
  input.options.config = arguments.config;
  validate(problem);
  check_kv_dtype(batch, problem.dtype);
  if (input.placing.heads_first && problem.page_rows == 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "--layout bhsd puts the heads of a page in front of its rows, but --page is 0; "
               "leave one of them out");
  }
  for (const Request& request : input.requests) validate(problem_of(problem, request));
  const char* const places = problem.page_rows > 0
                                 ? (listed ? "begins and ids" : "a table")
                                 : (listed ? "begins" : "a slab for each request");
  input.origin =
      fmt::format("random, seed {}; {} by {}", arguments.seed,
                  problem.page_rows > 0 ? fmt::format("pages of {} rows", problem.page_rows)
                                        : std::string("no pages, K and V"),
                  places);
  return input;
}

void check_host_memory(const BatchInput& input) {
  const BatchProblem& problem = input.problem;
  const double q = static_cast<double>(problem.most.rows * problem.heads);
  // The last page of a request may hold only one row, and a quarter of all pages belongs to no
  // request.
  const bool slabs = problem.page_rows == 0 && input.placing.slabs;
  double places = 0;
  for (const Request& request : input.requests) {
    const double rows = static_cast<double>(slabs ? problem.most.keys_of_one : request.keys);
    places += rows + static_cast<double>(problem.page_rows);
  }
  check_host_memory(q * static_cast<double>(problem.dim_qk) +
                        1.25 * places * static_cast<double>(problem.kv_heads) *
                            static_cast<double>(problem.dim_qk + problem.dim_v),
                    q * static_cast<double>(problem.dim_v),
                    "fewer requests, fewer heads or fewer keys");
}

BatchPlan plan_of(const Device& device, const BatchInput& input, std::int64_t max_work) {
  const Waiting waiting("planning and compiling");
  const WorkScope scope({.steps = max_work});
  return plan_batch(device, input.problem, input.options);
}

base::Json batch_json(const BatchInput& input) {
  base::Json json = problem_json(problem_of(input.problem, {}));
  for (const char* of_one : {"batch", "seq_q", "seq_k", "q0", "k0"}) json.erase(of_one);
  json["requests"] = std::ssize(input.requests);
  json["queries"] = input.queries();
  json["keys"] = input.keys();
  json["page_rows"] = input.problem.page_rows;
  const BatchBounds& most = input.problem.most;
  json["most"] = {{"requests", most.requests},
                  {"queries", most.rows},
                  {"queries_of_one", most.rows_of_one},
                  {"keys_of_one", most.keys_of_one},
                  {"keys", most.keys}};
  return json;
}

std::string batch_text(const BatchInput& input) {
  const BatchProblem& problem = input.problem;
  const std::string requests =
      input.requests.empty()
          ? fmt::format("up to {} requests of up to {} queries together and {} keys each",
                        problem.most.requests, problem.most.rows, problem.most.keys_of_one)
          : fmt::format("{} request{} of {} queries and {} keys together", input.requests.size(),
                        input.requests.size() == 1 ? "" : "s", input.queries(), input.keys());
  return fmt::format("{}, H{} Hkv{} D{} {}, {}", requests, problem.heads, problem.kv_heads,
                     dims_text(problem.dim_qk, problem.dim_v), to_string(problem.dtype),
                     problem.pattern.to_string());
}

}  // namespace annulus::program
