// Compiles the kernels of batches with NVRTC and ptxas. No shipped kernel may spill or use local
// memory.

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "batch/appender.h"
#include "batch/batch_config.h"
#include "batch/merger.h"
#include "jit/compiler.h"
#include "support/nvrtc.h"
#include "support/options.h"
#include "support/recorded_usages.h"

namespace annulus::batch {
namespace {

// A band of scaled scores, the most common case in engines.
BatchFeatures plain(const attention::Dims& dims) {
  return {.attention = {.dims = dims, .mask = "m.causal(q, k)"}, .pages = kernels::Pages::k16};
}

// The features that take the most registers.
BatchFeatures all(const attention::Dims& dims) {
  return {.attention = {.dims = dims,
                        .dtype = Dtype::kFloat16,
                        .dtype_o = Dtype::kFloat16,
                        .score = kernels::Score::kSoftcap,
                        .alibi = true,
                        .bias = true,
                        .sink_logit = true,
                        .carry_in = true,
                        .mask = "m.causal(q, k) & (m.window(0, 1, q, k) | m.sink(2, q, k) | "
                                "m.documents(3, 4, q, k))"},
          .pages = kernels::Pages::kAny,
          .runs = kernels::kMaxRuns,
          .listed = true,
          .row_limits = true};
}

// The number of threads that a multiprocessor holds.
int threads_of(const KernelConfig& config) {
  const attention::CtaShape cta = attention::cta_shape(config);
  return cta.threads * cta.resident;
}

test::RecordedUsages& usages(const std::shared_ptr<const abi::NvrtcLibrary>& library) {
  static test::RecordedUsages all(ANNULUS_KERNEL_USAGES, library);
  return all;
}

TEST_CASE("no kernel of batches spills or uses local memory") {
  struct Case {
    std::string text;
    jit::KernelSpec spec;
    int threads;  // threads that a multiprocessor holds
    std::string outcome = {};
  };
  std::vector<Case> cases;
  const jit::Arch ampere = {80, '\0'}, hopper = {90, 'a'};
  bool turn = false;
  for (const ShippedBatchConfig& shipped : shipped_batch_configs()) {
    BatchFeatures features = turn ? plain(shipped.dims) : all(shipped.dims);
    features.listed = features.listed && kernel_of(shipped.config).takes_lists;
    const jit::Arch arch = turn || kernel_of(shipped.config).by_maps ? hopper : ampere;
    cases.push_back({to_string(shipped.config), rows_spec(shipped.config, features, arch),
                     threads_of(shipped.config)});
    turn = !turn;
  }
  cases.push_back({"combine_parts", combine_spec(all({256, 256}), ampere), 128});
  cases.push_back({"prepare_batch", prepare_spec(plain({128, 128}), hopper), 512});
  // Every fifth configuration also has keys that are interleaved between ranks.
  int at = 0;
  for (const ShippedBatchConfig& shipped : shipped_batch_configs()) {
    if (at++ % 5 != 0) continue;
    BatchFeatures features = all(shipped.dims);
    features.listed = false;
    features.interleaved = true;
    const jit::Arch arch = kernel_of(shipped.config).by_maps ? hopper : ampere;
    cases.push_back({to_string(shipped.config) + " of interleaved keys",
                     rows_spec(shipped.config, features, arch), threads_of(shipped.config)});
  }
  BatchFeatures interleaved = plain({128, 128});
  interleaved.interleaved = true;
  cases.push_back({"prepare_batch of interleaved keys", prepare_spec(interleaved, ampere), 512});
  cases.push_back({"list_blocks", list_blocks_spec(ampere), 128});
  for (const std::int64_t inputs : {2, 7, 13, 16}) {
    MergeProblem problem;
    problem.inputs = inputs;
    problem.dtype = inputs % 3 == 1 ? Dtype::kFloat16 : Dtype::kBfloat16;
    problem.form = inputs % 2 == 0 ? PartialForm::kOutputs : PartialForm::kStates;
    problem.carry_out = inputs == 13;
    problem.sink_logits = inputs == 7 || inputs == 16;
    cases.push_back({"merge_outputs", merge_spec(problem, inputs < 8 ? ampere : hopper),
                     kernels::kMergeResident * kernels::kMergeThreads});
  }
  int table = 0;
  for (const AppendPlace place : {AppendPlace::kSlots, AppendPlace::kRequests}) {
    for (const RotaryOrder order :
         {RotaryOrder::kNone, RotaryOrder::kInterleaved, RotaryOrder::kHalves}) {
      AppendProblem problem;
      problem.place = place;
      problem.rotary.order = order;
      if (++table % 3 == 0) problem.rotary.tables = Dtype::kFloat16;
      cases.push_back({"append_rows", append_spec(problem, table % 2 == 0 ? ampere : hopper),
                       kernels::kAppendResident * kernels::kAppendThreads});
    }
  }
  const auto library = test::nvrtc();
  if (!library) return;
  test::RecordedUsages& recorded = usages(library);
  base::ThreadPool pool;
  pool.parallel_for(static_cast<std::int64_t>(cases.size()), [&](std::int64_t index, int) {
    Case& one = cases[static_cast<std::size_t>(index)];
    const jit::ResourceUsage usage = recorded.of(one.spec);
    const bool good = usage.known && usage.spill_store_bytes == 0 && usage.local_bytes == 0 &&
                      (usage.registers + 7) / 8 * 8 * one.threads <= 65536;
    if (!good) one.outcome = jit::to_string(usage);
  });
  for (const Case& one : cases) {
    CAPTURE(one.text);
    CHECK(one.outcome == "");
  }
  recorded.finish();
}

// Tests all configurations of the space that are legal on an architecture, or with --problems N a
// sample of N, drawn by --seed.
TEST_CASE("a configuration that is not said to spill does not, and has the memory it says") {
  struct Case {
    KernelConfig config;
    attention::Dims dims;
    jit::Arch arch;
    std::string outcome = {};
  };
  std::vector<Case> cases;
  for (const BatchKernel* kernel : batch_kernels()) {
    for (const HeadDims& of : supported_dims()) {
      const attention::Dims dims{of.qk, of.v};
      for (const jit::Arch arch : {jit::Arch{80, '\0'}, jit::Arch{90, 'a'}}) {
        kernel->enumerate([&](std::span<const KernelConfig> alternatives) {
          for (const KernelConfig& config : alternatives) {
            if (attention::why_illegal(config, dims, arch)) continue;
            if (!attention::why_spills(config, dims, arch)) cases.push_back({config, dims, arch});
          }
        });
      }
    }
  }
  const int wanted = test::options().problems > 0 ? test::options().problems : 8;
  base::Random random(test::seed_of(77));
  while (cases.size() > static_cast<std::size_t>(wanted)) {
    std::swap(cases[random.below(static_cast<std::uint32_t>(cases.size()))], cases.back());
    cases.pop_back();
  }
  const auto library = test::nvrtc();
  if (!library) return;
  test::RecordedUsages& recorded = usages(library);
  base::ThreadPool pool;
  pool.parallel_for(static_cast<std::int64_t>(cases.size()), [&](std::int64_t index, int) {
    Case& one = cases[static_cast<std::size_t>(index)];
    BatchFeatures features = all(one.dims);
    features.listed = kernel_of(one.config).takes_lists;
    const jit::ResourceUsage usage = recorded.of(rows_spec(one.config, features, one.arch));
    // Some versions of ptxas include the memory of each CTA on sm_90 that the driver reserves.
    constexpr int kReserved = 1024;
    const auto most = kernel_of(one.config).static_bytes + (one.arch.number >= 90 ? kReserved : 0);
    if (!usage.known || usage.spill_store_bytes > 0 || usage.static_shared_bytes > most)
      one.outcome = jit::to_string(usage);
  });
  for (const Case& one : cases) {
    CAPTURE(to_string(one.config));
    CAPTURE(one.dims.qk);
    CAPTURE(one.dims.v);
    CAPTURE(jit::to_string(one.arch));
    CHECK(one.outcome == "");
  }
  // Other seeds draw other kernels, which are not recorded.
  if (test::options().seed == 1 && test::options().problems == 0) recorded.finish();
}

// The templates reject the same configurations as why_illegal, apart from those outside the space
// or too large for the device.
TEST_CASE("templates refuse what is said to be illegal") {
  struct Case {
    BatchConfig config;
    attention::Dims dims;
    kernels::Pages pages = kernels::Pages::k16;
  };
  const Case cases[] = {
      {{&kDecodeKernel, 32, 64, 4, 2}, {64, 64}},
      {{&kDecodeKernel, 16, 128, 8, 2}, {64, 64}},
      {{&kDecodeKernel, 16, 32, 4, 2}, {64, 64}},
      {{&kDecodeKernel, 16, 96, 4, 2}, {64, 64}},
      {{&kDecodeKernel, 16, 256, 4, 2}, {64, 64}},
      {{&kDecodeKernel, 16, 64, 4, 1}, {64, 64}},
      {{&kDecodeKernel, 16, 64, 4, 5}, {64, 64}},
      {{&kChunkWgmmaKernel, 64, 64, 4, 2}, {64, 64}},
      {{&kChunkWgmmaKernel, 192, 64, 12, 2}, {64, 64}},
      {{&kChunkWgmmaKernel, 128, 64, 4, 2}, {64, 64}},
      {{&kChunkWgmmaKernel, 128, 64, 8, 2, false, 2}, {64, 64}},
      {{&kChunkWgmmaKernel, 128, 64, 8, 0}, {64, 64}},
      {{&kChunkWgmmaKernel, 128, 16, 8, 2}, {64, 64}},
      {{&kChunkWgmmaKernel, 128, 48, 8, 2}, {64, 64}},
      {{&kChunkWgmmaKernel, 128, 144, 8, 2}, {64, 64}},
      {{&kChunkKernel, 32, 64, 2, 2}, {64, 64}},
      {{&kChunkKernel, 256, 64, 16, 2}, {64, 64}},
      {{&kChunkKernel, 128, 64, 4, 2}, {72, 72}},
      {{&kChunkKernel, 192, 64, 4, 2}, {64, 64}},
      {{&kChunkKernel, 96, 64, 4, 2}, {64, 64}},
      {{&kChunkKernel, 64, 8, 4, 2}, {64, 64}},
      {{&kChunkKernel, 64, 48, 4, 2}, {64, 64}},
      {{&kChunkKernel, 64, 80, 4, 2}, {64, 64}},
      {{&kChunkKernel, 64, 96, 4, 2}, {64, 64}, kernels::Pages::k64},
      {{&kChunkKernel, 64, 256, 4, 2}, {32, 32}},
      {{&kChunkKernel, 64, 16, 4, 2}, {96, 96}},
      {{&kChunkKernel, 128, 16, 8, 2}, {64, 64}},
      {{&kChunkKernel, 128, 64, 8, 2}, {96, 96}},
      {{&kChunkKernel, 64, 64, 4, 1}, {64, 64}},
      {{&kChunkKernel, 64, 64, 4, 5}, {64, 64}},
      {{&kChunkKernel, 128, 32, 8, 2}, {256, 256}},
  };
  const auto library = test::nvrtc();
  if (!library) return;
  const jit::Arch hopper = {90, 'a'};
  const jit::Compiler compiler(library, jit::TemplateSet::embedded(), jit::ImageKind::kPtx);
  for (const Case& one : cases) {
    CAPTURE(to_string(KernelConfig(one.config)));
    CAPTURE(one.dims.qk);
    CHECK(attention::why_illegal(one.config, one.dims, hopper));
    BatchFeatures features = plain(one.dims);
    features.pages = one.pages;
    try {
      compiler.compile(rows_spec(one.config, features, hopper));
      FAIL_CHECK("it was compiled");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCompile);
    }
  }
}

}  // namespace
}  // namespace annulus::batch
