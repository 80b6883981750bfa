// Plans problems whose sizes are at every edge of the integers:
//
//   fault_sizes --for 600 [--passes N] [--seed N] [--cache FOLDER]
//
// Sizes, strides, block sizes of layouts, and lengths and counts of shards are drawn from 0, 1, -1,
// the edges of 31, 32, 53 and 63 bits, and small numbers. A call must return an answer or a typed
// error other than "internal", within its limit of work, and memory must stay below a cap. Exit
// code 1: a pass was wrong. Its drawn numbers are printed.

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>

#include "annulus/device.h"
#include "annulus/layout.h"
#include "annulus/ring.h"
#include "annulus/types.h"
#include "faults/flows.h"
#include "faults/in_children.h"
#include "faults/options.h"

namespace {

using namespace annulus;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kEdges[] = {0,
                                   1,
                                   -1,
                                   (std::int64_t{1} << 31) - 1,
                                   std::int64_t{1} << 31,
                                   (std::int64_t{1} << 31) + 1,
                                   std::int64_t{1} << 32,
                                   std::int64_t{1} << 53,
                                   std::int64_t{1} << 62,
                                   INT64_MAX,
                                   INT64_MIN};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  // Mostly returns `usual`, because two wrong sizes would hide each other.
  std::int64_t size(const char* name, std::int64_t usual) {
    if (random_() % 6 != 0) return usual;
    const std::int64_t value = kEdges[random_() % std::size(kEdges)];
    text += std::string(" ") + name + " " + std::to_string(value);
    return value;
  }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string text;

 private:
  std::mt19937_64 random_;
};

struct Shared {
  std::size_t tried = 0, errors = 0, wrong = 0;
  std::uint64_t seed = 0;
  std::size_t passes = ~std::size_t{0};
  double slowest = 0;  // seconds of the slowest pass
  char slowest_text[400] = "";
};

void plan_drawn(const Device& device, Draw& draw) {
  constexpr const char* kPatterns[] = {"dense", "causal", "window(31,0)",
                                       "causal & strided(4,16,16)", "global(16) | window(8,8)"};
  Problem problem;
  problem.batch = draw.size("B", 1);
  problem.heads = draw.size("H", 2);
  problem.kv_heads = draw.size("Hkv", 2);
  problem.seq_q = draw.size("Sq", 64);
  problem.seq_k = draw.size("Sk", 64);
  problem.dim_qk = draw.size("Dqk", 64);
  problem.dim_v = draw.size("Dv", problem.dim_qk);
  problem.pattern = Pattern::parse(kPatterns[draw.below(std::size(kPatterns))]);
  PlanOptions options;
  options.block_rows = draw.size("block_rows", 0);
  options.block_columns = draw.size("block_columns", 0);
  options.max_workspace_bytes = draw.size("max_workspace_bytes", 0);
  options.work.steps = 1 << 22;
  OperandStrides strides;
  for (Strides* each : {&strides.q, &strides.k, &strides.v, &strides.o}) {
    *each = Strides::bshd(64, 2, 64);
    each->batch = draw.size("batch stride", each->batch);
    each->head = draw.size("head stride", each->head);
    each->row = draw.size("row stride", each->row);
  }
  if (draw.below(2) == 0) options.strides = strides;
  const Plan plan = device.plan(problem, options);
  if (plan.workspace_bytes() > (std::size_t{1} << 40)) throw std::runtime_error("a workspace");
  plan.predict();
}

void lay_out_drawn(Draw& draw) {
  LayoutOptions options;
  options.work.steps = 1 << 22;
  make_layout(Pattern::parse("causal | global(16)"),
              {draw.size("R", 16), draw.size("C", 16), draw.size("Sq", 256), draw.size("Sk", 256),
               draw.size("H", 1)},
              options);
}

void shard_drawn(Draw& draw) {
  constexpr Sharding kShardings[] = {Sharding::kContiguous, Sharding::kZigzag};
  make_shards(kShardings[draw.below(2)], static_cast<int>(draw.size("ranks", 4)),
              draw.size("Sq", 256), draw.size("Sk", 256));
}

void run(Shared& shared, const test::Folders& folders, Clock::time_point end) {
  const Device device = Device::open(test::options_of(folders));
  // A call that allocates without checking its sizes fails here with std::bad_alloc.
  const rlimit cap{rlim_t{64} << 30, rlim_t{64} << 30};
  setrlimit(RLIMIT_DATA, &cap);
  while (Clock::now() < end && shared.tried < shared.passes) {
    Draw draw(++shared.seed);
    ++shared.tried;
    alarm(120);
    const Clock::time_point begin = Clock::now();
    struct Timed {
      ~Timed() {
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        if (seconds <= shared.slowest) return;
        shared.slowest = seconds;
        std::snprintf(shared.slowest_text, sizeof(shared.slowest_text), "%s", draw.text.c_str());
      }
      Shared& shared;
      const Draw& draw;
      Clock::time_point begin;
    } timed{shared, draw, begin};
    try {
      const std::uint64_t kind = draw.below(8);
      if (kind < 6) {
        plan_drawn(device, draw);
      } else if (kind == 6) {
        lay_out_drawn(draw);
      } else {
        shard_drawn(draw);
      }
    } catch (const Error& error) {
      ++shared.errors;
      if (error.code() != ErrorCode::kInternal) continue;
      ++shared.wrong;
      std::printf("WRONG --seed %llu:%s: %s\n", static_cast<unsigned long long>(shared.seed - 1),
                  draw.text.c_str(), error.what());
    } catch (const std::exception& error) {
      ++shared.wrong;
      std::printf("WRONG --seed %llu:%s: no typed error: %s\n",
                  static_cast<unsigned long long>(shared.seed - 1), draw.text.c_str(),
                  error.what());
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 10;
  std::string cache;
  const test::SharedWithChildren<Shared> shared;
  test::read_options(argc, argv,
                     {test::option("--for", &seconds), test::option("--passes", &shared->passes),
                      test::option("--seed", &shared->seed), test::option("--cache", &cache)});
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  std::size_t ends = 0;
  while (Clock::now() < end && ends < 20) {
    const std::string ended = test::run_in_child(3600, [&] { run(*shared, {cache, ""}, end); });
    if (ended.empty()) break;
    ++ends;
    std::printf("WRONG --seed %llu: %s\n", static_cast<unsigned long long>(shared->seed - 1),
                ended.c_str());
  }
  std::printf(
      "%zu cases: sizes at edges, %zu errors, %zu wrong, %zu ends of the process; the "
      "slowest took %.1f s:%s\n",
      shared->tried, shared->errors, shared->wrong, ends, shared->slowest, shared->slowest_text);
  return shared->wrong + ends == 0 ? 0 : 1;
}
