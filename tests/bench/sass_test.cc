// The step that is read from machine code, and the cycle model's results for shipped kernels.

#include "sass.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "attention/kernels/kernel_source.h"
#include "jit/compiler.h"
#include "machine_code.h"
#include "sub_core.h"
#include "support/nvrtc.h"

namespace annulus::bench {
namespace {

jit::CompiledKernel compile(const std::shared_ptr<const abi::NvrtcLibrary>& nvrtc,
                            const char* config, jit::Arch arch) {
  const attention::KernelFeatures features = {
      .dims = {128, 128}, .tile_order = kernels::TileOrder::kBand, .mask = "m.causal(q, k)"};
  const jit::Compiler compiler(nvrtc, jit::TemplateSet::embedded(), jit::ImageKind::kCubin);
  return compiler.compile(
      attention::kernel_spec(attention::parse_config(config).value(), features, arch));
}

auto count(const std::vector<Sass>& step, SassKind kind) {
  return std::ranges::count(step, kind, &Sass::kind);
}

Sass one_of(SassKind kind, std::int64_t target = -1) {
  Sass made;
  made.kind = kind;
  made.target = target;
  made.conditional = target >= 0;
  return made;
}

TEST_CASE("branches are followed as a full tile takes them") {
  std::vector<Sass> code = {
      one_of(SassKind::kFloat),       // 0, before the loop
      one_of(SassKind::kBranch, 3),   // 1, the loop begins: a branch over a barrier, not taken
      one_of(SassKind::kBarrier),     // 2
      one_of(SassKind::kLogic),       // 3, an inner loop begins
      one_of(SassKind::kProduct),     // 4
      one_of(SassKind::kBranch, 3),   // 5, taken until there are enough products
      one_of(SassKind::kBranch, 8),   // 6, a branch over a mask, taken
      one_of(SassKind::kLogic),       // 7
      one_of(SassKind::kProduct),     // 8
      one_of(SassKind::kBranch, 11),  // 9, a branch out of the loop, not taken
      one_of(SassKind::kBranch, 1),   // 10, the loop ends
      one_of(SassKind::kFloat),       // 11
  };
  for (std::size_t i = 0; i < code.size(); ++i) code[i].address = 16 * static_cast<int>(i);
  std::vector<std::int64_t> addresses;
  std::vector<std::int64_t> taken;
  for (const Sass& one : read_step(code, 3)) {
    addresses.push_back(one.address / 16);
    if (one.taken) taken.push_back(one.address / 16);
  }
  CHECK(taken == std::vector<std::int64_t>{5, 6, 10});
  CHECK(addresses == std::vector<std::int64_t>{1, 2, 3, 4, 5, 3, 4, 5, 6, 8, 9, 10});
  CHECK_THROWS_AS(read_step(code, 1), std::runtime_error);
  code[8].kind = SassKind::kUnknown;
  CHECK_THROWS_AS(read_step(code, 3), std::runtime_error);
}

TEST_CASE("a kernel of the wgmma family") {
  const auto nvrtc = test::nvrtc();
  if (!nvrtc) return;
  constexpr jit::Arch kArch = {90, 'a'};
  const jit::CompiledKernel kernel = compile(nvrtc, "wgmma m128 n128 w8 s2", kArch);
  const auto step = read_step(decode_sass(kernel.image, kernel.symbol, kArch), 16);
  const MainLoop loop = read_main_loop(decode(kernel.image, kernel.symbol));
  CHECK(static_cast<int>(step.size()) == loop.instructions);
  CHECK(count(step, SassKind::kGroupProduct) == loop.products);
  CHECK(count(step, SassKind::kSpecial) == loop.powers);
  CHECK(count(step, SassKind::kBarrier) == 1);
  CHECK(count(step, SassKind::kBarrierArrive) == 1);
  CHECK(count(step, SassKind::kPhaseWait) == 2);
  CHECK(count(step, SassKind::kPhaseArrive) == 2);
  CHECK(count(step, SassKind::kFence) == 0);
  CHECK(std::ranges::count(step, true, &Sass::rows_in_registers) == 8);
  CHECK(std::ranges::count(step, true, &Sass::ends_group) == 2);
  for (const Sass& one : step) {
    if (one.kind == SassKind::kGroupProduct) CHECK(one.columns == 128);
  }
  double before = 0;
  for (const int queue : {2, 4, 16}) {
    CoreAssumptions assumptions = core_assumptions(kArch);
    assumptions.product_queue = queue;
    const CoreReport report =
        model_core({.step = step, .warps = 2, .copied_bytes = 128 * 256 * 2}, assumptions);
    CHECK(report.use(Pipe::kTensor) <= 1.001);
    CHECK(report.use(Pipe::kTensor) > 0.5);
    CHECK(report.use(Pipe::kShared) <= 1.001);
    if (before > 0) CHECK(report.step_cycles < 1.03 * before);
    before = report.step_cycles;
  }
}

TEST_CASE("a kernel of the mma family, whose scores are an inner loop") {
  const auto nvrtc = test::nvrtc();
  if (!nvrtc) return;
  constexpr jit::Arch kArch = {80, '\0'};
  const jit::CompiledKernel kernel = compile(nvrtc, "mma m128 n32 w4 s2 x2", kArch);
  const auto step = read_step(decode_sass(kernel.image, kernel.symbol, kArch), 128);
  CHECK(count(step, SassKind::kProduct) == 128);
  CHECK(count(step, SassKind::kBarrier) == 1);
  CHECK(count(step, SassKind::kCountWait) == 1);
  CHECK(count(step, SassKind::kCopy) == 8);
  const auto fragments = [](const Sass& one) {
    return one.kind == SassKind::kShared && one.wavefronts == 4;
  };
  CHECK(std::ranges::count_if(step, fragments) == 48);
  const CoreReport report = model_core({.step = step, .ctas = 2}, core_assumptions(kArch));
  CHECK(report.use(Pipe::kTensor) > 0.4);
  CHECK(report.use(Pipe::kTensor) <= 1);
}

}  // namespace
}  // namespace annulus::bench
