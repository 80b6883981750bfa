#include "program/input/problem_input.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/fail.h"
#include "program/cli/number_option.h"
#include "program/cli/paths.h"
#include "program/cli/text_error.h"
#include "program/input/host_memory.h"

namespace annulus::program {
namespace {

double parse_number(const std::string& text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    base::fail(ErrorCode::kInvalidArgument, "'{}' in {} is not a number", text, what);
  }
  return value;
}

// Sets the sizes of the problem from the options, if there is no file.
void take_shape(const ProblemArguments& arguments, Problem* problem) {
  problem->batch = arguments.batch;
  problem->heads = arguments.heads;
  problem->kv_heads = arguments.kv_heads == 0 ? arguments.heads : arguments.kv_heads;
  problem->seq_q = arguments.seq;
  problem->seq_k = arguments.seq_k.value_or(arguments.seq);
  std::tie(problem->dim_qk, problem->dim_v) = two_numbers(arguments.dim, '/', "--dim");
}

void take_rules(const ProblemArguments& arguments, Problem* problem) {
  problem->pattern = parse_pattern(arguments.pattern);
  problem->layer = arguments.layer;
  const std::string score = text_or_file(arguments.score);
  parse_shown(score, [&] { problem->score = Score::parse(score); });
  problem->q0 = arguments.q0;
  problem->k0 = arguments.k0;
  const auto once = [](const char* option, bool in_text) {
    if (!in_text) return;
    base::fail(ErrorCode::kInvalidArgument,
               "{} and --score set the same part of the scores; give one of them", option);
  };
  if (!arguments.scale.empty()) {
    once("--scale", problem->score.scale.has_value());
    problem->score.scale = parse_number(arguments.scale, "--scale");
  }
  if (arguments.softcap != 0) {
    once("--softcap", problem->score.softcap != 0);
    problem->score.softcap = arguments.softcap;
  }
}

void take_dtype(const ProblemArguments& arguments, Problem* problem) {
  problem->dtype = arguments.dtype == "fp16"   ? Dtype::kFloat16
                   : arguments.dtype == "e4m3" ? Dtype::kFloat8E4M3
                                               : Dtype::kBfloat16;
  if (problem->dtype != Dtype::kFloat8E4M3) {
    if (!arguments.scale_block) return;
    base::fail(ErrorCode::kInvalidArgument,
               "--scale-block is {}, but {} operands have no scales; leave it out, or give --dtype "
               "e4m3",
               *arguments.scale_block, to_string(problem->dtype));
  }
  const std::int64_t rows = arguments.scale_block.value_or(64);
  problem->scale_blocks = {rows, rows, rows};
}

// Reads the operands and their sizes from the input file. If the problem is in e4m3, the operands
// are converted to e4m3 later. Returns the dtype of the operands.
Dtype take_file(const ProblemArguments& arguments, Dtype made_as, ProblemInput* input) {
  Problem& problem = input->problem;
  const bool float8 = problem.dtype == Dtype::kFloat8E4M3;
  LoadedTensors loaded =
      load_tensors(arguments.input, input->order, made_as, !arguments.dtype.empty() && !float8);
  problem.batch = loaded.q.batch;
  problem.heads = loaded.q.heads;
  problem.kv_heads = loaded.k.heads;
  problem.seq_q = loaded.q.rows;
  problem.seq_k = loaded.k.rows;
  problem.dim_qk = loaded.q.dim;
  problem.dim_v = loaded.v.dim;
  if (!float8) problem.dtype = loaded.dtype;
  input->q = std::move(loaded.q);
  input->k = std::move(loaded.k);
  input->v = std::move(loaded.v);
  input->shares_kv = input->k.is_shared;
  input->overflowed = loaded.overflowed;
  input->origin =
      fmt::format("{} ({} as {})", arguments.input, loaded.stored_as, to_string(problem.dtype));
  if (loaded.overflowed > 0) {
    input->origin += fmt::format(", {} finite values became infinite in {}", loaded.overflowed,
                                 to_string(loaded.dtype));
  }
  // If there are more heads than keys, the file probably has the other order.
  if (arguments.layout.empty() && input->k.heads > input->k.rows && input->k.rows > 0) {
    input->origin += fmt::format(
        "; K has {} heads of {} rows: if the file is [B, H, S, D], give --layout bhsd, else "
        "--layout bshd",
        input->k.heads, input->k.rows);
  }
  return loaded.dtype;
}

// Makes random operands for a valid problem.
void make_operands(std::int64_t kv_batch, std::uint64_t seed, Dtype dtype, ProblemInput* input) {
  const Problem& problem = input->problem;
  const Order order = input->order;
  check_host_memory(problem);
  input->q = make_tensor(problem.batch, problem.seq_q, problem.heads, problem.dim_qk, order);
  input->k = make_tensor(kv_batch, problem.seq_k, problem.kv_heads, problem.dim_qk, order);
  input->v = make_tensor(kv_batch, problem.seq_k, problem.kv_heads, problem.dim_v, order);
  input->k.is_shared = input->v.is_shared = input->shares_kv;
  fill_normal(input->q, dtype, 3 * seed);
  fill_normal(input->k, dtype, 3 * seed + 1);
  fill_normal(input->v, dtype, 3 * seed + 2);
}

}  // namespace

