#include "planner/shape_line.h"

#include <fmt/core.h>

#include <numeric>

namespace annulus::planner {
namespace {

// A word of the line. A text has at most one kind of quotes, as blocks("file") has.
std::string quoted(const std::string& text) {
  const char quote = text.find('"') == std::string::npos    ? '"'
                     : text.find('\'') == std::string::npos ? '\''
                                                            : '`';
  return quote + text + quote;
}

void add_sizes(const Problem& problem, std::string* line) {
  if (problem.batch != 1) *line += fmt::format("--batch {} ", problem.batch);
  *line += fmt::format("--heads {} ", problem.heads);
  if (problem.kv_heads != problem.heads) *line += fmt::format("--kv-heads {} ", problem.kv_heads);
  *line += fmt::format("--seq {} ", problem.seq_q);
  if (problem.seq_k != problem.seq_q) *line += fmt::format("--seq-k {} ", problem.seq_k);
  if (problem.q0) *line += fmt::format("--q0 {} ", *problem.q0);
  if (problem.k0) *line += fmt::format("--k0 {} ", *problem.k0);
  if (problem.total_k) *line += fmt::format("--total-k {} ", *problem.total_k);
  *line += problem.dim_qk == problem.dim_v
               ? fmt::format("--dim {}", problem.dim_qk)
               : fmt::format("--dim {}/{}", problem.dim_qk, problem.dim_v);
}

// Kernels follow from the blocks of scales that K and V have in common.
void add_dtype(const Problem& problem, std::string* line) {
  if (problem.dtype == Dtype::kBfloat16) return;
  *line += fmt::format(" --dtype {}", to_string(problem.dtype));
  if (problem.dtype != Dtype::kFloat8E4M3) return;
  const ScaleBlocks& blocks = problem.scale_blocks;
  *line += fmt::format(" --scale-block {}", std::gcd(blocks.k, blocks.v));
  if (problem.output_dtype() != Dtype::kBfloat16) {
    *line += fmt::format(" --dtype-o {}", to_string(problem.output_dtype()));
  }
}

void add_options(const PlanOptions& options, std::string* line) {
  if (!options.config.empty()) *line += fmt::format(" --config {}", quoted(options.config));
  if (options.kv_splits != 0) *line += fmt::format(" --kv-splits {}", options.kv_splits);
  if (options.max_multiprocessors != 0) {
    *line += fmt::format(" --max-multiprocessors {}", options.max_multiprocessors);
  }
}

}  // namespace

std::string shape_line(const Problem& problem, const PlanOptions& options) {
  std::string line;
  add_sizes(problem, &line);
  add_dtype(problem, &line);
  line += fmt::format(" --pattern {}", quoted(problem.pattern.to_string()));
  if (const std::string score = problem.score.to_string(); !score.empty()) {
    line += fmt::format(" --score {}", quoted(score));
  }
  if (problem.layer != 0) line += fmt::format(" --layer {}", problem.layer);
  if (problem.carry_in || problem.carry_out) {
    line += fmt::format(" --carry {}", !problem.carry_out  ? "in"
                                       : !problem.carry_in ? "out"
                                                           : "both");
  }
  add_options(options, &line);
  return line;
}

std::string wanted_by(const Problem& problem, const PlanOptions& options,
                      const Selection* selection) {
  std::string text = fmt::format("the shape `{}`", shape_line(problem, options));
  if (selection != nullptr) text += " with a selection of blocks, which no line of a file says";
  return text;
}

}  // namespace annulus::planner
