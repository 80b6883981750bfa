// How the kernels of wgmma and wgmma8 are launched: persistent clusters, with tensor maps and the
// order of their work as additional arguments.

#include <algorithm>

#include "attention/kernels/wgmma/config.h"
#include "attention/kernels/wgmma/tensor_maps.h"

namespace annulus::attention {
namespace {

// The order in which CTAs take the works of a launch; find_work in templates/kernels/wgmma/work.cuh
// reads it.
kernels::WorkParams work_params(const BindRequest& request) {
  const Problem& problem = request.problem;
  const WorkGroup& group = request.group;
  const std::int64_t batches = request.range.batches;
  const std::int64_t head_groups = problem.heads / group.heads;
  const std::int64_t groups = head_groups * batches;
  const std::int64_t set = groups_in_set(set_question(request.config, problem, group, batches));
  const std::int64_t count = work_count(problem, group, request.rows, batches);
  return {.next = request.next,
          .order = request.order,
          .count = static_cast<int>(count),
          .groups = static_cast<int>(groups),
          .set = static_cast<int>(set),
          .head_groups = static_cast<int>(head_groups),
          .group_heads = group.heads,
          .row_groups = static_cast<int>(count / groups),
          .group_rows = group.rows};
}

}  // namespace

LaunchShape wgmma_shape(const KernelConfig& any, const Problem& problem, const WorkGroup& group,
                        std::int64_t rows, int multiprocessors) {
  const int cluster = wgmma_config(any).cluster;
  // Persistent clusters: the number that the multiprocessors hold, or the number of works if that
  // is smaller. There is at least one, even if a limit allows fewer CTAs than a cluster has.
  const std::int64_t clusters =
      std::min<std::int64_t>(work_count(problem, group, rows, problem.batch),
                             std::max(1, multiprocessors * wgmma_config(any).resident / cluster));
  return {.grid_x = static_cast<unsigned>(clusters * cluster),
          .grid_y = 1,
          .grid_z = 1,
          .threads = static_cast<unsigned>(threads(any)),
          .shared_bytes = shared_bytes(any, {problem.dim_qk, problem.dim_v})};
}

void wgmma_bind(const BindRequest& request, BoundLaunch* launch) {
  const kernels::AttentionParams& parameters = request.parameters;
  launch->grid = {request.shape.grid_x};
  launch->arguments.add(parameters);
  launch->arguments.add(tensor_maps(
      request.context, wgmma_config(request.config), request.problem, request.operands,
      request.range, {parameters.key_begin, parameters.key_begin + parameters.key_count}));
  launch->arguments.add(work_params(request));
}

}  // namespace annulus::attention
