#include "attention/kernels/launch.h"

#include <algorithm>

#include "attention/kernels/family.h"
#include "base/fail.h"
#include "base/math.h"

namespace annulus::attention {

WorkGroup packed_heads(const KernelConfig& config) {
  return {.rows = 1, .heads = cta_shape(config).packed_heads()};
}

WorkGroup rows_together(const KernelConfig& config) {
  const CtaShape cta = cta_shape(config);
  return {.rows = cta.cluster, .heads = cta.heads};
}

std::int64_t work_count(const Problem& problem, const WorkGroup& group, std::int64_t rows,
                        std::int64_t batches) {
  return base::ceil_div(rows, group.rows) * (problem.heads / group.heads) * batches;
}

std::int64_t groups_in_set(const SetQuestion& question) {
  constexpr std::int64_t kSetBytes = std::int64_t{32} << 20;
  const std::int64_t kv_bytes = std::max<std::int64_t>(1, question.seq_k) *
                                (question.dims.qk + question.dims.v) * question.element_bytes;
  // Groups that share one head of K and V read its bytes once.
  const std::int64_t per_kv =
      std::max<std::int64_t>(1, question.heads_per_kv / question.group_heads);
  const std::int64_t groups = std::max<std::int64_t>(1, question.groups);
  return std::min(groups, std::clamp<std::int64_t>(kSetBytes / kv_bytes, 1, groups) * per_kv);
}

SetQuestion set_question(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                         std::int64_t batches) {
  return {.dims = {problem.dim_qk, problem.dim_v},
          .element_bytes = config.family->element_bytes,
          .seq_k = problem.seq_k,
          .heads_per_kv = problem.heads / problem.kv_heads,
          .group_heads = group.heads,
          .groups = problem.heads / group.heads * batches};
}

std::int64_t first_ahead(const HeadStart& ahead, std::int64_t groups, std::int64_t set) {
  if (ahead.empty()) return groups;
  return std::max<std::int64_t>(0, base::ceil_div(groups, set) - ahead.sets) * set;
}

std::vector<std::int32_t> work_order(const HeadStart& ahead, std::int64_t groups, std::int64_t set,
                                     std::int64_t rows) {
  std::vector<std::int32_t> order;
  order.reserve(static_cast<std::size_t>(groups * rows));
  const auto add = [&](std::int64_t group, std::int64_t row) {
    const std::int64_t begin = group / set * set;
    const std::int64_t size = std::min(set, groups - begin);
    order.push_back(static_cast<std::int32_t>(begin * rows + row * size + group - begin));
  };
  const auto add_rows = [&](std::int64_t first, std::int64_t end, std::int64_t row,
                            std::int64_t end_row) {
    for (; row < end_row; ++row) {
      for (std::int64_t group = first; group < end; ++group) add(group, row);
    }
  };
  const std::int64_t first = first_ahead(ahead, groups, set);
  const std::int64_t rows_ahead = std::min(ahead.rows, rows);
  for (std::int64_t group = 0; group < first; group += set) {
    add_rows(group, std::min(first, group + set), 0, rows);
  }
  add_rows(first, groups, 0, rows_ahead);
  for (std::int64_t group = first; group < groups; group += set) {
    add_rows(group, std::min(groups, group + set), rows_ahead, rows);
  }
  return order;
}

LaunchShape launch_shape(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                         std::int64_t rows, int multiprocessors) {
  return family_of(config).shape(config, problem, group, rows, multiprocessors);
}

void check_strides(const KernelConfig& config, const Problem& problem, const Operands& operands) {
  const auto why = family_of(config).why_no_strides(
      problem, {operands.q_strides, operands.k_strides, operands.v_strides, operands.o_strides});
  if (!why) return;
  base::fail(
      ErrorCode::kUnsupported, "{}; {}", *why,
      problem.dtype == Dtype::kFloat8E4M3
          ? "e4m3 has no kernel without them: copy the tensor, or convert to bf16"
          : "give the strides when planning, or plan with a configuration of the mma family");
}

}  // namespace annulus::attention
