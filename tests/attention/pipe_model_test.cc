#include "attention/plan/predict_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "attention/cost/makespan.h"
#include "attention/kernels/mma/config.h"
#include "base/random.h"
#include "support/random_problem.h"

namespace annulus::attention {
namespace {

// Device properties as the drivers report them.
device::DeviceInfo a100() {
  device::DeviceInfo info;
  info.major = 8;
  info.multiprocessors = 108;
  info.max_threads_per_multiprocessor = 2048;
  info.max_blocks_per_multiprocessor = 32;
  info.registers_per_multiprocessor = 65536;
  info.shared_bytes_per_multiprocessor = 167936;
  info.shared_bytes_reserved_per_block = 1024;
  info.clock_kilohertz = 1410000;
  info.memory_clock_kilohertz = 1593000;
  info.memory_bus_bits = 5120;
  return info;
}

device::DeviceInfo h200() {
  device::DeviceInfo info = a100();
  info.major = 9;
  info.multiprocessors = 132;
  info.shared_bytes_per_multiprocessor = 233472;
  info.clock_kilohertz = 1980000;
  info.memory_clock_kilohertz = 3201000;
  info.memory_bus_bits = 6144;
  return info;
}

Problem problem(std::int64_t seq, std::int64_t dim, const char* pattern, std::int64_t heads = 16) {
  Problem made;
  made.heads = made.kv_heads = heads;
  made.seq_q = made.seq_k = seq;
  made.dim_qk = made.dim_v = dim;
  made.pattern = Pattern::parse(pattern);
  return made;
}

KernelFeatures features(const Problem& of) { return features_of(of); }

Prediction predicted(const device::DeviceInfo& info, const KernelConfig& config,
                     const Problem& of) {
  const TileCounts tiles = count_tiles(of, config.tile_rows, config.tile_columns);
  return predict(pipe_device(info), config, {of.dim_qk, of.dim_v}, tiles,
                 estimate_work(config, features(of), tiles), least_bytes(of));
}

TEST_CASE("tiles are counted as the list has them") {
  for (std::uint64_t index = 0; index < 400; ++index) {
    Problem of = test::random_problem(31, index);
    const Choice choice{MmaConfig{64, 32, 4, 2, false, 1}, "", {}};
    const std::vector<Pattern> branches = of.pattern.branches();
    for (const Pattern& branch : branches) {
      of.pattern = branch;
      const LaunchPlan plan = make_plan(of, choice, {{80, '\0'}, 108, 166912});
      const TileCounts counted = count_tiles(of, 64, 32), listed = count_tiles(plan);
      CAPTURE(of.pattern.to_string());
      CHECK(counted.ctas == listed.ctas);
      CHECK(counted.full_tiles == listed.full_tiles);
      CHECK(counted.partial_tiles == listed.partial_tiles);
      CHECK(counted.longest_row == listed.longest_row);
      CHECK(counted.longest_row == plan.tiles->longest_row);
      CHECK(counted.ctas == plan.tiles->row_tiles * of.heads * of.batch);
    }
  }
}

TEST_CASE("a dense tile takes what its pipes take") {
  // One tile of 128 x 128 with D 64, in cycles of a multiprocessor of an A100. 4 M N D flop run at
  // 2048 per cycle. M N exponentials, and a few for each row, run at 16 per cycle.
  const KernelConfig config = MmaConfig{128, 128, 8, 2, false, 1};
  const Problem of = problem(128, 64, "dense", 1);
  const Prediction made = predicted(a100(), config, of);
  const double multiprocessors = 108;
  CHECK(made.predicted_busy[0] * multiprocessors == doctest::Approx(2048));
  CHECK(made.predicted_busy[1] * multiprocessors == doctest::Approx(1024 + 32 + 40));
  CHECK(made.predicted_busy[3] * multiprocessors > 1000);
  CHECK(predicted(h200(), config, of).predicted_busy[0] * 132 ==
        doctest::Approx(4194304.0 / 2560).epsilon(1e-3));
}

TEST_CASE("a long dense problem runs at a plausible share of the peak") {
  // The peak is the time of the matrix pipe alone. Good kernels of this kind reach 70 to 80 % of it
  // on an A100 at D 128. The model must predict neither more than the peak nor less than half of
  // it.
  const Problem of = problem(16384, 128, "dense");
  for (const MmaConfig& config :
       {MmaConfig{128, 64, 8, 2, false, 1}, MmaConfig{128, 32, 4, 2, false, 2}}) {
    const Prediction made = predicted(a100(), config, of);
    const double share = made.predicted_busy[0] / made.predicted_cycles;
    CHECK(share < 1);
    CHECK(share > 0.4);
    CHECK(made.predicted_imbalance < 1.1);
    CHECK(made.predicted_waves > 1);
  }
}

TEST_CASE("the limit is what there is too little of") {
  const KernelConfig config = MmaConfig{64, 64, 4, 2, false, 3};
  // One row of queries reads every key once, so the memory limits it.
  Problem decode = problem(1, 128, "dense", 64);
  decode.batch = 64;
  decode.seq_k = 32768;
  CHECK(predicted(a100(), MmaConfig{64, 64, 4, 2, false, 2}, decode).predicted_limit ==
        Limit::kMemory);
  // One row is a hundred times as long as all others.
  const Prediction uneven =
      predicted(a100(), config, problem(65536, 64, "window(63,0) | global(16)"));
  CHECK(uneven.predicted_limit == Limit::kImbalance);
  CHECK(uneven.predicted_imbalance > 1.25);
  // With one stage, little work per step and one CTA per multiprocessor, copies arrive too late.
  const Prediction late =
      predicted(a100(), MmaConfig{64, 16, 4, 1, false, 1}, problem(1024, 32, "dense", 6));
  CHECK(late.predicted_limit == Limit::kLatency);
  const Prediction nothing = predicted(a100(), config, problem(0, 64, "dense"));
  CHECK(nothing.predicted_limit == Limit::kNothing);
  CHECK(nothing.predicted_cycles == 0);
  std::set<std::string> names;
  for (int limit = 0; limit <= static_cast<int>(Limit::kNothing); ++limit) {
    CHECK(names.insert(to_string(static_cast<Limit>(limit))).second);
  }
}

TEST_CASE("more of anything never takes longer, and less work never does either") {
  const KernelConfig config = MmaConfig{128, 64, 4, 2, false, 2};
  const Problem of = problem(8192, 64, "causal");
  const TileCounts tiles = count_tiles(of, 128, 64);
  const KernelWork work = estimate_work(config, features(of), tiles);
  const PipeDevice device = pipe_device(a100());
  const double before =
      predict(device, config, {64, 64}, tiles, work, least_bytes(of)).predicted_cycles;
  for (double PipeDevice::*rate :
       {&PipeDevice::matrix_flop, &PipeDevice::special_lanes, &PipeDevice::issue_slots,
        &PipeDevice::shared_wavefronts, &PipeDevice::l2_bytes, &PipeDevice::memory_bytes}) {
    PipeDevice faster = device, slower = device;
    faster.*rate *= 2;
    slower.*rate /= 8;
    const auto cycles = [&](const PipeDevice& with) {
      return predict(with, config, {64, 64}, tiles, work, least_bytes(of)).predicted_cycles;
    };
    CHECK(cycles(faster) <= before);
    CHECK(cycles(slower) >= before);
  }
  PipeDevice half = device;
  half.multiprocessors /= 2;
  const double on_half =
      predict(half, config, {64, 64}, tiles, work, least_bytes(of)).predicted_cycles;
  CHECK(on_half > 1.7 * before);  // the last wave is not halved
  CHECK(on_half < 2.2 * before);
  CHECK(predicted(a100(), config, problem(4096, 64, "causal")).predicted_cycles < before);
  CHECK(predicted(a100(), config, problem(8192, 64, "window(255,0)")).predicted_cycles <
        0.3 * before);
}

TEST_CASE("heads that share a CTA are counted once") {
  Problem of = problem(8192, 128, "dense");
  of.kv_heads = 8;
  const KernelConfig pair = *parse_config("wgmma m64 n64 w8 s2 b2 h2");
  const KernelConfig single = *parse_config("wgmma m128 n64 w8 s2 b2");
  const TileCounts tiles = count_tiles(of, 64, 64);
  const KernelWork work = estimate_work(pair, features(of), tiles);
  CHECK(work.matrix_flop == 4.0 * 8192 * 8192 * 128 * 16);
  // A tile with 64 rows of two heads has as much work as one with 128 rows of one head.
  const Prediction two = predicted(h200(), pair, of), one = predicted(h200(), single, of);
  CHECK(two.predicted_waves == one.predicted_waves);
  CHECK(two.predicted_cycles == doctest::Approx(one.predicted_cycles).epsilon(1e-9));
  CHECK(two.predicted_limit == one.predicted_limit);
}

TEST_CASE("CTAs are resident as shared memory, registers and threads allow") {
  const PipeDevice device = pipe_device(a100());
  const Dims dims = {64, 64};
  // 24 KB of 164 KB: six CTAs fit. By the registers, 65536 / (128 x 128) = 4 CTAs fit.
  CHECK(resident_ctas(device, MmaConfig{64, 32, 4, 2, false, 1}, dims, 128) == 4);
  CHECK(resident_ctas(device, MmaConfig{64, 32, 4, 2, false, 1}, dims, 64) == 6);
  CHECK(resident_ctas(device, MmaConfig{64, 16, 4, 1, false, 1}, dims, 24) == 12);
  CHECK(resident_ctas(device, MmaConfig{256, 128, 8, 4, false, 1}, dims, 128) == 1);
  // If a CTA needs more memory than there is, nothing runs and the predicted time is infinite.
  PipeDevice tiny = device;
  tiny.shared_bytes = 10'000;
  CHECK(resident_ctas(tiny, MmaConfig{64, 32, 4, 2, false, 1}, dims) == 0);
  const Problem of = problem(512, 64, "dense");
  const TileCounts tiles = count_tiles(of, 64, 32);
  const KernelConfig config = MmaConfig{64, 32, 4, 2, false, 1};
  CHECK(std::isinf(predict(tiny, config, dims, tiles, estimate_work(config, features(of), tiles),
                           least_bytes(of))
                       .predicted_cycles));
  // The requested number of resident CTAs limits the registers that ptxas may use.
  CHECK(footprint(MmaConfig{64, 64, 4, 2, false, 1}, dims).max_registers == 255);
  CHECK(footprint(MmaConfig{64, 64, 4, 2, false, 3}, dims).max_registers == 168);
  CHECK(footprint(MmaConfig{128, 64, 8, 2, false, 2}, dims).max_registers == 128);
  CHECK(footprint(MmaConfig{64, 64, 4, 2, false, 4}, dims).predicted_registers <= 128);
}

TEST_CASE("a plan alone is enough, and any architecture has some rates") {
  const Problem of = problem(1000, 128, "causal & window(300,0)");
  const Choice choice{MmaConfig{64, 64, 4, 2, false, 2}, "", {}};
  const LaunchPlan plan = make_plan(of, choice, {{80, '\0'}, 108, 166912});
  CHECK(predict(pipe_device(a100()), plan).predicted_cycles ==
        predicted(a100(), choice.config, of).predicted_cycles);
  for (const int number : {50, 80, 86, 87, 89, 90, 100, 103, 120, 121, 999}) {
    device::DeviceInfo info = a100();
    info.major = number / 10;
    info.minor = number % 10;
    const PipeDevice device = pipe_device(info);
    CHECK(device.matrix_flop >= 1024);
    CHECK(device.l2_bytes > 0);
    CHECK(device.memory_bytes > 0);
  }
  // The share of 2039 GB/s that kernels reach, in bytes per cycle.
  CHECK(pipe_device(a100()).memory_bytes ==
        doctest::Approx(2039 / 1.41 * PipeConstants{}.memory_share).epsilon(0.001));
  CHECK(pipe_device(device::DeviceInfo{}).multiprocessors == 1);
}

TEST_CASE("a driver's absurd clocks are replaced by usual ones") {
  const PipeDevice usual = pipe_device(h200());
  for (const int clock : {0, -1, 1, 2'000'000'000}) {
    device::DeviceInfo info = h200();
    info.clock_kilohertz = clock;
    CHECK(pipe_device(info).clock_hertz == doctest::Approx(1.98e9));
    CHECK(pipe_device(info).memory_bytes == doctest::Approx(usual.memory_bytes));
    info = h200();
    info.memory_clock_kilohertz = clock;
    CHECK(pipe_device(info).memory_bytes ==
          doctest::Approx(usual.memory_bytes * 3350 / 4917.0).epsilon(0.001));
  }
  // A low clock rate that a chip may have is used as reported.
  device::DeviceInfo slow = h200();
  slow.clock_kilohertz = 1'000'000;
  CHECK(pipe_device(slow).clock_hertz == 1e9);
  CHECK(pipe_device(slow).loaded_clock_hertz == 1e9);
}

TEST_CASE("nothing that a driver says of its device makes nonsense of a plan") {
  const Problem of = problem(4096, 128, "causal", 16);
  const KernelConfig config = *parse_config("wgmma m128 n128 w8 s2");
  const auto planned = [&](const DeviceLimits& limits) {
    return make_plan(of, {config, "", {}}, limits, {.dealt = Dealt::kAsPays});
  };
  const DeviceLimits usual{
      .arch = {90, 'a'}, .multiprocessors = 132, .shared_bytes_per_block = 232448};
  const bool draws = planned(usual).features.draws_work;
  CHECK(draws);
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  for (const int said : {0, -1, 1, 17, kMost, kLeast}) {
    CAPTURE(said);
    for (int DeviceLimits::*const member :
         {&DeviceLimits::clock_kilohertz, &DeviceLimits::memory_clock_kilohertz,
          &DeviceLimits::memory_bus_bits}) {
      DeviceLimits limits = usual;
      limits.memory_clock_kilohertz = 2619000;
      limits.memory_bus_bits = 5120;
      limits.*member = said;
      const PipeDevice device = pipe_device(limits);
      CHECK(device.clock_hertz == doctest::Approx(1.98e9));
      CHECK(device.loaded_clock_hertz > 1e9);
      CHECK(device.loaded_clock_hertz <= device.clock_hertz);
      CHECK(device.memory_bytes > 100);
      CHECK(device.memory_bytes < 100000);
      const LaunchPlan plan = planned(limits);
      CHECK(plan.features.draws_work == draws);
      const Prediction made = predict(device, plan);
      CHECK(std::isfinite(made.predicted_micros));
      CHECK(made.predicted_micros > 0);
      CHECK(made.predicted_imbalance >= 1);
    }
    device::DeviceInfo info = h200();
    info.multiprocessors = said;
    const PipeDevice device = pipe_device(info);
    CHECK(device.multiprocessors == std::max(1, said));
    // If a device holds no CTA, the predicted time is infinite and nothing else happens.
    info = h200();
    info.registers_per_multiprocessor = info.max_threads_per_multiprocessor = said;
    const double micros = predict(pipe_device(info), planned(usual)).predicted_micros;
    CHECK(std::isinf(micros) == (said < kMost));
    CHECK(micros > 0);
  }
}

TEST_CASE("busy tensor cores lower the clock of sm_90, and of nothing else") {
  const KernelConfig wide = *parse_config("wgmma m128 n128 w8 s2"),
                     mma = MmaConfig{128, 64, 4, 2, false, 2};
  const Problem of = problem(16384, 128, "dense");
  const Prediction hopper = predicted(h200(), wide, of);
  CHECK(hopper.predicted_hertz < 1.7e9);
  CHECK(hopper.predicted_hertz > 1e9 * PipeConstants{}.loaded_gigahertz);
  // mma.sync reaches 5/8 of the rate.
  CHECK(predicted(h200(), mma, of).predicted_hertz > hopper.predicted_hertz + 5e7);
  CHECK(predicted(a100(), mma, of).predicted_hertz == 1.41e9);
  // Cycles refer to the clock rate that the driver reports, so cycles compare as times do.
  CHECK(hopper.predicted_micros * 1980 == doctest::Approx(hopper.predicted_cycles));
}

TEST_CASE("the range holds the prediction and what every constant makes of it") {
  const KernelConfig config = *parse_config("wgmma m128 n128 w8 s2");
  const Problem of = problem(8192, 128, "causal");
  const TileCounts tiles = count_tiles(of, 128, 128);
  const auto micros = [&](const PipeDevice& device) {
    return predict(device, config, {128, 128}, tiles, estimate_work(config, features(of), tiles),
                   least_bytes(of))
        .predicted_micros;
  };
  const double middle = micros(pipe_device(h200()));
  const PredictedRange range = predict_range(h200(), middle, micros);
  CHECK(range.least < 0.98 * middle);
  CHECK(range.most > 1.02 * middle);
  for (const PipeConstant& constant : pipe_constants()) {
    for (const double end : {constant.least, constant.most}) {
      PipeConstants constants;
      constants.*constant.value = end;
      const double there = micros(pipe_device(h200(), constants));
      CHECK(there >= range.least * (1 - 1e-9));
      CHECK(there <= range.most * (1 + 1e-9));
    }
  }
}

TEST_CASE("works are dealt as kernels deal them") {
  TileCounts tiles;
  tiles.row_tiles = 4;
  tiles.copies = 1;
  tiles.lengths = {1, 2, 3, 4, 1, 2, 3, 4};  // two heads
  tiles.ctas = 8;
  tiles.full_tiles = 20;
  tiles.longest_row = 4;
  const auto cycles = [&](const Dealing& dealing) { return makespan(tiles, dealing, 0, 1); };
  // Head by head, 4 3 2 1 4 3 2 1: two slots take 4 2 4 2 and 3 1 3 1, or each free slot takes the
  // next work.
  CHECK(cycles({.deal = Deal::kStride, .slots = 2}) == 12);
  CHECK(cycles({.deal = Deal::kFree, .slots = 2}) == 10);
  // Both heads together: 4 4 3 3 2 2 1 1.
  CHECK(cycles({.deal = Deal::kStride, .slots = 2, .set = 2}) == 10);
  CHECK(cycles({.deal = Deal::kStride, .slots = 3, .set = 2}) == 8);
  // In the order of the rows: 1 2 3 4 1 2 3 4.
  CHECK(cycles({.deal = Deal::kStride, .slots = 2, .longest_first = false}) == 12);
  CHECK(cycles({.deal = Deal::kFree, .slots = 2, .longest_first = false}) == 11);
  // Two CTAs take two rows together, which last as long as the longer row. Or they take two heads.
  CHECK(cycles({.deal = Deal::kFree, .slots = 2, .cluster = 2}) == 12);
  tiles.lengths.resize(4);
  tiles.copies = 2;
  CHECK(cycles({.deal = Deal::kFree, .slots = 2, .cluster = 2}) == 10);
  // With a fixed time per work, and more slots than works.
  CHECK(makespan(tiles, {.slots = 100}, 5, 1) == 9);
}

TEST_CASE("drawing pays where counting off ends later by more than the counter costs") {
  TileCounts tiles;
  tiles.copies = 1;
  const auto pays = [&](std::vector<std::int32_t> lengths, const Dealing& dealing, double clear) {
    tiles.row_tiles = tiles.ctas = std::ssize(lengths);
    tiles.full_tiles = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    tiles.longest_row = *std::ranges::max_element(lengths);
    tiles.lengths = std::move(lengths);
    Dealing drawn = dealing, counted = dealing;
    drawn.deal = Deal::kCounter;
    counted.deal = Deal::kStride;
    const bool said = drawing_pays(tiles, dealing, 0, 1, clear);
    const double mean = static_cast<double>(tiles.full_tiles) / static_cast<double>(dealing.slots);
    CHECK(said ==
          (makespan(tiles, counted, 0, 1) > makespan(tiles, drawn, 0, 1) + clear + 0.005 * mean));
    return said;
  };
  // Counted off, the slots take 9 + 5 and 8 + 4. Drawn, they take 9 + 4 and 8 + 5.
  CHECK(pays({9, 8, 5, 4}, {.slots = 2}, 0));
  CHECK(!pays({9, 8, 5, 4}, {.slots = 2}, 1));
  // The rows come in their order, so the second slot is the busiest.
  CHECK(pays({1, 9, 1, 9, 1, 9}, {.slots = 2, .longest_first = false}, 1));
  CHECK(!pays({7, 7, 7, 7}, {.slots = 2}, 0));
  CHECK(!pays({9, 1}, {.slots = 2}, 0));
  // One work is longer than all others together. So drawing saves the works that would wait after
  // it.
  CHECK(pays({30, 1, 1, 1, 1, 1}, {.slots = 2}, 1));
  CHECK(!pays({30, 1, 1, 1, 1, 1}, {.slots = 2}, 2));
  base::Random random(5);
  int drawn = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::int32_t> lengths(5 + random.below(60));
    for (std::int32_t& length : lengths) {
      length = 1 + static_cast<std::int32_t>(random.below(i % 3 == 0 ? 3 : 100));
    }
    drawn += pays(lengths, {.slots = 2 + random.below(6), .longest_first = i % 2 == 0}, i % 20);
  }
  CHECK(drawn > 20);
  CHECK(drawn < 180);
}

TEST_CASE("long rows of the last sets get a head start where all would wait for them") {
  TileCounts tiles;
  tiles.row_tiles = 4;
  tiles.copies = 4;
  tiles.lengths = {1, 9, 1, 1};
  tiles.ctas = 16;
  tiles.full_tiles = 48;
  tiles.longest_row = 9;
  Dealing dealing = {.deal = Deal::kCounter, .slots = 3};
  // The works are 9 1 1 1, four times. The last 9 begins at 11.
  const auto cycles = [&](const HeadStart& ahead) {
    dealing.head_start = ahead;
    return makespan(tiles, dealing, 0, 1);
  };
  CHECK(cycles({}) == 20);
  CHECK(cycles({1, 1}) == 20);
  // 9 1 1 1 9 1 1 1 9 9 1 1 1 1 1 1.
  CHECK(cycles({2, 1}) == 18);
  CHECK(cycles({4, 1}) == 18);
  CHECK(cycles({9, 3}) == 18);
  CHECK(cycles({9, 9}) == 18);
  // Works that are counted off have no head start.
  dealing.deal = Deal::kStride;
  CHECK(cycles({4, 1}) == cycles({}));
  dealing.deal = Deal::kCounter;
  CHECK(choose_head_start(tiles, dealing, 0, 1) == HeadStart{2, 1});
  // If L2 holds only one set and the memory is slow, the long rows would be late.
  dealing.memory_tile = 100;
  CHECK(choose_head_start(tiles, dealing, 0, 1).empty());
  dealing.head_start = {2, 1};
  // 18 tiles, half of which are not in L2, next to rows of 9 cycles.
  CHECK(makespan(tiles, dealing, 0, 1) == 18 + 18 * 0.5 * 100 - 9);
  dealing.held_sets = 4;
  CHECK(makespan(tiles, dealing, 0, 1) == 18);
  CHECK(choose_head_start(tiles, dealing, 0, 1) == HeadStart{2, 1});
  // A single set needs no head start.
  dealing.set = 4;
  CHECK(choose_head_start(tiles, dealing, 0, 1).empty());
  tiles.lengths = {3, 3, 3, 3};
  dealing.set = 1;
  CHECK(choose_head_start(tiles, dealing, 0, 1).empty());
}

TEST_CASE("very many CTAs are summed up and not dealt out one by one") {
  const KernelConfig config = MmaConfig{64, 64, 4, 2, false, 3};
  Problem few = problem(4096, 64, "causal", 16), many = few;
  many.batch = 512;  // half a million CTAs
  few.batch = 16;
  const double ratio = predicted(a100(), config, many).predicted_cycles /
                       predicted(a100(), config, few).predicted_cycles;
  CHECK(ratio == doctest::Approx(32).epsilon(0.05));
}

}  // namespace
}  // namespace annulus::attention
