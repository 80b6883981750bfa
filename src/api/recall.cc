// Recall of a sparse run: compares its LSEs with the LSEs of a run over all pairs.
#include "annulus/selection.h"

#include <algorithm>
#include <numbers>
#include <optional>

#include "api/impl.h"
#include "base/fail.h"
#include "base/math.h"
#include "jit/missing_kernel.h"
#include "params/importance_params.h"
#include "shape_log/shape_line.h"

namespace annulus::inline v0 {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) { return base::round_up(bytes, kAlignment); }

Problem checked(const Problem& problem) {
  if (!problem.want_lse) {
    base::fail(ErrorCode::kInvalidArgument,
               "recall is computed from LSEs, but the problem does not compute them; set want_lse");
  }
  return problem;
}

}  // namespace

// The workspace holds the O and the LSEs of the run over all pairs, and then the workspace of that
// run's plan.
struct RecallMeter::Impl {
  Problem problem;
  Plan plan;
  device::Function kernel;
  std::size_t o_bytes = 0;
  std::size_t lse_bytes = 0;

  std::int64_t rows() const { return problem.batch * problem.heads * problem.seq_q; }
};

RecallMeter::RecallMeter(const Device& device, const Problem& problem, const PlanOptions& options)
    : impl_([&] {
        Impl impl{.problem = problem, .plan = device.plan(checked(problem), options), .kernel = {}};
        const auto rows = static_cast<std::size_t>(impl.rows());
        impl.o_bytes = aligned(rows * static_cast<std::size_t>(problem.dim_v) * 2);
        impl.lse_bytes = aligned(rows * sizeof(float));
        const Device::Impl& inside = api::inside(device);
        const jit::KernelsFor wanted([&] {
          return fmt::format("a recall meter over {}", shape_log::wanted_by(problem, options));
        });
        if (rows > 0) {
          impl.kernel = inside.kernels
                            ->get(jit::KernelSpec{.family = "recall_rows",
                                                  .arch = inside.arch,
                                                  .file = "kernels/selection/recall_rows.cu",
                                                  .entry = "recall_rows",
                                                  .structs = {}})
                            .kernel->function;
        }
        return std::make_shared<const Impl>(std::move(impl));
      }()) {}

std::size_t RecallMeter::workspace_bytes() const {
  return impl_->o_bytes + impl_->lse_bytes + impl_->plan.workspace_bytes();
}

// Runs attention over all pairs with O and LSE in the workspace, and compares its LSEs with the
// LSEs of the sparse run. The base of the LSEs is the base of the problem, so lse_factor converts
// them to base 2.
void RecallMeter::run(void* stream, const Operands& operands, float* recall,
                      void* workspace) const {
  const std::int64_t rows = impl_->rows();
  if (rows == 0) return;
  if (workspace == nullptr || recall == nullptr) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} is null; recall needs {} bytes of workspace and memory for {} numbers",
               recall == nullptr ? "recall" : "the workspace", workspace_bytes(), rows);
  }
  const auto check_aligned = [](const char* name, const void* data, std::uintptr_t alignment) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    if (address % alignment == 0) return;
    base::fail(ErrorCode::kInvalidArgument, "{} at {:#x} is not a multiple of {} bytes", name,
               address, alignment);
  };
  check_aligned("recall", recall, 4);
  check_aligned("the workspace", workspace, 16);
  const Problem& problem = impl_->problem;
  validate(problem, operands);
  auto* const bytes = static_cast<std::byte*>(workspace);
  auto* const all = reinterpret_cast<float*>(bytes + impl_->o_bytes);
  Operands whole = operands;
  whole.o = bytes;
  whole.o_strides = Strides::bshd(problem.seq_q, problem.heads, problem.dim_v);
  whole.lse = all;
  impl_->plan.run(stream, whole, bytes + impl_->o_bytes + impl_->lse_bytes);
  kernels::RecallParams params = {.lse = operands.lse,
                                  .all = all,
                                  .recall = recall,
                                  .count = rows,
                                  .lse_factor = problem.lse_base == LseBase::kTwo
                                                    ? 1.0f
                                                    : static_cast<float>(std::numbers::log2e),
                                  .padding = 0};
  constexpr std::int64_t kEach = kernels::kSelectionThreads;
  device::launch(impl_->kernel, {static_cast<unsigned>(base::ceil_div(rows, kEach))},
                 {kernels::kSelectionThreads}, 0, static_cast<abi::CUstream>(stream), {&params});
}

RecallSummary summarise_recall(std::span<const float> recall) {
  RecallSummary summary;
  if (recall.empty()) return summary;
  double sum = 0;
  for (const float share : recall) {
    sum += share;
    summary.least = std::min(summary.least, static_cast<double>(share));
  }
  summary.mean = sum / static_cast<double>(recall.size());
  return summary;
}

}  // namespace annulus::inline v0
