// A problem, from its description to an answer compared with the oracle, through the public
// interface only.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "annulus/kernels.h"
#include "annulus/oracle.h"
#include "annulus/problem.h"
#include "annulus/ring.h"
#include "annulus/selection.h"
#include "annulus/tune.h"
#include "outside/outside.h"

namespace {

using namespace annulus;
using test::Tensors;

Problem small_problem() {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = problem.seq_k = 200;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = causal() & window(90, 0);
  problem.want_lse = true;
  return problem;
}

HostResult result_of(const Tensors& tensors) {
  return {tensors.o.data(), tensors.operands.o_strides, tensors.lse.data(), nullptr};
}

TEST_CASE("an embedder answers at once and is told when the plan has its own kernel") {
  const Device device = test::device();
  Problem problem = small_problem();
  problem.pattern = causal() & window(83, 0);
  Tensors tensors(device, problem, 8);
  PlanOptions options;
  options.wait = false;
  options.swap = Swap::kWhenAsked;
  const Plan plan = device.plan(problem, options);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  const Reference expected = reference(problem, inputs_of(tensors));
  const auto check_run = [&] {
    plan.run(nullptr, tensors.operands, workspace.data());
    device.synchronize();
    tensors.read_back(device);
    CHECK(compare(problem, expected, result_of(tensors)).within_tolerance);
  };
  check_run();
  REQUIRE(plan.wait());
  CHECK(plan.why_general().empty());
  CHECK(plan.state() != PlanState::kCompiling);
  plan.swap();
  CHECK(plan.ready());
  check_run();
}

TEST_CASE("an embedder verifies an answer, and a wrong one is found") {
  const Device device = test::device();
  const Problem problem = small_problem();
  Tensors tensors(device, problem, 1);
  REQUIRE_NOTHROW(validate(problem, tensors.operands));
  const Plan plan = device.plan(problem);
  CHECK(plan.problem().seq_q == 200);
  CHECK(plan.predict().predicted_micros > 0);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  plan.run(nullptr, tensors.operands, workspace.data());
  plan.bind(tensors.operands, workspace.data()).run(nullptr);
  device.synchronize();
  tensors.read_back(device);

  const HostInputs inputs = inputs_of(tensors);
  const Reference expected = reference(problem, inputs);
  CHECK(expected.rows.size() == 400);
  const Comparison good = compare(problem, expected, result_of(tensors));
  CHECK(good.within_tolerance);
  CHECK(good.checked_rows == 400);
  CHECK(good.error_row_max <= tolerance(problem.dtype).row);
  CHECK(reached_rows(problem, inputs, plan.info().tile_rows, plan.info().tile_columns).empty());

  tensors.o[1234] ^= 0x4000;
  const Comparison bad = compare(problem, expected, result_of(tensors));
  CHECK_FALSE(bad.within_tolerance);
  CHECK(bad.wrong_rows == 1);
  // Element 1234 is in row 1234 / (2 x 64) of head 1, because these tensors are [Sq, H, Dv].
  CHECK(bad.first_wrong.find("head 1 row 9:") != std::string::npos);
  CHECK(compare(problem, expected, result_of(tensors), [](std::int64_t row) {
          return row == 200 + 9;
        }).within_tolerance);
}

TEST_CASE("one thread or several, the oracle says the same; asked for much, it samples") {
  const Problem problem = small_problem();
  const Tensors tensors(test::device(), problem, 2);
  ReferenceOptions options;
  options.threads = 1;
  const Reference one = reference(problem, inputs_of(tensors), options);
  options.threads = 3;
  double told = 0;
  options.progress = [&](double share) { told = std::max(told, share); };
  const Reference several = reference(problem, inputs_of(tensors), options);
  CHECK(one.o == several.o);
  CHECK(told == 1);
  options.max_pairs = 2 * 200 * 200 - 1;
  options.tile_rows = 16;
  options.sampled_rows = 8;
  const Reference sampled = reference(problem, inputs_of(tensors), options);
  CHECK(sampled.sampled());
  CHECK(sampled.rows.size() == 2 * (16 + 8 + 8));
}

TEST_CASE("what the oracle cannot read is refused") {
  const Problem problem = small_problem();
  const Tensors tensors(test::device(), problem, 3);
  const auto refused = [&](const std::string& part, const auto& call) {
    test::check_fails(ErrorCode::kInvalidArgument, part, call);
  };
  HostInputs inputs = inputs_of(tensors);
  inputs.k = nullptr;
  refused("K of the oracle is null", [&] { reference(problem, inputs); });
  inputs = inputs_of(tensors);
  inputs.v_strides = {};
  refused("the strides of V are 0, 0 and 0", [&] { reference(problem, inputs); });
  inputs.broadcast_rows = true;
  CHECK_FALSE(reference(problem, inputs).rows.empty());
  inputs = inputs_of(tensors);
  Problem carried = problem;
  carried.carry_in = true;
  refused("set state_in", [&] { reference(carried, inputs); });
  HostState state = HostState::empty(7, 64);
  inputs.state_in = &state;
  refused("7 rows", [&] { reference(carried, inputs); });
  ReferenceOptions options;
  options.threads = -1;
  refused("threads -1", [&] { reference(problem, inputs, options); });
  refused("tiles of 0 x 64", [&] { reached_rows(problem, inputs, 0, 64); });
  const Reference expected = reference(problem, inputs);
  Problem other = problem;
  other.heads = other.kv_heads = 1;
  refused("H 2", [&] { compare(other, expected, result_of(tensors)); });
  refused("neither O nor a state", [&] { compare(problem, expected, {}); });
  HostResult forgotten = result_of(tensors);
  forgotten.o_strides = {};
  refused("o_strides are all 0", [&] { compare(problem, expected, forgotten); });
}

TEST_CASE("a NaN in a key excuses the rows that read its tile") {
  const Device device = test::device();
  const Problem problem = small_problem();
  Tensors tensors(device, problem, 4);
  const HostInputs clean = inputs_of(tensors);
  tensors.k[static_cast<std::size_t>(150 * 64)] = 0x7fc0;
  const std::vector<std::uint8_t> reached = reached_rows(problem, clean, 64, 64);
  REQUIRE(reached.size() == 400);
  CHECK(reached[0] == 0);
  CHECK(reached[199] == 1);
}

TEST_CASE("states of two halves of the keys merge into the whole") {
  const Device device = test::device();
  Problem whole = small_problem();
  whole.pattern = dense();
  Tensors tensors(device, whole, 5);
  const Reference expected = reference(whole, inputs_of(tensors));
  HostState halves[2] = {HostState::empty(400, 64), HostState::empty(400, 64)};
  for (int half = 0; half < 2; ++half) {
    Problem problem = whole;
    problem.seq_k = 100, problem.q0 = 0, problem.k0 = 100 * half, problem.total_k = 200;
    problem.want_lse = false, problem.carry_out = true;
    const Plan plan = device.plan(problem);
    const DeviceMemory acc = device.allocate(400 * 64 * 4), m = device.allocate(400 * 4),
                       l = device.allocate(400 * 4);
    const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
    Operands operands = tensors.operands;
    const std::size_t skipped = static_cast<std::size_t>(half) * 100 * 2 * 64;
    operands.k = static_cast<const std::uint16_t*>(operands.k) + skipped / 2;
    operands.v = static_cast<const std::uint16_t*>(operands.v) + skipped / 2;
    operands.o = nullptr, operands.lse = nullptr;
    operands.state_out = {static_cast<float*>(acc.data()), static_cast<float*>(m.data()),
                          static_cast<float*>(l.data())};
    plan.run(nullptr, operands, workspace.data());
    HostState& state = halves[half];
    device.copy_to_host(state.acc.data(), acc.data(), acc.bytes());
    device.copy_to_host(state.m.data(), m.data(), m.bytes());
    device.copy_to_host(state.l.data(), l.data(), l.bytes());
  }
  const HostState both = merge(halves[0], halves[1]);
  CHECK(compare(whole, expected, {nullptr, {}, nullptr, &both}).within_tolerance);
  CHECK(finish(both, LseBase::kNatural).o.size() == 400 * 64);
}

TEST_CASE("blocks chosen on the device, their recall and their importance") {
  const Device device = test::device();
  Problem problem = small_problem();
  problem.pattern = causal();
  Selection selection;
  selection.block_rows = selection.block_columns = 32;
  selection.max_blocks = 3;
  const Plan plan = device.plan(problem, selection);
  Tensors tensors(device, problem, 6);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  const DeviceMemory chosen = device.allocate(2 * 7 * 3 * 4);
  SelectionBuffers buffers;
  buffers.chosen = static_cast<std::int32_t*>(chosen.data());
  buffers.max_chosen = 3;
  plan.run(nullptr, tensors.operands, workspace.data(), buffers);
  plan.bind(tensors.operands, workspace.data(), buffers).run(nullptr);
  std::vector<std::int32_t> indices(2 * 7 * 3);
  device.copy_to_host(indices.data(), chosen.data(), chosen.bytes());
  CHECK(indices[0] == 0);

  const RecallMeter meter(device, problem);
  const DeviceMemory recall = device.allocate(400 * 4);
  const DeviceMemory meter_workspace = device.allocate(meter.workspace_bytes());
  meter.run(nullptr, tensors.operands, static_cast<float*>(recall.data()), meter_workspace.data());
  std::vector<float> shares(400);
  device.copy_to_host(shares.data(), recall.data(), recall.bytes());
  const RecallSummary summary = summarise_recall(shares);
  CHECK(summary.least > 0);
  CHECK(summary.mean <= 1.001);

  selection.rule = SelectionRule::kGiven;
  const ImportanceTracker tracker(device, problem, selection);
  const DeviceMemory state = device.allocate(tracker.state_bytes());
  const std::vector<char> zeros(tracker.state_bytes());
  device.copy_to_device(state.data(), zeros.data(), zeros.size());
  const DeviceMemory scratch = device.allocate(tracker.workspace_bytes());
  auto* given = static_cast<std::int32_t*>(chosen.data());
  tracker.measure(nullptr, tensors.operands, given, state.data(), scratch.data());
  tracker.update(nullptr, tensors.operands, given, state.data(), scratch.data());
  REQUIRE_NOTHROW(device.synchronize());
}

TEST_CASE("a ring of two ranks gives the answer of one") {
  const Device device = test::device();
  const Problem problem = small_problem();
  Tensors tensors(device, problem, 7);
  const ShardMap shards = make_shards(Sharding::kContiguous, 2, 200, 200);
  CHECK(std::string(to_string(Sharding::kZigzag)) == "zigzag");
  CHECK(std::string(to_string(Route::kDirect)) == "direct");
  REQUIRE_NOTHROW(validate(shards, problem));
  const Device devices[] = {device, device};
  const RingPlan plan = plan_ring(devices, problem, shards);
  const RingRank ranks[] = {{device, problem, shards, {}}, {device, problem, shards, {}}};
  CHECK(plan_ring(ranks).info().config == plan.info().config);
  CHECK(plan.ranks() == 2);
  CHECK(plan.picture_svg().find("<svg") != std::string::npos);
  const DeviceMemory lse[2] = {device.allocate(400 * 4), device.allocate(400 * 4)};
  const DeviceMemory workspace[2] = {device.allocate(plan.workspace_bytes(0)),
                                     device.allocate(plan.workspace_bytes(1))};
  std::vector<RingCall> calls(2);
  std::int64_t first = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const std::int64_t rows = plan.rank_problem(rank).seq_q;
    const std::int64_t skipped = first * 2 * 64;
    Operands& operands = calls[static_cast<std::size_t>(rank)].operands;
    operands = tensors.operands;
    operands.q = static_cast<const std::uint16_t*>(operands.q) + skipped;
    // One key head for two query heads.
    operands.k = static_cast<const std::uint16_t*>(operands.k) + skipped / 2;
    operands.v = static_cast<const std::uint16_t*>(operands.v) + skipped / 2;
    operands.o = static_cast<std::uint16_t*>(operands.o) + skipped;
    operands.lse = static_cast<float*>(lse[rank].data());
    calls[static_cast<std::size_t>(rank)].workspace = workspace[rank].data();
    first += rows;
  }
  plan.run(calls);
  device.synchronize();
  tensors.read_back(device);
  const Reference expected = reference(problem, inputs_of(tensors));
  HostResult result = result_of(tensors);
  result.lse = nullptr;  // each rank has its own
  CHECK(compare(problem, expected, result).within_tolerance);
}

