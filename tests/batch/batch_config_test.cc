// The configurations of the kernels of batches: their texts, their rules, and the choice for a
// batch.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/types.h"
#include "attention/kernels/family.h"
#include "attention/kernels/withheld.h"
#include "batch/batch_choice.h"
#include "batch/batch_config.h"
#include "batch/batch_plan.h"
#include "jit/templates.h"

namespace annulus::batch {
namespace {

using attention::Dims;

constexpr jit::Arch kAmpere = {80, '\0'}, kHopper = {90, 'a'};
const attention::DeviceLimits kA100 = {kAmpere, 108, 163 * 1024};
const attention::DeviceLimits kH100 = {kHopper, 132, 227 * 1024};

// A problem with requests of both classes.
BatchProblem problem_of(const Dims& dims) {
  BatchProblem problem;
  problem.heads = 8;
  problem.kv_heads = 2;
  problem.dim_qk = dims.qk;
  problem.dim_v = dims.v;
  problem.pattern = causal();
  problem.page_rows = 16;
  problem.most = {.requests = 4, .rows = 200, .rows_of_one = 100, .keys_of_one = 1000};
  return problem;
}

std::vector<std::string> configs_of(const BatchProblem& problem,
                                    const attention::DeviceLimits& limits,
                                    const std::string& named = "") {
  BatchOptions options;
  options.config = named;
  std::vector<std::string> configs;
  for (const ClassPlan& of : make_plan(problem, options, limits).classes) {
    configs.push_back(to_string(of.config));
  }
  return configs;
}

TEST_CASE("a record of a batch kernel is complete, and what it ships is part of its space") {
  const auto templates = jit::TemplateSet::embedded();
  std::set<std::string> names;
  for (const BatchKernel* kernel : batch_kernels()) {
    CAPTURE(kernel->name);
    CHECK(names.insert(kernel->name).second);
    CHECK(attention::find_family(kernel->name) == nullptr);
    CHECK(templates->contains(kernel->source));
    CHECK(kernel->revision >= 1);
    std::set<std::string> texts;
    kernel->enumerate([&](std::span<const KernelConfig> alternatives) {
      REQUIRE_FALSE(alternatives.empty());
      int resident = attention::cta_shape(alternatives.front()).resident + 1;
      for (const KernelConfig& config : alternatives) {
        const std::string text = to_string(config);
        CHECK(&kernel_of(config) == kernel);
        CHECK(texts.insert(text).second);
        CHECK(attention::parse_config(text, *kernel) == config);
        CHECK_FALSE(attention::parse_config(text));
        CHECK(attention::cta_shape(config).resident == --resident);
        CHECK(KernelConfig(batch_config(config)) == config);
      }
      CHECK(resident == 1);
    });
    for (const ShippedBatchConfig& shipped : kernel->shipped) {
      CHECK(texts.count(to_string(shipped.config)) == 1);
      CHECK_FALSE(attention::why_illegal(shipped.config, shipped.dims, kHopper));
      CHECK_FALSE(attention::why_spills(shipped.config, shipped.dims, kHopper));
      CHECK_FALSE(attention::why_spills(shipped.config, shipped.dims, kAmpere));
    }
  }
}

TEST_CASE("each kernel has so many legal configurations") {
  struct Row {
    const char* name;
    Dims dims;
    int a100, a10, h100;  // on sm_80, sm_86 and sm_90a
  };
  // docs/kernels.md states the same numbers.
  constexpr Row kRows[] = {
      {"decode", {32, 32}, 42, 26, 46},      {"decode", {64, 64}, 26, 12, 34},
      {"decode", {96, 96}, 16, 4, 24},       {"decode", {128, 128}, 10, 2, 16},
      {"decode", {192, 128}, 4, 2, 10},      {"decode", {192, 192}, 4, 0, 10},
      {"decode", {256, 256}, 2, 0, 4},       {"chunk_wgmma", {32, 32}, 0, 0, 18},
      {"chunk_wgmma", {64, 64}, 0, 0, 18},   {"chunk_wgmma", {96, 96}, 0, 0, 16},
      {"chunk_wgmma", {128, 128}, 0, 0, 16}, {"chunk_wgmma", {192, 128}, 0, 0, 11},
      {"chunk_wgmma", {192, 192}, 0, 0, 8},  {"chunk_wgmma", {256, 256}, 0, 0, 5},
      {"chunk", {32, 32}, 126, 96, 138},     {"chunk", {64, 64}, 190, 116, 234},
      {"chunk", {96, 96}, 54, 26, 82},       {"chunk", {128, 128}, 92, 42, 132},
      {"chunk", {192, 128}, 56, 22, 106},    {"chunk", {192, 192}, 42, 16, 74},
      {"chunk", {256, 256}, 26, 8, 48},
  };
  for (const Row& row : kRows) {
    const auto kernel = std::ranges::find_if(batch_kernels(), [&](const BatchKernel* each) {
      return std::string_view(each->name) == row.name;
    });
    REQUIRE(kernel != batch_kernels().end());
    const auto legal = [&](jit::Arch arch) {
      int count = 0;
      (*kernel)->enumerate([&](std::span<const KernelConfig> alternatives) {
        for (const KernelConfig& config : alternatives) {
          if (!attention::why_illegal(config, row.dims, arch)) ++count;
        }
      });
      return count;
    };
    CAPTURE(std::string(row.name));
    CAPTURE(row.dims.qk);
    CAPTURE(row.dims.v);
    CHECK(legal(kAmpere) == row.a100);
    CHECK(legal({86, '\0'}) == row.a10);
    CHECK(legal(kHopper) == row.h100);
  }
}

TEST_CASE("a configuration that no template has is refused with a sentence") {
  const auto sentence = [](const BatchConfig& config, const Dims& dims, jit::Arch arch) {
    return attention::why_illegal(config, dims, arch).value_or("legal");
  };
  struct Case {
    BatchConfig config;
    Dims dims;
    jit::Arch arch;
    const char* part;
  };
  const Case cases[] = {
      {{&kDecodeKernel, 16, 64, 4, 2}, {64, 64}, {75, '\0'}, "batches need sm_80"},
      {{&kDecodeKernel, 16, 64, 4, 2}, {72, 72}, kAmpere, "head dims 72/72"},
      {{&kDecodeKernel, 32, 64, 4, 2}, {64, 64}, kAmpere, "4 warps have the same 16 rows"},
      {{&kDecodeKernel, 16, 64, 8, 2}, {64, 64}, kAmpere, "8 warps"},
      {{&kDecodeKernel, 16, 96, 4, 2}, {64, 64}, kAmpere, "96 columns"},
      {{&kDecodeKernel, 16, 64, 4, 1}, {64, 64}, kAmpere, "1 stages"},
      {{&kDecodeKernel, 16, 64, 4, 5}, {64, 64}, kAmpere, "5 stages"},
      {{&kDecodeKernel, 16, 64, 4, 2, false, 5}, {64, 64}, kAmpere, "5 resident CTAs"},
      {{&kDecodeKernel, 16, 64, 4, 2, false, 0}, {64, 64}, kAmpere, "0 resident CTAs"},
      {{&kDecodeKernel, 16, 128, 4, 4}, {256, 256}, kHopper, "a multiprocessor has"},
      {{&kDecodeKernel, 16, 64, 4, 2}, {192, 192}, {86, '\0'}, "a multiprocessor has"},
      {{&kChunkWgmmaKernel, 128, 64, 8, 2}, {64, 64}, kAmpere, "they need sm_90a"},
      {{&kChunkWgmmaKernel, 64, 64, 4, 2}, {64, 64}, kHopper, "64 rows, 4 warps"},
      {{&kChunkWgmmaKernel, 128, 48, 8, 2}, {64, 64}, kHopper, "48 columns"},
      {{&kChunkWgmmaKernel, 128, 144, 8, 2}, {64, 64}, kHopper, "144 columns"},
      {{&kChunkWgmmaKernel, 128, 64, 8, 0}, {64, 64}, kHopper, "0 stages"},
      {{&kChunkWgmmaKernel, 128, 64, 8, 2, true}, {64, 64}, kHopper, "never in registers"},
      {{&kChunkWgmmaKernel, 128, 64, 8, 2, false, 2}, {64, 64}, kHopper, "2 resident CTAs"},
      {{&kChunkKernel, 32, 64, 2, 2}, {64, 64}, kAmpere, "2 warps"},
      {{&kChunkKernel, 192, 64, 4, 2}, {64, 64}, kAmpere, "192 rows for 4 warps"},
      {{&kChunkKernel, 64, 48, 4, 2}, {64, 64}, kAmpere, "48 columns"},
      {{&kChunkKernel, 64, 16, 4, 2}, {96, 96}, kAmpere, "copy 32 rows of head dim 96"},
      {{&kChunkKernel, 128, 64, 8, 2}, {96, 96}, kAmpere, "copy 64 rows of head dim 96"},
      {{&kChunkKernel, 128, 32, 8, 2}, {256, 256}, kAmpere, "16 rows of output of each warp"},
  };
  for (const Case& one : cases) {
    CAPTURE(to_string(KernelConfig(one.config)));
    const std::string text = sentence(one.config, one.dims, one.arch);
    CHECK_MESSAGE(text.find(one.part) != std::string::npos, text);
  }
  CHECK(sentence({&kDecodeKernel, 16, 64, 4, 2}, {64, 64}, kAmpere) == "legal");
}

TEST_CASE("what is chosen follows from head dims and device") {
  struct Row {
    Dims dims;
    std::vector<std::string> a100, h100;
  };
  const Row rows[] = {
      {{32, 32},
       {"decode m16 n128 w4 s4 q x2", "chunk m64 n64 w4 s2 x2"},
       {"decode m16 n128 w4 s4 q x2", "chunk m64 n64 w4 s2 x2"}},
      {{64, 64},
       {"decode m16 n128 w4 s2 q x2", "chunk m128 n64 w8 s2"},
       {"decode m16 n128 w4 s3 q x2", "chunk_wgmma m128 n128 w8 s3"}},
      {{96, 96},
       {"decode m16 n64 w4 s3 q x2", "chunk m64 n64 w4 s2 x2"},
       {"decode m16 n64 w4 s4 q x2", "chunk_wgmma m128 n128 w8 s2"}},
      {{128, 128},
       {"decode m16 n64 w4 s2 q x2", "chunk m128 n64 w8 s2"},
       {"decode m16 n64 w4 s3 q x2", "chunk_wgmma m128 n128 w8 s3"}},
      {{192, 192},
       {"decode m16 n64 w4 s2", "chunk m64 n32 w4 s2 x2"},
       {"decode m16 n64 w4 s2 x2", "chunk_wgmma m128 n96 w8 s2"}},
      {{192, 128},
       {"decode m16 n64 w4 s2", "chunk m128 n32 w8 s2"},
       {"decode m16 n64 w4 s2 x2", "chunk_wgmma m128 n128 w8 s2"}},
      {{256, 256},
       {"decode m16 n64 w4 s2", "chunk m64 n32 w4 s2"},
       {"decode m16 n64 w4 s3", "chunk_wgmma m128 n64 w8 s2"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.dims.qk);
    CHECK(configs_of(problem_of(row.dims), kA100) == row.a100);
    CHECK(configs_of(problem_of(row.dims), kH100) == row.h100);
  }
  // Kernels for consecutive keys do not accept lists of blocks.
  BatchProblem listed = problem_of({64, 64});
  listed.block_keys = 16;
  listed.max_blocks = 20;
  CHECK(configs_of(listed, kH100).at(1) == "chunk m128 n64 w8 s2");
}

TEST_CASE("a class has the configuration that the caller names for it") {
  const BatchProblem problem = problem_of({64, 64});
  const std::string decode = "decode m16 n64 w4 s4 x3", chunk = "chunk m64 n32 w4 s3 q";
  using Configs = std::vector<std::string>;
  CHECK(configs_of(problem, kH100, decode) == Configs{decode, "chunk_wgmma m128 n128 w8 s3"});
  CHECK(configs_of(problem, kH100, chunk) == Configs{"decode m16 n128 w4 s3 q x2", chunk});
  CHECK(configs_of(problem, kH100, decode + ", " + chunk) == Configs{decode, chunk});
  CHECK(configs_of(problem, kH100, chunk + ", " + decode) == Configs{decode, chunk});

  BatchOptions options;
  options.config = decode;
  const BatchPlanData plan = make_plan(problem, options, kH100);
  CHECK(plan.decisions.at(0).find("(requested by the caller)") != std::string::npos);
  CHECK(plan.decisions.at(1).find("requested") == std::string::npos);
}

// The plan of problem_of(dims) if a kernel is withheld.
BatchPlanData plan_without(const char* kernel, const Dims& dims, attention::DeviceLimits limits,
                           const std::string& named = "") {
  const std::string arch = jit::to_string(limits.arch);
  const attention::Withheld table[] = {{kernel, dims.qk, arch, "rows are wrong"}};
  limits.withheld = table;
  BatchOptions options;
  options.config = named;
  return make_plan(problem_of(dims), options, limits);
}

TEST_CASE("a withheld kernel gives way to the next of its class, or the error has the reason") {
  for (const BatchKernel* kernel : batch_kernels()) {
    for (const attention::DeviceLimits& limits : {kA100, kH100}) {
      const Dims dims = {128, 128};
      const std::string reason =
          fmt::format("{} kernels of head dim 128 are withheld on {}: rows are wrong", kernel->name,
                      jit::to_string(limits.arch));
      CAPTURE(reason);
      const std::vector<std::string> plain = configs_of(problem_of(dims), limits);
      const bool is_taken = std::ranges::any_of(plain, [&](const std::string& config) {
        return attention::family_name(config) == kernel->name;
      });
      try {
        const BatchPlanData plan = plan_without(kernel->name, dims, limits);
        CHECK((!is_taken || kernel == &kChunkWgmmaKernel));
        REQUIRE(plan.classes.size() == 2);
        CHECK(to_string(plan.classes[0].config) == plain[0]);
        CHECK((to_string(plan.classes[1].config) == plain[1]) == !is_taken);
        const bool told = plan.decisions.at(1).find(reason) != std::string::npos;
        CHECK(told == is_taken);
      } catch (const Error& error) {
        CHECK((is_taken && kernel != &kChunkWgmmaKernel));
        CHECK(error.code() == ErrorCode::kUnsupported);
        const std::string text = error.what();
        CHECK_MESSAGE(text.find("no kernel is left for batches of head dims 128/128 on " +
                                jit::to_string(limits.arch) + ": " + reason) == 0,
                      text);
      }
    }
  }
}

TEST_CASE("a plan without chunk_wgmma is the plan for which chunk is named") {
  const Dims dims = {64, 64};
  BatchOptions options;
  options.config = "chunk m128 n64 w8 s2";
  const BatchPlanData named = make_plan(problem_of(dims), options, kH100);
  const BatchPlanData other = plan_without("chunk_wgmma", dims, kH100);
  CHECK(other.workspace_bytes == named.workspace_bytes);
  const auto specs = kernels_of(other), named_specs = kernels_of(named);
  REQUIRE(specs.size() == named_specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CHECK(jit::source_text(specs[i]) == jit::source_text(named_specs[i]));
  }
}

TEST_CASE("a withheld configuration that the caller names is planned, and the plan says so") {
  const char* const wgmma = "chunk_wgmma m128 n128 w8 s3";
  const BatchPlanData plan = plan_without("chunk_wgmma", {64, 64}, kH100, wgmma);
  CHECK(to_string(plan.classes.at(1).config) == wgmma);
  const std::string& text = plan.decisions.at(1);
  CHECK_MESSAGE(
      text.ends_with("; chunk_wgmma kernels of head dim 64 are withheld on sm_90a: rows "
                     "are wrong; this configuration runs because the caller requested it"),
      text);
}

TEST_CASE("a configuration that is none, or is not possible, is refused with the reason") {
  const auto refused = [](const BatchProblem& problem, const attention::DeviceLimits& limits,
                          const std::string& named, ErrorCode code, const std::string& part) {
    CAPTURE(named);
    try {
      configs_of(problem, limits, named);
      FAIL_CHECK("no error");
    } catch (const Error& error) {
      CHECK(error.code() == code);
      const std::string text = error.what();
      CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    }
  };
  const BatchProblem problem = problem_of({64, 64});
  constexpr ErrorCode kWrong = ErrorCode::kInvalidArgument, kNone = ErrorCode::kUnsupported;
  refused(
      problem, kA100, "decode m16 n64 w4", kWrong,
      "'decode m16 n64 w4' is not a configuration of a kernel for batches; shipped for head dims "
      "64/64 are 'decode m16 n128 w4 s3 q x2', ");
  refused(problem, kA100, "mma m64 n64 w4 s2", kWrong,
          "this build has no kernel 'mma' for batches, but decode, chunk_wgmma and chunk");
  for (const char* text : {",", ", ", " decode m16 n64 w4 s2", "decode m16 n64 w4 s2, ",
                           "decode m16 n64 w4 s2,chunk m64 n64 w4 s2", "decode m16 n64 w4 s2 ",
                           ", decode m16 n64 w4 s2"}) {
    refused(problem, kA100, text, kWrong, "is not a configuration of a kernel for batches");
  }
  refused(problem, kH100, "chunk m64 n64 w4 s2, chunk_wgmma m128 n64 w8 s2", kWrong,
          "'chunk m64 n64 w4 s2' and 'chunk_wgmma m128 n64 w8 s2' are configurations for the same");
  refused(problem, kA100, "decode m16 n96 w4 s2", kNone,
          "configuration 'decode m16 n96 w4 s2' is not possible here: 96 columns");
  refused(problem, kA100, "chunk_wgmma m128 n64 w8 s2", kNone, "they need sm_90a");
  attention::DeviceLimits small = kA100;
  small.shared_bytes_per_block = 48 * 1024;
  refused(problem, small, "decode m16 n128 w4 s2", kNone, "a multiprocessor has 50176");
  BatchProblem listed = problem;
  listed.block_keys = 16;
  listed.max_blocks = 20;
  refused(listed, kH100, "chunk_wgmma m128 n64 w8 s2", kNone, "takes no lists of blocks");
  BatchProblem few = problem;
  few.most = {.requests = 4, .rows = 4, .rows_of_one = 1, .keys_of_one = 1000};
  refused(few, kA100, "chunk m64 n64 w4 s2", kNone, "for requests of more than 1 queries");
}

}  // namespace
}  // namespace annulus::batch
