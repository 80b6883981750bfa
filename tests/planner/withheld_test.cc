// Kernels that are withheld: the choice in their place, the messages, and the result if a caller
// names them.

#include "attention/kernels/withheld.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "annulus/ring.h"
#include "annulus/selection.h"
#include "attention/plan/general.h"
#include "planner/choices.h"
#include "planner/tuned_entry.h"
#include "ring/plan.h"
#include "support/faulty_files.h"
#include "tuned/config_families.h"
#include "tuned/space.h"

namespace annulus::planner {
namespace {

using attention::Choice;
using attention::DeviceLimits;
using attention::Withheld;

constexpr DeviceLimits kSm80 = {{80, '\0'}, 108, 163 * 1024};
constexpr DeviceLimits kSm86 = {{86, '\0'}, 84, 99 * 1024};
constexpr DeviceLimits kSm90a = {{90, 'a'}, 132, 227 * 1024};

DeviceLimits with_table(DeviceLimits limits, std::span<const Withheld> table) {
  limits.withheld = table;
  return limits;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The text of the Error{kUnsupported} that a function throws.
template <typename Body>
std::string refusal_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    return error.what();
  }
  FAIL_CHECK("nothing was refused");
  return {};
}

// Why a row of the table withholds nothing, or cannot be shown to users. Empty if the row is right.
std::string flaw_of(const Withheld& row) {
  const attention::ConfigFamily* family = tuned::find_config_family(row.kernel);
  if (family == nullptr) return "no kernel has that name";
  if (row.reason.empty() || row.reason.ends_with('.')) return "the reason is no part of a sentence";
  try {
    const jit::Arch arch = jit::parse_arch(row.architecture);
    bool any = false;
    for (const attention::Dims& dims : attention::supported_dims()) {
      if (row.dim_qk != 0 && row.dim_qk != dims.qk) continue;
      family->enumerate([&](std::span<const attention::KernelConfig> alternatives) {
        any = any || std::ranges::any_of(alternatives, [&](const auto& config) {
                return !attention::why_illegal(config, dims, arch);
              });
      });
    }
    return any ? "" : "the kernel does not run there";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_CASE("each row of the table withholds something") {
  for (const Withheld& row : attention::kWithheld) {
    CAPTURE(std::string(row.kernel));
    CHECK(flaw_of(row) == "");
  }
  CHECK(flaw_of({"wgmma", 128, "sm_90a", "rows are wrong"}) == "");
  CHECK(flaw_of({"chunk", 0, "sm_80", "rows are wrong"}) == "");
  CHECK(flaw_of({"wgma", 0, "sm_90a", "rows are wrong"}) == "no kernel has that name");
  CHECK(flaw_of({"wgmma", 0, "sm_90", "rows are wrong"}) == "the kernel does not run there");
  CHECK(flaw_of({"mma", 100, "sm_80", "rows are wrong"}) == "the kernel does not run there");
  CHECK(contains(flaw_of({"mma", 0, "hopper", "rows are wrong"}), "hopper"));
  CHECK(flaw_of({"mma", 0, "sm_80", "Rows are wrong."}) == "the reason is no part of a sentence");
}

// Whether any shipped configuration of the family is possible for a problem.
bool is_possible(const attention::Family& family, const Problem& problem,
                 const DeviceLimits& limits) {
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  return std::ranges::any_of(family.shipped, [&](const attention::ShippedConfig& shipped) {
    return shipped.dims.qk == dims.qk && shipped.dims.v == dims.v &&
           !attention::why_not(shipped.config, problem.dtype) &&
           !attention::why_not(shipped.config, dims, limits);
  });
}

std::ptrdiff_t count_told(const Choice& choice, const std::string& reason) {
  return std::ranges::count(choice.rejected, reason, &attention::Rejected::reason);
}

// Compares the choice without one family with the choice among all families.
void check_without(const attention::Family& family, const Subject& subject,
                   const DeviceLimits& limits) {
  const std::string arch = jit::to_string(limits.arch);
  const std::string reason =
      fmt::format("{} kernels are withheld on {}: rows are wrong", family.name, arch);
  const Withheld table[] = {{family.name, 0, arch, "rows are wrong"}};
  const auto choose_without = [&] { return untuned(subject, with_table(limits, table), {}); };
  const bool possible = is_possible(family, subject.problem, limits);
  const bool others = std::ranges::any_of(attention::families(), [&](const auto* other) {
    return other != &family && is_possible(*other, subject.problem, limits);
  });
  if (!others) {
    const std::string refusal = refusal_of(choose_without);
    CHECK_MESSAGE(contains(refusal, reason) == possible, refusal);
    return;
  }
  const Choice choice = choose_without();
  CHECK(choice.config.family != &family);
  CHECK((!choice.second || choice.second->family != &family));
  CHECK((count_told(choice, reason) > 0) == possible);
  CHECK_MESSAGE(contains(choice.reason, reason) == possible, choice.reason);
}

TEST_CASE("each family gives way where it is withheld, whatever is planned") {
  Selection narrow;
  narrow.block_rows = 64;
  narrow.block_columns = 48;  // families make configurations for blocks of this size
  narrow.max_blocks = 4;
  attention::Segments segments;
  segments.add_q({{0, 64}, {128, 64}});
  for (const attention::Family* family : attention::families()) {
    for (const DeviceLimits& limits : {kSm80, kSm86, kSm90a}) {
      CAPTURE(family->name);
      CAPTURE(limits.arch.number);
      Problem problem = test::planned_problem("causal", 1024, 128);
      problem.kv_heads = 1;
      problem.dtype = family->element_bytes == 1 ? Dtype::kFloat8E4M3 : Dtype::kBfloat16;
      check_without(*family, {problem}, limits);
      check_without(*family, {problem, &narrow}, limits);
      check_without(*family, {.problem = problem, .segments = segments}, limits);
      Problem sum = problem;
      sum.pattern = Pattern::parse("sum(causal, window(63, 0))");
      check_without(*family, {sum}, limits);
    }
  }
}

TEST_CASE("a row is for its head dim and its architecture alone") {
  const Problem problem = test::planned_problem("causal", 1024, 128);
  const Choice plain = untuned({problem}, kSm90a, {});
  const std::string of_all = plain.config.family->name;
  for (const Withheld& row : {Withheld{of_all, 64, "sm_90a", "rows are wrong"},
                              Withheld{of_all, 0, "sm_90", "rows are wrong"},
                              Withheld{"chunk", 0, "sm_90a", "rows are wrong"}}) {
    const Choice choice = untuned({problem}, with_table(kSm90a, {&row, 1}), {});
    CHECK(choice.config == plain.config);
    CHECK(choice.reason == plain.reason);
  }
  const Withheld row = {of_all, 128, "sm_90a", "rows are wrong"};
  const Choice choice = untuned({problem}, with_table(kSm90a, {&row, 1}), {});
  CHECK(choice.config.family != plain.config.family);
  CHECK(contains(choice.reason, of_all + " kernels of head dim 128 are withheld on sm_90a"));
}

constexpr Withheld kNoneOnSm90a[] = {{"wgmma", 0, "sm_90a", "rows are wrong"},
                                     {"wgmma8", 0, "sm_90a", "scales are wrong"},
                                     {"mma", 0, "sm_90a", "columns are wrong"}};

TEST_CASE("where all families are withheld the error has all reasons, for general kernels too") {
  Problem problem = test::planned_problem("causal", 1024, 128);
  const DeviceLimits none = with_table(kSm90a, kNoneOnSm90a);
  CHECK(refusal_of([&] { untuned({problem}, none, {}); }) ==
        "no kernel is left for bf16 with head dims 128/128 on sm_90a: wgmma kernels are withheld "
        "on sm_90a: rows are wrong; mma kernels are withheld on sm_90a: columns are wrong; a "
        "configuration that PlanOptions::config names runs all the same");
  const std::string general = refusal_of([&] { attention::general_config(problem, none); });
  CHECK_MESSAGE(contains(general, "there is no general kernel for bf16"), general);
  CHECK_MESSAGE(contains(general, "rows are wrong; mma kernels are withheld"), general);
  problem.dtype = Dtype::kFloat8E4M3;
  CHECK(contains(refusal_of([&] { untuned({problem}, none, {}); }), "bf16 has other kernels"));
}

TEST_CASE("the next family has the general kernel") {
  const Problem problem = test::planned_problem("causal", 1024, 128);
  const auto general = [&](std::span<const Withheld> table) {
    return attention::general_config(problem, with_table(kSm90a, table));
  };
  CHECK(general({}).config.family == &attention::wgmma_family);
  const Choice choice = general(std::span(kNoneOnSm90a).first(1));
  CHECK(choice.config.family == &attention::mma_family);
  CHECK(contains(choice.reason, "wgmma kernels are withheld on sm_90a: rows are wrong"));
}

TEST_CASE(
    "a configuration that the caller names is planned, and the plan says that it is withheld") {
  const Problem problem = test::planned_problem("causal", 1024, 128);
  const DeviceLimits none = with_table(kSm90a, kNoneOnSm90a);
  PlanOptions options;
  options.config = "wgmma m128 n128 w8 s2";
  const Choice choice = untuned({problem}, none, options);
  CHECK(attention::to_string(choice.config) == options.config);
  CHECK(choice.named);
  const auto told = [&](const DeviceLimits& limits) {
    return std::ranges::count(attention::make_plan(problem, choice, limits).decisions,
                              "wgmma kernels are withheld on sm_90a: rows are wrong; this "
                              "configuration runs because the caller requested it");
  };
  CHECK(told(none) == 1);
  CHECK(told(kSm90a) == 0);
}

TEST_CASE("a tuned result of a withheld configuration is not used, and no fault of its file") {
  const Problem problem = test::planned_problem("causal", 1024, 128);
  const test::ScratchFolder scratch;
  tuned::StoreOptions options;
  options.folders = {scratch / "t"};
  options.device.identity = "a device";
  options.device.simulated = true;
  options.limits = kSm90a;
  const tuned::Entry entry = test::entry_for(problem, "wgmma m64 n64 w4 s2");
  tuned::TunedStore(options).store(entry, false);
  std::vector<std::string> warnings, notes;
  const base::Log log(
      [&](base::LogLevel level, std::string_view text) {
        (level == base::LogLevel::kWarning ? warnings : notes).emplace_back(text);
      },
      base::LogLevel::kInfo);
  const auto is_tuned = [&] {
    tuned::TunedStore store(options, log);
    return choose({problem}, options.limits, {}, store).tuned.has_value();
  };
  CHECK(is_tuned());
  options.limits = with_table(kSm90a, std::span(kNoneOnSm90a).first(1));
  CHECK_FALSE(is_tuned());
  CHECK(warnings.empty());
  const std::string reason = "wgmma kernels are withheld on sm_90a: rows are wrong";
  CHECK(std::ranges::count_if(notes, [&](const auto& line) { return contains(line, reason); }) ==
        1);
  CHECK(tuned::TunedStore(options).why_not(entry) == reason);
}

TEST_CASE("the tuner tries nothing that is withheld") {
  const auto candidates = [&](const DeviceLimits& limits, const char* kernel) {
    const attention::PipeDevice pipes = attention::pipe_device(limits);
    BatchProblem batch;
    batch.dim_qk = batch.dim_v = 128;
    auto all = tuned::enumerate({128, 128}, Dtype::kBfloat16, limits, pipes, true).candidates;
    const auto more =
        tuned::enumerate(batch, batch::RequestClass::kManyQueries, limits, pipes, true);
    all.insert(all.end(), more.candidates.begin(), more.candidates.end());
    return std::ranges::count_if(
        all, [&](const auto& config) { return std::string(config.family->name) == kernel; });
  };
  constexpr Withheld kTable[] = {{"wgmma", 0, "sm_90a", "rows are wrong"},
                                 {"chunk_wgmma", 0, "sm_90a", "rows are wrong"}};
  for (const char* kernel : {"wgmma", "chunk_wgmma"}) {
    CHECK(candidates(kSm90a, kernel) > 0);
    CHECK(candidates(with_table(kSm90a, kTable), kernel) == 0);
  }
  for (const char* kernel : {"mma", "chunk"}) {
    CHECK(candidates(with_table(kSm90a, kTable), kernel) == candidates(kSm90a, kernel));
  }
}

TEST_CASE("no rank runs what is withheld on its device, unless the caller named it") {
  const Problem problem = test::planned_problem("causal", 256, 64);
  const ShardMap shards = make_shards(Sharding::kContiguous, 2, problem.seq_q, problem.seq_k);
  const Withheld row = {"mma", 0, "sm_86", "rows are wrong"};
  const DeviceLimits limits[] = {kSm80, with_table(kSm86, {&row, 1})};
  const auto plan = [&](const PlanOptions& options) {
    const Choice choice = untuned({ring::largest_hop(problem, shards)}, limits[0], options);
    ring::plan_ring(ring::plan_world(problem, shards, Route::kAuto), limits, choice);
  };
  const std::string refusal = refusal_of([&] { plan({}); });
  CHECK_MESSAGE(contains(refusal, "rank 1 cannot run what rank 0 chose"), refusal);
  CHECK_MESSAGE(contains(refusal, "mma kernels are withheld on sm_86: rows are wrong"), refusal);
  PlanOptions named;
  named.config = "mma m64 n64 w4 s2";
  CHECK_NOTHROW(plan(named));
}

}  // namespace
}  // namespace annulus::planner