TEST_CASE("a problem is tuned, the result is listed, and the plan uses it") {
  const test::ScratchFolder scratch;
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.tuned_path = scratch.path("tuned");
  const Device device = Device::open(options);
  Problem problem = small_problem();
  problem.seq_q = problem.seq_k = 64;
  TuneOptions dry;
  dry.dry_run = true;
  CHECK(tune(device, problem, dry).status == TuneStatus::kPlanned);
  const Problem step = ring_step(problem, make_shards(Sharding::kContiguous, 2, 64, 64));
  CHECK(tune(device, step, dry).status == TuneStatus::kPlanned);
  BatchProblem batch;
  batch.heads = batch.kv_heads = 2;
  batch.dim_qk = batch.dim_v = 64;
  batch.most = {.requests = 2, .rows = 2, .keys_of_one = 100};
  CHECK(tune_batch(device, batch, {{2, 1, 50}}, dry).front().status == TuneStatus::kPlanned);
  Selection selection;
  selection.max_blocks = 2;
  CHECK(tune(device, problem, selection, dry).status == TuneStatus::kPlanned);
  const TuneResult tuned = tune(device, problem);
  CHECK(tuned.tried > 0);
  const TunedListing listing = list_tuned(options.tuned_path);
  REQUIRE(listing.entries.size() == 1);
  CHECK(listing.entries[0].config == tuned.config);
  CHECK(device.plan(problem).info().tuned == listing.entries[0].path);
  CHECK(why_unused(listing.entries[0], device.info()).empty());
  CHECK(listing.entries[0].device == device.info().tuned_key);
  CHECK(
      why_unused(listing.entries[0], Device::open("sim:sm_90a").info()).find("sm_80, not sm_90a") !=
      std::string::npos);
}

