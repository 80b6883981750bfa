// Planning on a device, below the API. A plan, a plan with a selection, a ring and prefetch take
// the same steps.

#include "planner/planner.h"

#include <doctest/doctest.h>

#include "annulus/ring.h"
#include "annulus/types.h"
#include "planner/ring/prepared_ring.h"
#include "planner/tuned_entry.h"
#include "ring/plan.h"
#include "support/context.h"
#include "support/nvrtc.h"

namespace annulus::planner {
namespace {

using test::keep_tuned;
using test::planned_problem;

// A device like the one of Device::open, with tuned results and kernels only in memory.
std::optional<Planner> open(const std::string& name, const jit::Arch& arch) {
  const auto nvrtc = test::nvrtc();
  if (nvrtc == nullptr) return std::nullopt;
  Planner planner;
  planner.device = name;
  planner.context = test::open_context(name);
  const device::DeviceInfo& info = planner.context->info();
  planner.limits = {arch, info.multiprocessors, info.shared_bytes_per_block_optin};
  const auto compiler = std::make_shared<const jit::Compiler>(nvrtc, jit::TemplateSet::embedded(),
                                                              jit::ImageKind::kPtx);
  // The folder of the tests' cache, so that kernels are compiled only once.
  const auto disk = std::make_shared<jit::DiskCache>(
      jit::DiskCacheOptions{.folder = base::default_cache_dir(base::read_environment())});
  planner.kernels = std::make_shared<jit::KernelCache>(planner.context, compiler, disk);
  planner.tuned = std::make_shared<tuned::TunedStore>(test::tuned_store(planner.limits).options());
  planner.tiles = std::make_shared<attention::TileCache>(base::CacheLimits{1 << 20, 16});
  planner.device_tiles =
      std::make_shared<attention::DeviceTileCache>(planner.context, base::CacheLimits{1 << 20, 16});
  return planner;
}

std::optional<Planner> hopper() { return open("sim:sm_90a", {90, 'a'}); }
std::optional<Planner> ampere() { return open("sim:sm_80", {80, '\0'}); }

// Plans a ring with the same planner on every rank.
RingInfo ring_info(const Planner& planner, const Problem& problem, int ranks,
                   const PlanOptions& options = {}) {
  const ShardMap shards = make_shards(Sharding::kZigzag, ranks, problem.seq_q, problem.seq_k);
  const RingOptions of_ring{options};
  const std::vector<RankRequest> requests(static_cast<std::size_t>(ranks),
                                          {planner, &problem, &shards, &of_ring});
  return prepare_ring(requests)->info;
}

TEST_CASE("a plan names one kernel and configuration, asked for, tuned or chosen") {
  const auto planner = hopper();
  if (!planner) return;
  const Problem problem = planned_problem("causal", 300, 64);
  const Prepared chosen = planner->prepare({problem, {}});
  CHECK(chosen.info.tuned.empty());
  CHECK(chosen.info.kernel == chosen.forward.branches().front().plan().spec.family);
  PlanOptions options;
  options.config = "mma m64 n64 w4 s2";
  const Prepared asked = planner->prepare({problem, options});
  CHECK(asked.info.config == options.config);
  CHECK(asked.info.kernel == "mma_forward");
  keep_tuned(*planner->tuned, problem, "mma m64 n32 w4 s2");
  const Prepared tuned = planner->prepare({problem, {}});
  CHECK(tuned.info.tuned == "memory");
  CHECK(tuned.info.config == "mma m64 n32 w4 s2");
  CHECK(tuned.info.kernel == "mma_forward");
}

TEST_CASE("what was prefetched is there when planning, tuned or not") {
  const auto planner = ampere();
  if (!planner) return;
  for (const bool tuned : {false, true}) {
    CAPTURE(tuned);
    const Problem problem = planned_problem("causal & strided(8,2,16)", tuned ? 900 : 300);
    if (tuned) keep_tuned(*planner->tuned, problem, "mma m64 n32 w4 s2");
    planner->prefetch(problem, {});
    const std::size_t kernels = planner->kernels->size();
    const auto lists = planner->device_tiles->counters().misses;
    const Prepared prepared = planner->prepare({problem, {}});
    CHECK(prepared.info.tuned.empty() != tuned);
    CHECK(prepared.info.source == "memory");
    CHECK(planner->kernels->size() == kernels);
    CHECK(planner->device_tiles->counters().misses == lists);
  }
}

TEST_CASE("a plan with a selection goes through the same steps") {
  const auto planner = ampere();
  if (!planner) return;
  const Problem problem = planned_problem();
  keep_tuned(*planner->tuned, problem, "mma m64 n32 w4 s2");
  Selection selection;
  selection.max_blocks = 2;
  const Prepared prepared = planner->prepare({problem, {}, &selection});
  REQUIRE(prepared.selector);
  CHECK(prepared.info.tuned.empty());
  CHECK(prepared.info.kernel == "mma_forward");
  CHECK(prepared.workspace_bytes() > 0);
  PlanOptions options;
  options.max_multiprocessors = -1;
  CHECK_THROWS_WITH_AS(planner->prepare({problem, options, &selection}),
                       doctest::Contains("max_multiprocessors is -1"), Error);
}

TEST_CASE("a ring names the kernel that its configuration runs") {
  const auto planner = hopper();
  if (!planner) return;
  const Problem problem = planned_problem("causal", 512, 64);
  const RingInfo ring = ring_info(*planner, problem, 2);
  CHECK(ring.config.starts_with("wgmma "));
  CHECK(ring.kernel == "wgmma_forward");
  PlanOptions options;
  options.config = "mma m64 n64 w4 s2";
  const RingInfo asked = ring_info(*planner, problem, 2, options);
  CHECK(asked.config == options.config);
  CHECK(asked.kernel == "mma_forward");
  // Nothing is launched. The name is the kernel that would be launched.
  Problem nothing = problem;
  nothing.batch = 0;
  const RingInfo idle = ring_info(*planner, nothing, 2);
  CHECK(idle.ranks[0].launches == 0);
  CHECK(idle.kernel.starts_with("wgmma"));
  CHECK(idle.config.starts_with("wgmma "));
}

TEST_CASE("tuned results of other problems leave a ring of a sum alone") {
  const auto planner = ampere();
  if (!planner) return;
  const Problem sum = planned_problem("sum(causal, window(63,0))", 256);
  const RingInfo before = ring_info(*planner, sum, 2);
  keep_tuned(*planner->tuned, planned_problem("dense", 64, 32), "mma m64 n32 w4 s2");
  const RingInfo after = ring_info(*planner, sum, 2);
  CHECK(after.tuned.empty());
  CHECK(after.config == before.config);
  CHECK(planner->prepare({sum, {}}).info.tuned.empty());
}

TEST_CASE("a ring's launches take a tuned configuration as a plan does") {
  const auto planner = ampere();
  if (!planner) return;
  const Problem whole = planned_problem("causal", 512);
  const ShardMap shards = make_shards(Sharding::kZigzag, 2, 512, 512);
  keep_tuned(*planner->tuned, ring::tuned_step(whole, shards), "mma m64 n32 w4 s2");
  const RingInfo ring = ring_info(*planner, whole, 2);
  CHECK(ring.tuned == "memory");
  CHECK(ring.config == "mma m64 n32 w4 s2");
  CHECK(ring.kernel == "mma_forward");
}

TEST_CASE("options out of their range are refused by rings as by plans") {
  const auto planner = ampere();
  if (!planner) return;
  PlanOptions options;
  options.max_multiprocessors = -1;
  CHECK_THROWS_WITH_AS(ring_info(*planner, planned_problem(), 2, options),
                       doctest::Contains("max_multiprocessors is -1"), Error);
}

// Strides without gaps, except that K and V are broadcast over heads, which tensor maps do not
// support.
OperandStrides broadcast_strides(std::int64_t rows) {
  OperandStrides strides = {Strides::bshd(rows, 2, 64), Strides::bshd(rows, 2, 64),
                            Strides::bshd(rows, 2, 64), Strides::bshd(rows, 2, 64)};
  strides.k.head = strides.v.head = 0;
  return strides;
}

TEST_CASE("a ring follows the strides and the multiprocessors of its options, of every rank") {
  const auto planner = hopper();
  if (!planner) return;
  Problem problem = planned_problem("causal", 512, 64);
  problem.heads = problem.kv_heads = 2;
  CHECK(ring_info(*planner, problem, 2).kernel == "wgmma_forward");
  RingOptions options;
  options.strides = broadcast_strides(256);
  CHECK(ring_info(*planner, problem, 2, options).kernel == "mma_forward");
  // The strides of one rank decide for all ranks.
  const ShardMap shards = make_shards(Sharding::kZigzag, 2, 512, 512);
  const RingOptions plain;
  const RankRequest requests[] = {{*planner, &problem, &shards, &plain},
                                  {*planner, &problem, &shards, &options}};
  CHECK(prepare_ring(requests)->info.kernel == "mma_forward");

  const auto ctas = [&](int multiprocessors) {
    RingOptions few;
    few.max_multiprocessors = multiprocessors;
    std::int64_t all = 0;
    const auto ring = [&] {
      const std::vector<RankRequest> both(2, {*planner, &problem, &shards, &few});
      return prepare_ring(both);
    }();
    for (int rank = 0; rank < 2; ++rank) {
      const attention::Forward* launch = ring->ring.driver(rank).first_launch();
      REQUIRE(launch != nullptr);
      all += launch->plan().shape.grid_x;
    }
    return all;
  };
  CHECK(ctas(2) < ctas(0));
}

TEST_CASE("what a ring cannot follow is refused, with the rank") {
  const auto planner = ampere();
  if (!planner) return;
  const Problem problem = planned_problem("causal", 256);
  const ShardMap shards = make_shards(Sharding::kZigzag, 2, 256, 256);
  const auto refused = [&](const RingOptions& second, const char* part) {
    const RingOptions first;
    const RankRequest requests[] = {{*planner, &problem, &shards, &first},
                                    {*planner, &problem, &shards, &second}};
    CHECK_THROWS_WITH_AS(prepare_ring(requests), doctest::Contains(part), Error);
  };
  RingOptions options;
  options.route = static_cast<Route>(7);
  const RankRequest wrong = {*planner, &problem, &shards, &options};
  const RankRequest both[] = {wrong, wrong};
  CHECK_THROWS_WITH_AS(prepare_ring(both), doctest::Contains("route 7 is neither auto"), Error);
  options = {};
  options.max_multiprocessors = -5;
  refused(options, "rank 1: max_multiprocessors is -5");
  options = {};
  options.block_rows = options.block_columns = 64;
  refused(options, "rank 1: block_rows and block_columns are 64 and 64");
  options = {};
  options.strides = OperandStrides{};
  refused(options, "rank 1: the strides of Q are 0, 0 and 0");
  CHECK_THROWS_WITH_AS(planner->prepare({problem, options}),
                       doctest::Contains("the strides of Q are 0, 0 and 0"), Error);
}

}  // namespace
}  // namespace annulus::planner
