#include "program/run/ring_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>

#include "annulus/kernels.h"
#include "base/env.h"
#include "base/half.h"
#include "program/cli/output.h"
#include "program/run/operands.h"
#include "program/run/stream.h"

namespace annulus::program {
namespace {

// Calls f(row of the whole tensor, row of the part) for each row of a shard.
template <typename F>
void each_row(const std::vector<Segment>& shard, F f) {
  std::int64_t part = 0;
  for (const Segment& segment : shard) {
    for (std::int64_t i = 0; i < segment.length; ++i) f(segment.start + i, part++);
  }
}

std::int64_t rows_of(const std::vector<Segment>& shard) {
  std::int64_t rows = 0;
  for (const Segment& segment : shard) rows += segment.length;
  return rows;
}

// Copies one row of every batch and every head.
void copy_row(const HostTensor& from, std::int64_t from_row, HostTensor* to, std::int64_t to_row) {
  const Strides a = from.strides();
  const Strides b = to->strides();
  for (std::int64_t batch = 0; batch < to->batch; ++batch) {
    for (std::int64_t head = 0; head < from.heads; ++head) {
      std::memcpy(to->bits.data() + batch * b.batch + head * b.head + to_row * b.row,
                  from.bits.data() + batch * a.batch + head * a.head + from_row * a.row,
                  static_cast<std::size_t>(from.dim) * sizeof(from.bits[0]));
    }
  }
}

// The rows of a shard, for `batch` batches. If all batches share one batch of `whole`, it is copied
// for each.
HostTensor take_rows(const HostTensor& whole, const std::vector<Segment>& shard,
                     std::int64_t batch) {
  HostTensor part = make_tensor(batch, rows_of(shard), whole.heads, whole.dim, whole.order);
  each_row(shard, [&](std::int64_t from, std::int64_t to) { copy_row(whole, from, &part, to); });
  return part;
}

}  // namespace

RankMemory upload(const Device& device, const ProblemInput& input, const ShardMap& shards,
                  std::size_t rank, std::size_t workspace_bytes, RingCall* call) {
  const Problem& problem = input.problem;
  RankMemory memory;
  const HostTensor q = take_rows(input.q, shards.q[rank], problem.batch);
  const HostTensor k = take_rows(input.k, shards.k[rank], problem.batch);
  const HostTensor v = take_rows(input.v, shards.k[rank], problem.batch);
  memory.host_o = make_tensor(problem.batch, q.rows, problem.heads, problem.dim_v, input.order);
  std::fill(memory.host_o.bits.begin(), memory.host_o.bits.end(), std::uint16_t{0x7fff});
  memory.operands = upload(device, q, k, v, memory.host_o);
  memory.workspace = device.allocate(workspace_bytes);
  memory.stream = make_stream(device);
  call->operands = memory.operands.operands;
  call->stream = memory.stream.get();
  call->workspace = memory.workspace.data();
  return memory;
}

std::vector<float> fetch(const Device& device, RankMemory* memory) {
  device.copy_to_host(memory->host_o.bits.data(), memory->operands.o.data(),
                      memory->host_o.bytes());
  std::vector<float> lse(memory->operands.lse.bytes() / sizeof(float));
  device.copy_to_host(lse.data(), memory->operands.lse.data(), memory->operands.lse.bytes());
  return lse;
}

void place_rows(const std::vector<Segment>& shard, const HostTensor& o,
                const std::vector<float>& lse, Answer* answer) {
  const std::int64_t lines = o.batch * o.heads;
  each_row(shard, [&](std::int64_t whole, std::int64_t part) {
    copy_row(o, part, &answer->o, whole);
    for (std::int64_t line = 0; line < lines; ++line) {
      answer->lse[static_cast<std::size_t>(line * answer->o.rows + whole)] =
          lse[static_cast<std::size_t>(line * o.rows + part)];
    }
  });
}

void make_room(const ProblemInput& input, Answer* answer) {
  const Problem& problem = input.problem;
  answer->o = make_tensor(problem.batch, problem.seq_q, problem.heads, problem.dim_v, input.order);
  answer->lse.resize(static_cast<std::size_t>(problem.batch * problem.heads * problem.seq_q));
}

namespace {

// The milliseconds of each repetition, from the call until every rank has ended.
std::vector<double> time_runs(const std::vector<Device>& devices, const RingPlan& plan,
                              const std::vector<RingCall>& calls, int repeat) {
  const Waiting waiting(fmt::format("running on {} ranks", devices.size()));
  std::vector<double> millis;
  for (int i = 0; i < repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    plan.run(calls);
    for (const Device& device : devices) device.synchronize();
    const auto end = std::chrono::steady_clock::now();
    millis.push_back(std::chrono::duration<double, std::milli>(end - start).count());
  }
  return millis;
}

Route route_of(std::string_view name) {
  for (const Route route : {Route::kDirect, Route::kRing}) {
    if (name == to_string(route)) return route;
  }
  return Route::kAuto;
}

}  // namespace

bool names_one_device(const DeviceArguments& arguments) {
  const std::string name =
      arguments.name.empty() ? base::read_environment().device : arguments.name;
  return name != kind_of_device(name);
}

std::string kind_of_device(const std::string& name) {
  constexpr std::string_view kSimulated = "sim:";
  return name.substr(0, name.find(':', name.starts_with(kSimulated) ? kSimulated.size() : 0));
}

Device numbered_device(const DeviceArguments& arguments, const std::string& kind, int number) {
  DeviceOptions options = device_options(arguments);
  options.name = fmt::format("{}:{}", kind, number);
  return Device::open(options);
}

namespace {

// The number of GPUs, counted from the first one, that run the same kernels as the first.
int count_gpus() {
  const std::vector<ListedDevice> listed = list_devices().devices;
  const auto other = std::ranges::find_if(listed, [&](const ListedDevice& gpu) {
    return gpu.compute_capability != listed.front().compute_capability;
  });
  return static_cast<int>(other - listed.begin());
}

}  // namespace

std::vector<Device> ring_devices(const Device& first, const DeviceArguments& arguments, int ranks) {
  std::vector<Device> devices = {first};
  const std::string kind = kind_of_device(first.info().name);
  const bool simulated = kind != "cuda";
  const int most = names_one_device(arguments) ? 1 : simulated ? ranks : count_gpus();
  try {
    while (std::ssize(devices) < std::min(ranks, most)) {
      devices.push_back(numbered_device(arguments, kind, static_cast<int>(devices.size())));
    }
  } catch (const Error& error) {
    // There are no more simulated devices.
    if (!simulated || error.code() != ErrorCode::kDevice) throw;
  }
  // If there are fewer devices than ranks, the ranks share them in turn.
  const std::size_t count = devices.size();
  while (std::ssize(devices) < ranks) devices.push_back(devices[devices.size() % count]);
  return devices;
}

Device launched_device(const DeviceArguments& arguments, int on_host) {
  if (names_one_device(arguments)) return Device::open(device_options(arguments));
  const std::string kind = kind_of_device(choose_device(arguments.name).name);
  const bool only_one = kind == "cuda" && list_devices().devices.size() == 1;
  return numbered_device(arguments, kind, only_one ? 0 : on_host);
}

Counters sum_counters(const std::vector<Device>& devices) {
  Counters sum;
  std::set<std::string> seen;
  for (const Device& device : devices) {
    if (!seen.insert(device.info().name).second) continue;
    const Counters counters = device.counters();
    if (sum.empty()) {
      sum = counters;
      continue;
    }
    for (std::size_t at = 0; at < counters.size(); ++at) sum[at].second += counters[at].second;
  }
  return sum;
}

ShardMap ring_shards(const std::string& shard, const Problem& problem, int ranks) {
  return make_shards(shard == "contiguous" ? Sharding::kContiguous : Sharding::kZigzag, ranks,
                     problem.seq_q, problem.seq_k);
}

RingOptions ring_options(const RunArguments& arguments) {
  RingOptions options{plan_options(arguments.problem), route_of(arguments.route)};
  // Block statistics come from the plan for one rank.
  options.block_rows = options.block_columns = 0;
  return options;
}

RingAnswer compute_ring(const std::vector<Device>& devices, const RunArguments& arguments,
                        const ProblemInput& input) {
  const Problem& problem = input.problem;
  const int ranks = static_cast<int>(devices.size());
  const ShardMap shards = ring_shards(arguments.shard, problem, ranks);
  const RingPlan plan = [&] {
    const Waiting waiting("planning and compiling");
    return plan_ring(devices, problem, shards, ring_options(arguments));
  }();
  RingAnswer result;
  result.info = plan.info();
  result.picture = plan.picture_svg();

  std::vector<RankMemory> memory;
  std::vector<RingCall> calls(devices.size());
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const std::size_t bytes = plan.workspace_bytes(static_cast<int>(rank));
    const RingRankInfo& info = result.info.ranks[rank];
    result.peak_bytes_per_rank =
        std::max(result.peak_bytes_per_rank, info.workspace_bytes + info.device_bytes);
    memory.push_back(upload(devices[rank], input, shards, rank, bytes, &calls[rank]));
  }
  for (const Device& device : devices) device.counters(true);
  Answer& answer = result.answer;
  answer.millis = time_runs(devices, plan, calls, arguments.repeat);
  result.counters = sum_counters(devices);
  make_room(input, &answer);
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const std::vector<float> lse = fetch(devices[rank], &memory[rank]);
    place_rows(shards.q[rank], memory[rank].host_o, lse, &answer);
  }
  return result;
}

double largest_difference(const HostTensor& a, const HostTensor& b, Dtype dtype) {
  double largest = 0;
  for (std::size_t i = 0; i < a.bits.size(); ++i) {
    if (a.bits[i] == b.bits[i]) continue;
    const double difference = std::abs(double{base::to_float(dtype, a.bits[i])} -
                                       double{base::to_float(dtype, b.bits[i])});
    if (std::isnan(difference)) return std::numeric_limits<double>::quiet_NaN();
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace annulus::program
