#include "shape_log/shape_line.h"

#include <fmt/core.h>

#include <numeric>

#include "batch/batch_plan.h"

namespace annulus::shape_log {
namespace {

// Quotes a word of the line. A text has at most one kind of quotes, such as blocks("file").
std::string quoted(const std::string& text) {
  const char quote = text.find('"') == std::string::npos    ? '"'
                     : text.find('\'') == std::string::npos ? '\''
                                                            : '`';
  return quote + text + quote;
}

void add_heads(std::int64_t heads, std::int64_t kv_heads, std::string* line) {
  *line += fmt::format("--heads {} ", heads);
  if (kv_heads != heads) *line += fmt::format("--kv-heads {} ", kv_heads);
}

void add_dims(std::int64_t dim_qk, std::int64_t dim_v, std::string* line) {
  *line +=
      dim_qk == dim_v ? fmt::format("--dim {}", dim_qk) : fmt::format("--dim {}/{}", dim_qk, dim_v);
}

void add_sizes(const Problem& problem, std::string* line) {
  if (problem.batch != 1) *line += fmt::format("--batch {} ", problem.batch);
  add_heads(problem.heads, problem.kv_heads, line);
  *line += fmt::format("--seq {} ", problem.seq_q);
  if (problem.seq_k != problem.seq_q) *line += fmt::format("--seq-k {} ", problem.seq_k);
  if (problem.q0) *line += fmt::format("--q0 {} ", *problem.q0);
  if (problem.k0) *line += fmt::format("--k0 {} ", *problem.k0);
  if (problem.total_k) *line += fmt::format("--total-k {} ", *problem.total_k);
  add_dims(problem.dim_qk, problem.dim_v, line);
}

void add_bounds(const BatchProblem& problem, std::string* line) {
  const BatchBounds most = batch::with_bounds(problem).most;
  add_heads(problem.heads, problem.kv_heads, line);
  *line += fmt::format("--most-requests {} ", most.requests);
  if (most.rows != most.requests) *line += fmt::format("--most-queries {} ", most.rows);
  if (most.rows_of_one != most.rows) {
    *line += fmt::format("--most-queries-of-one {} ", most.rows_of_one);
  }
  *line += fmt::format("--most-keys-of-one {} ", most.keys_of_one);
  if (most.keys != most.requests * most.keys_of_one) {
    *line += fmt::format("--most-keys {} ", most.keys);
  }
  *line += fmt::format("--page {} ", problem.page_rows);
  add_dims(problem.dim_qk, problem.dim_v, line);
}

void add_dtype(Dtype dtype, std::string* line) {
  if (dtype != Dtype::kBfloat16) *line += fmt::format(" --dtype {}", to_string(dtype));
}

// The kernels depend on the scale blocks that K and V have in common.
void add_dtypes(const Problem& problem, std::string* line) {
  add_dtype(problem.dtype, line);
  if (problem.dtype != Dtype::kFloat8E4M3) return;
  const ScaleBlocks& blocks = problem.scale_blocks;
  *line += fmt::format(" --scale-block {}", std::gcd(blocks.k, blocks.v));
  if (problem.output_dtype() != Dtype::kBfloat16) {
    *line += fmt::format(" --dtype-o {}", to_string(problem.output_dtype()));
  }
}

void add_pattern(const Pattern& pattern, const Score& score, std::string* line) {
  *line += fmt::format(" --pattern {}", quoted(pattern.to_string()));
  if (const std::string text = score.to_string(); !text.empty()) {
    *line += fmt::format(" --score {}", quoted(text));
  }
}

void add_carry(bool in, bool out, std::string* line) {
  if (in || out) *line += fmt::format(" --carry {}", !out ? "in" : !in ? "out" : "both");
}

// The properties that only batches have.
void add_features(const BatchProblem& problem, std::string* line) {
  if (problem.block_keys != 0) {
    *line +=
        fmt::format(" --block-keys {} --most-blocks {}", problem.block_keys, problem.max_blocks);
  }
  if (problem.row_limits) *line += " --row-limits";
  const KeyInterleave& of = problem.interleave;
  if (of.ranks != 1) *line += fmt::format(" --interleave {}/{}/{}", of.block, of.ranks, of.rank);
}

void add_config(const std::string& config, std::string* line) {
  if (!config.empty()) *line += fmt::format(" --config {}", quoted(config));
}

void add_max_multiprocessors(int most, std::string* line) {
  if (most != 0) *line += fmt::format(" --max-multiprocessors {}", most);
}

}  // namespace

std::string shape_line(const Problem& problem, const PlanOptions& options) {
  std::string line;
  add_sizes(problem, &line);
  add_dtypes(problem, &line);
  add_pattern(problem.pattern, problem.score, &line);
  if (problem.layer != 0) line += fmt::format(" --layer {}", problem.layer);
  add_carry(problem.carry_in, problem.carry_out, &line);
  add_config(options.config, &line);
  if (options.kv_splits != 0) line += fmt::format(" --kv-splits {}", options.kv_splits);
  add_max_multiprocessors(options.max_multiprocessors, &line);
  return line;
}

std::string shape_line(const BatchProblem& problem, const BatchOptions& options) {
  std::string line;
  add_bounds(problem, &line);
  add_dtype(problem.dtype, &line);
  add_pattern(problem.pattern, problem.score, &line);
  add_features(problem, &line);
  add_carry(problem.carry_in, problem.carry_out, &line);
  add_config(options.config, &line);
  if (options.part_keys != 0) line += fmt::format(" --part-keys {}", options.part_keys);
  add_max_multiprocessors(options.max_multiprocessors, &line);
  return line;
}

std::string wanted_by(const Problem& problem, const PlanOptions& options,
                      const Selection* selection) {
  std::string text = fmt::format("the shape `{}`", shape_line(problem, options));
  if (selection != nullptr)
    text += " with a selection of blocks, which no line of a file can state";
  return text;
}

std::string wanted_by(const BatchProblem& problem, const BatchOptions& options) {
  return fmt::format("the shape `{}`", shape_line(problem, options));
}

}  // namespace annulus::shape_log
