// The functions of an append plan's public handle. Each has a few lines that call src/batch.
#include "annulus/batch.h"

#include "api/impl.h"
#include "batch/appender.h"
#include "jit/missing_kernel.h"
#include "planner/millis.h"

namespace annulus::inline v0 {

struct AppendPlan::Impl {
  batch::Appender appender;
  AppendInfo info;
  base::ProcessMark process{};
};

namespace {

AppendInfo describe(const batch::Appender& appender) {
  const device::FunctionAttributes attributes = appender.kernel().function.attributes();
  return {.specialised_source = jit::source_text(appender.spec()),
          .threads = kernels::kAppendThreads,
          .registers = attributes.registers,
          .local_bytes = attributes.local_bytes,
          .device_bytes = appender.device_bytes()};
}

}  // namespace

AppendPlan plan_append(const Device& device, const AppendProblem& problem) {
  const Device::Impl& inside = api::inside(device);
  const base::Span span("plan an append", inside.info.name);
  validate(problem);
  const jit::KernelsFor wanted([&] {
    return fmt::format("an append of up to {} rows, H{} Hkv{} D{}/{} {}", problem.most.rows,
                       problem.heads, problem.kv_heads, problem.dim_qk, problem.dim_v,
                       to_string(problem.dtype));
  });
  const planner::Clock::time_point start = planner::Clock::now();
  auto made = std::make_shared<AppendPlan::Impl>(
      AppendPlan::Impl{batch::Appender(inside.context, *inside.kernels, inside.arch, problem), {}});
  made->info = describe(made->appender);
  made->info.compile_ms = planner::millis(planner::Clock::now() - start);
  inside.log.write(base::LogLevel::kInfo, "append_rows for {}: up to {} rows ({:.1f} ms)",
                   inside.info.name, problem.most.rows, made->info.compile_ms);
  return AppendPlan(std::move(made));
}

const AppendProblem& AppendPlan::problem() const { return impl_->appender.problem(); }
const AppendInfo& AppendPlan::info() const { return impl_->info; }

void AppendPlan::run(void* stream, const AppendOperands& operands) const {
  impl_->process.check("append plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->appender.run(to, operands);
}

void AppendPlan::clear_status(void* stream, std::uint32_t* status) const {
  impl_->process.check("append plan");
  device::StreamSink to(static_cast<abi::CUstream>(stream));
  impl_->appender.clear_status(to, status);
}

AppendStatus AppendPlan::status(const std::uint32_t* status) const {
  impl_->process.check("append plan");
  return impl_->appender.status(status);
}

}  // namespace annulus::inline v0
