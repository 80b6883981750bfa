// How the kernels of wgmma and wgmma8 are launched: persistent clusters, with tensor maps and the
// order of their work as arguments of their own.

#include <algorithm>

#include "attention/kernels/wgmma/config.h"
#include "attention/kernels/wgmma/tensor_maps.h"

namespace annulus::attention {
namespace {

// Bytes of L2 for K and V of the heads that are computed together: 32 MB of the 50 MB of an H100,
// which leaves room for Q and O.
constexpr std::int64_t kSetBytes = std::int64_t{32} << 20;

// The order in which CTAs take the works of a launch; find_work in templates/kernels/wgmma/work.cuh
// reads it. A set has as many groups of heads as have their K and V in kSetBytes together, at least
// one.
kernels::WorkParams work_params(const BindRequest& request) {
  const Problem& problem = request.problem;
  const WorkGroup& group = request.group;
  const std::int64_t batches = request.range.batches;
  const std::int64_t head_groups = problem.heads / group.heads;
  const std::int64_t groups = head_groups * batches;
  const std::int64_t kv_bytes = std::max<std::int64_t>(1, problem.seq_k) *
                                (problem.dim_qk + problem.dim_v) *
                                request.config.family->element_bytes;
  // Groups that share one head of K and V take its bytes once.
  const std::int64_t groups_per_kv = std::max<std::int64_t>(1, head_groups / problem.kv_heads);
  const std::int64_t set =
      std::clamp<std::int64_t>(kSetBytes / kv_bytes, 1, groups) * groups_per_kv;
  const std::int64_t count = work_count(problem, group, request.rows, batches);
  return {.count = static_cast<int>(count),
          .groups = static_cast<int>(groups),
          .set = static_cast<int>(std::min(set, groups)),
          .head_groups = static_cast<int>(head_groups),
          .group_heads = group.heads,
          .row_groups = static_cast<int>(count / groups),
          .group_rows = group.rows};
}

}  // namespace

LaunchShape wgmma_shape(const KernelConfig& any, const Problem& problem, const WorkGroup& group,
                        std::int64_t rows, int multiprocessors) {
  const int cluster = wgmma_config(any).cluster;
  // Persistent clusters: as many as the multiprocessors hold, or as there are works if those are
  // fewer. At least one, even if a limit allows fewer CTAs than a cluster has.
  const std::int64_t clusters = std::min<std::int64_t>(
      work_count(problem, group, rows, problem.batch), std::max(1, multiprocessors / cluster));
  return {.grid_x = static_cast<unsigned>(clusters * cluster),
          .grid_y = 1,
          .grid_z = 1,
          .threads = static_cast<unsigned>(threads(any)),
          .shared_bytes = shared_bytes(any, {problem.dim_qk, problem.dim_v})};
}

void wgmma_bind(const BindRequest& request, BoundLaunch* launch) {
  launch->grid = {request.shape.grid_x};
  launch->arguments.add(request.parameters);
  launch->arguments.add(tensor_maps(request.context, wgmma_config(request.config), request.problem,
                                    request.operands, request.range));
  launch->arguments.add(work_params(request));
}

}  // namespace annulus::attention