TEST_CASE("an engine lets the library tune what it plans") {
  const test::ScratchFolder scratch;
  DeviceOptions device_options;
  device_options.name = "sim:sm_80";
  device_options.tuned_path = scratch.path("tuned");
  const Device device = Device::open(device_options);
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 96;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = causal();
  PlanOptions asked;
  asked.follow_tuning = true;
  asked.swap = Swap::kWhenAsked;
  BackgroundTuningOptions options;
  int lent = 0;
  options.may_measure = [&] { return ++lent > 0; };
  options.measured = [&] { --lent; };
  const BackgroundTuning tuning(device, options);
  const Plan plan = device.plan(problem, asked);
  tuning.pause();
  tuning.resume();
  CHECK(tuning.wait());
  tuning.cancel();
  CHECK(tuning.status().tuned == 1);
  CHECK(lent == 0);
  REQUIRE(plan.can_swap());
  plan.swap();
  CHECK(plan.info().config == device.plan(problem).info().config);
  CHECK_FALSE(plan.info().tuned.empty());
}

TEST_CASE("an engine's plans are counted in a file of shapes") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("annulus-outside-" + std::to_string(getpid()) + ".shapes");
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.shape_log = path.string();
  Problem problem;
  problem.seq_q = problem.seq_k = 64;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = causal();
  const auto written = [&] {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  {
    const Device device = Device::open(options);
    device.plan(problem);
    device.plan(problem);
    device.flush_shape_log();
    CHECK(written().find("--count 2 " + shape_line(problem) + "\n") != std::string::npos);
    device.plan(problem);
  }
  CHECK(written().find("--count 3 " + shape_line(problem) + "\n") != std::string::npos);
  std::filesystem::remove(path);
  std::filesystem::remove(path.string() + ".lock");
}

