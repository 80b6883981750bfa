// NVRTC and ptxas on the kernels of batches: none that ships spills or uses local memory.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/env.h"
#include "base/thread_pool.h"
#include "batch/appender.h"
#include "batch/batch_config.h"
#include "batch/merger.h"
#include "jit/compiler.h"
#include "jit/disk_cache.h"
#include "jit/kernel_cache.h"
#include "support/nvrtc.h"

namespace annulus::batch {
namespace {

// A band of scaled scores, as engines have it.
BatchFeatures plain(const attention::Dims& dims) {
  return {.attention = {.dims = dims, .mask = "m.causal(q, k)"}, .pages = kernels::Pages::k16};
}

// What takes the most registers.
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
          .runs = kernels::kMostRuns,
          .listed = true,
          .row_limits = true};
}

// That a multiprocessor holds.
int threads_of(const KernelConfig& config) {
  const attention::CtaShape cta = attention::cta_shape(config);
  return cta.threads * cta.resident;
}

TEST_CASE("no kernel of batches spills or uses local memory") {
  struct Case {
    std::string text;
    jit::KernelSpec spec;
    int threads;  // that a multiprocessor holds
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
  // Every fifth with keys on other ranks in between.
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
  const jit::Compiler compiler(library, jit::TemplateSet::embedded(), jit::ImageKind::kCubin);
  jit::DiskCache disk({.folder = base::read_environment().cache_dir});
  base::ThreadPool pool;
  pool.parallel_for(static_cast<std::int64_t>(cases.size()), [&](std::int64_t index, int) {
    Case& one = cases[static_cast<std::size_t>(index)];
    const jit::KernelRequest request = compiler.prepare(one.spec);
    const jit::ResourceUsage usage = jit::obtain_kernel(disk, request.key, [&] {
                                       return compiler.compile(request);
                                     }).kernel.usage;
    const bool good = usage.known && usage.spill_store_bytes == 0 && usage.local_bytes == 0 &&
                      (usage.registers + 7) / 8 * 8 * one.threads <= 65536;
    if (!good) one.outcome = jit::to_string(usage);
  });
  for (const Case& one : cases) {
    CAPTURE(one.text);
    CHECK(one.outcome == "");
  }
}

}  // namespace
}  // namespace annulus::batch
