// Random batches against the oracle: requests of any lengths, in pages of any size at any places,
// under drawn orders of warps and moments of landing.

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "base/random.h"
#include "batch/batch_case.h"
#include "support/device.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::BatchCase;
using test::Placing;
using test::Request;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed), seed_(seed) {}

  // Few structures, since each is a kernel to compile; everything else is drawn anew.
  BatchProblem problem() {
    static constexpr std::array<const char*, 6> kPatterns = {"causal",
                                                             "causal & (window(70, 0) | sink(9))",
                                                             "dense",
                                                             "causal & window(200, 0)",
                                                             "causal | prefix(30)",
                                                             "window(20, 20) | global(5)"};
    struct Heads {
      std::int64_t heads, kv_heads;
    };
    static constexpr std::array<Heads, 6> kHeads = {Heads{1, 1}, {8, 2}, {6, 2},
                                                    {20, 1},     {5, 5}, {12, 3}};
    static constexpr std::array<std::int64_t, 7> kPages = {0, 1, 16, 64, 7, 48, 128};
    BatchProblem made;
    const Heads heads = kHeads[random_.below(kHeads.size())];
    made.heads = heads.heads;
    made.kv_heads = heads.kv_heads;
    made.dim_qk = made.dim_v = random_.below(4) == 0 ? 128 : 64;
    made.dtype = random_.below(3) == 0 ? Dtype::kFloat16 : Dtype::kBfloat16;
    made.pattern = Pattern::parse(kPatterns[random_.below(kPatterns.size())]);
    made.page_rows = kPages[random_.below(kPages.size())];
    made.want_lse = true;
    return made;
  }
  std::vector<Request> requests() {
    std::vector<Request> made(1 + random_.below(9));
    for (Request& request : made) {
      request.queries = random_.below(3) > 0 ? 1 : random_.below(70);
      request.keys = random_.below(5) == 0 ? random_.below(3) : random_.below(400);
      request.position = random_.below(4) == 0 ? random_.below(1000) : 0;
      request.seed = seed_ * 100 + random_.below(1000);
    }
    return made;
  }
  Placing placing() {
    return {.heads_first = random_.below(2) == 0,
            .together = random_.below(3) == 0,
            .listed = random_.below(2) == 0,
            .own_tables = random_.below(3) == 0,
            .slabs = random_.below(2) == 0,
            .gap = random_.below(4),
            .seed = seed_};
  }
  BatchOptions options() {
    BatchOptions made;
    made.part_keys = 128 * random_.below(3);
    made.max_multiprocessors = static_cast<int>(random_.below(4));
    return made;
  }

 private:
  base::Random random_;
  std::uint64_t seed_;
};

TEST_CASE("random batches give the oracle's answers") {
  const Device device = Device::open(test::device_name());
  const int count = test::options().problems > 0 ? test::options().problems : 8;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = test::seed_of(900) * 100000 + static_cast<std::uint64_t>(i);
    Draw draw(seed);
    BatchProblem problem = draw.problem();
    const std::vector<Request> requests = draw.requests();
    const Placing placing = draw.placing();
    problem.most = test::bounds_of(requests);
    problem.most.rows += placing.gap;
    SimulationOptions simulation;
    simulation.seed = seed;
    device.set_simulation(simulation);
    const BatchPlan plan = plan_batch(device, problem, draw.options());
    const BatchCase step(device, plan, requests, placing);
    step.run();
    test::check_answers(plan.problem(), requests, step.answers(),
                        "batch " + std::to_string(seed) + ", " + problem.pattern.to_string() +
                            ", pages of " + std::to_string(problem.page_rows));
  }
}

}  // namespace