TEST_CASE("devices say what they are and what they counted") {
  const Device device = Device::open("sim:sm_80");
  CHECK(device.info().simulated);
  SimulationOptions fast;
  fast.checked = false;
  device.set_simulation(fast);
  const Problem problem = small_problem();
  device.prefetch(problem);
  CHECK(device.list_counters().host.entries >= 0);
  CHECK(device.memory_needed(problem).device_bytes == device.plan(problem).info().device_bytes);
  CHECK(device.memory_statistics().used_bytes <= device.memory_statistics().held_bytes);
  device.trim();
  const auto version = reinterpret_cast<int (*)(int*)>(device.driver_entry("cuDriverGetVersion"));
  REQUIRE((version != nullptr));
  int number = 0;
  CHECK(version(&number) == 0);
  CHECK(number == device.info().driver_version);
  Tensors tensors(device, problem, 8);
  const Plan plan = device.plan(problem);
  plan.run(nullptr, tensors.operands);
  device.synchronize();
  bool launched = false;
  for (const auto& [name, value] : device.counters()) launched |= name == "launches" && value > 0;
  CHECK(launched);
  DeviceMemory memory = device.allocate(64);
  DeviceMemory moved = std::move(memory);
  DeviceMemory other;
  other = std::move(moved);
  CHECK(other.bytes() == 64);
}

}  // namespace
