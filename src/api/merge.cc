// The functions of a merge plan's public handle. Each has a few lines that call src/batch.
#include "annulus/merge.h"

#include "api/impl.h"
#include "batch/merger.h"
#include "jit/missing_kernel.h"
#include "planner/millis.h"

namespace annulus::inline v0 {

struct MergePlan::Impl {
  batch::Merger merger;
  MergeInfo info;
  device::ContextPointer context;  // used by the kernel
  base::ProcessMark process{};
};

namespace {

MergeInfo describe(const batch::Merger& merger) {
  const device::FunctionAttributes attributes = merger.kernel().function.attributes();
  return {.specialised_source = jit::source_text(merger.spec()),
          .ctas = merger.ctas(),
          .threads = kernels::kMergeThreads,
          .registers = attributes.registers,
          .local_bytes = attributes.local_bytes};
}

}  // namespace

MergePlan plan_merge(const Device& device, const MergeProblem& problem) {
  const Device::Impl& inside = api::inside(device);
  const base::Span span("plan a merge", inside.info.name);
  validate(problem);
  const jit::KernelsFor wanted([&] {
    return fmt::format("a merge of {} inputs of up to {} rows, H{} D{} {}", problem.inputs,
                       problem.max_rows, problem.heads, problem.dim_v, to_string(problem.dtype));
  });
  const planner::Clock::time_point start = planner::Clock::now();
  auto made = std::make_shared<MergePlan::Impl>(
      MergePlan::Impl{batch::Merger(*inside.kernels, inside.arch, problem), {}, inside.context});
  made->info = describe(made->merger);
  made->info.compile_ms = planner::millis(planner::Clock::now() - start);
  inside.log.write(base::LogLevel::kInfo,
                   "merge_outputs for {}: {} inputs of up to {} rows ({:.1f} ms)", inside.info.name,
                   problem.inputs, problem.max_rows, made->info.compile_ms);
  return MergePlan(std::move(made));
}

const MergeProblem& MergePlan::problem() const { return impl_->merger.problem(); }
const MergeInfo& MergePlan::info() const { return impl_->info; }

void MergePlan::run(void* stream, const MergeOperands& operands) const {
  impl_->process.check("merge plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->merger.run(to, operands);
}

}  // namespace annulus::inline v0
