#include "join/gatherer.h"

#include "attention/problem/operands.h"
#include "batch/merger.h"
#include "batch/step_operands.h"

namespace annulus::join {

Gatherer::Gatherer(jit::KernelCache& kernels, jit::Arch arch, const GatherProblem& problem,
                   int ranks, int rank)
    : problem_(problem),
      ranks_(ranks),
      rank_(rank),
      heads_(slice_of(problem.heads, ranks, rank).end - slice_of(problem.heads, ranks, rank).begin),
      workspace_bytes_(cut(problem.max_rows).bytes),
      pack_(kernels, arch, kQueries, true),
      unpack_(kernels, arch, kQueries, false) {}

Slices Gatherer::cut(std::int64_t rows) const {
  return cut_slices(kQueries, problem_.dim, JoinedSlices::kHeads, rows, problem_.heads, ranks_);
}

void Gatherer::check(const GatherOperands& operands, const void* workspace) const {
  if (heads_ > 0) {
    batch::check_rows("Q", operands.q, operands.q_strides);
    batch::check_given("Q", operands.q_strides, operands.rows, heads_);
  }
  batch::check_rows("gathered Q", operands.gathered, operands.gathered_strides);
  batch::check_distinct("gathered Q", operands.gathered_strides, operands.rows, problem_.heads,
                        problem_.dim);
  attention::check_address("the workspace", workspace, kSliceAlignment);
  const std::array<attention::Place, 3> places = {{{"gathered Q", operands.gathered, true, 0},
                                                   {"the workspace", workspace, true, 0},
                                                   {"Q", operands.q, false, 0}}};
  attention::check_overlaps(
      std::span<const attention::Place>(places.data(), heads_ > 0 ? places.size() : 2));
}

void Gatherer::run(device::LaunchSink& to, const GatherOperands& operands, void* workspace,
                   const Exchange& exchange) const {
  attention::check_count("rows", operands.rows, 0, problem_.max_rows);
  if (operands.rows == 0) return;
  check(operands, workspace);
  auto* const memory = static_cast<char*>(workspace);
  const Slices slices = cut(operands.rows);
  if (heads_ > 0) {
    // Packs only this rank's slice, as if there were no other slices.
    Slices own;
    own.of[0] = slices.at(rank_);
    pack_.run(to, own, 1, true, memory + slices.begin(rank_),
              {.values = const_cast<void*>(operands.q),
               .value_strides = operands.q_strides,
               .lse_strides = {}},
              operands.rows, heads_, problem_.dim);
  }
  if (ranks_ > 1) gather_slices(slices, ranks_, rank_, memory, exchange);
  unpack_.run(
      to, slices, ranks_, false, memory,
      {.values = operands.gathered, .value_strides = operands.gathered_strides, .lse_strides = {}},
      operands.rows, problem_.heads, problem_.dim);
}

}  // namespace annulus::join

namespace annulus::inline v0 {

void validate(const GatherProblem& problem) {
  batch::check_moved("Q", "dim", {problem.heads, problem.dim, problem.dtype, problem.max_rows});
}

}  // namespace annulus::inline v0