Pattern parse_pattern(const std::string& option) {
  const std::string text = text_or_file(option);
  Pattern pattern;
  parse_shown(text, [&] { pattern = Pattern::parse(text); });
  return pattern;
}

ProblemInput make_input(const ProblemArguments& arguments, bool with_operands,
                        const std::function<void(const Problem&)>& check) {
  ProblemInput input;
  Problem& problem = input.problem;
  input.order = arguments.layout == "bhsd" ? Order::kBhsd : Order::kBshd;
  take_dtype(arguments, &problem);
  const bool float8 = problem.dtype == Dtype::kFloat8E4M3;
  // The dtype from which e4m3 is converted.
  Dtype made_as = float8 ? Dtype::kBfloat16 : problem.dtype;
  if (!arguments.input.empty()) {
    made_as = take_file(arguments, made_as, &input);
  } else {
    take_shape(arguments, &problem);
    input.origin = fmt::format("random, seed {}", arguments.seed);
    input.shares_kv = arguments.kv_batch == 1 && problem.batch > 1;
  }
  const std::int64_t kv_batch = input.shares_kv ? 1 : problem.batch;
  if (arguments.kv_batch != 0 && arguments.kv_batch != kv_batch) {
    base::fail(ErrorCode::kInvalidArgument,
               "--kv-batch is {}, but Q has {} batches; give that number, or 1 for all of them",
               arguments.kv_batch, problem.batch);
  }
  if (input.shares_kv) input.origin += ", one batch of K and V";
  take_rules(arguments, &problem);
  problem.lse_base = lse_base_of(arguments);
  problem.want_lse = true;
  validate(problem);
  if (check) check(problem);
  if (arguments.input.empty() && with_operands) {
    make_operands(kv_batch, arguments.seed, made_as, &input);
  }
  if (float8) {
    input.q = quantise(input.q, made_as, problem.scale_blocks.q);
    input.k = quantise(input.k, made_as, problem.scale_blocks.k);
    input.v = quantise(input.v, made_as, problem.scale_blocks.v);
  }
  return input;
}

Problem make_shape(const ProblemArguments& arguments, const std::string& carry) {
  Problem problem;
  take_dtype(arguments, &problem);
  take_shape(arguments, &problem);
  take_rules(arguments, &problem);
  problem.total_k = arguments.total_k;
  if (!arguments.dtype_o.empty()) {
    problem.dtype_o = arguments.dtype_o == "fp16" ? Dtype::kFloat16 : Dtype::kBfloat16;
  }
  problem.carry_in = carry == "in" || carry == "both";
  problem.carry_out = carry == "out" || carry == "both";
  validate(problem);
  return problem;
}

LseBase lse_base_of(const ProblemArguments& arguments) {
  return arguments.lse_base == "two" ? LseBase::kTwo : LseBase::kNatural;
}

PlanOptions plan_options(const ProblemArguments& arguments, const ProblemInput& input) {
  PlanOptions options = plan_options(arguments);
  if (!input.shares_kv) return options;
  const Problem& problem = input.problem;
  const auto strides = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return input.order == Order::kBshd ? Strides::bshd(rows, heads, dim)
                                       : Strides::bhsd(rows, heads, dim);
  };
  options.strides = OperandStrides{strides(problem.seq_q, problem.heads, problem.dim_qk),
                                   strides(problem.seq_k, problem.kv_heads, problem.dim_qk),
                                   strides(problem.seq_k, problem.kv_heads, problem.dim_v),
                                   strides(problem.seq_q, problem.heads, problem.dim_v)};
  options.strides->k.batch = options.strides->v.batch = 0;
  return options;
}

std::optional<double> density_of(const Problem& problem, const ProblemArguments& arguments) {
  try {
    return pair_density(problem, {.steps = arguments.max_work}).value;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kLimit) throw;
    return std::nullopt;
  }
}

std::string density_text(const std::optional<double>& pairs, double blocks) {
  return fmt::format("{} of all pairs, {:.4f} of all blocks",
                     pairs ? fmt::format("{:.4f}", *pairs) : "not counted (--max-work)", blocks);
}

}  // namespace annulus::program
