#include "program/run/rank_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "annulus/communicator.h"
#include "base/fail.h"
#include "program/cli/output.h"

namespace annulus::program {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongest = std::chrono::hours(24);

milliseconds longest_of(milliseconds deadline) {
  return deadline.count() == 0 ? kLongest : deadline;
}

// The objects that every step of a rank uses.
struct Ranks {
  const Rendezvous& meeting;
  const Communicator& communicator;
  milliseconds longest;  // the longest time that a gather may take
};

// Waits until the rows of a run have arrived, and then until its stream has ended.
void wait_for(const Device& device, const Stream& stream, const Ranks& ranks, std::int64_t run) {
  if (ranks.communicator.wait(run) != RunState::kGood) {
    throw Error(ErrorCode::kCommunication, ranks.communicator.reason());
  }
  while (!has_ended(device, stream)) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// The numbers that a rank sends to rank 0, in addition to O and LSE.
struct Told {
  char device[128] = {};
  std::int64_t peak_bytes = 0;
  std::int64_t launches = 0;
  double predicted_micros = 0, min_micros = 0, max_micros = 0;
};

// The bytes of `told`, followed by the values of the counters. The names of the counters are the
// same on all ranks.
std::vector<std::byte> bytes_of(const Told& told, const Counters& counters) {
  std::vector<std::byte> bytes(sizeof(told) + counters.size() * sizeof(std::uint64_t));
  std::memcpy(bytes.data(), &told, sizeof(told));
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const std::uint64_t value = counters[i].second;
    std::memcpy(bytes.data() + sizeof(told) + i * sizeof(value), &value, sizeof(value));
  }
  return bytes;
}

void add_told(const std::vector<std::byte>& bytes, int rank, RingAnswer* result) {
  Counters& counters = result->counters;
  if (bytes.size() != sizeof(Told) + counters.size() * sizeof(std::uint64_t)) {
    base::fail(ErrorCode::kCommunication,
               "rank {} has another version of this program or another kind of device", rank);
  }
  Told told;
  std::memcpy(&told, bytes.data(), sizeof(told));
  for (std::size_t i = 0; i < counters.size(); ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + sizeof(told) + i * sizeof(value), sizeof(value));
    counters[i].second += value;
  }
  result->peak_bytes_per_rank = std::max(result->peak_bytes_per_rank, told.peak_bytes);
  RingRankInfo info;
  info.device = std::string(told.device, strnlen(told.device, sizeof(told.device)));
  info.launches = static_cast<int>(told.launches);
  info.predicted_micros = told.predicted_micros;
  info.min_micros = told.min_micros;
  info.max_micros = told.max_micros;
  result->info.ranks.push_back(info);
}

Told told_of(const RingRankInfo& own) {
  Told told;
  std::snprintf(told.device, sizeof(told.device), "%s", own.device.c_str());
  told.peak_bytes = own.workspace_bytes + own.device_bytes;
  told.launches = own.launches;
  told.predicted_micros = own.predicted_micros;
  told.min_micros = own.min_micros;
  told.max_micros = own.max_micros;
  return told;
}

// Sends and receives one group of messages, and waits until it has ended.
void exchange(const Ranks& ranks, const Device& device, const Stream& stream,
              const std::vector<SentBytes>& sends, const std::vector<ReceivedBytes>& receives) {
  wait_for(device, stream, ranks, ranks.communicator.exchange(stream.get(), sends, receives));
}

void send_answer(const Ranks& ranks, const Device& device, const RankMemory& memory) {
  std::vector<SentBytes> sends;
  for (const DeviceMemory* part : {&memory.operands.o, &memory.operands.lse}) {
    if (part->bytes() > 0) sends.push_back({0, part->data(), part->bytes()});
  }
  exchange(ranks, device, memory.stream, sends, {});
}

// Receives O and LSE from ranks 1, 2, and so on at rank 0, and puts them at their rows.
void receive_answers(const Ranks& ranks, const Device& device, const Stream& stream,
                     const ShardMap& shards, const ProblemInput& input, Answer* answer) {
  struct Part {
    HostTensor o;
    std::vector<float> lse;
    DeviceMemory device_o, device_lse;
  };
  const Problem& problem = input.problem;
  std::vector<Part> parts;
  std::vector<ReceivedBytes> receives;
  for (int rank = 1; rank < shards.ranks(); ++rank) {
    std::int64_t rows = 0;
    for (const Segment& one : shards.q[static_cast<std::size_t>(rank)]) rows += one.length;
    Part& part = parts.emplace_back();
    part.o = make_tensor(problem.batch, rows, problem.heads, problem.dim_v, input.order);
    part.lse.resize(static_cast<std::size_t>(problem.batch * problem.heads * rows));
    part.device_o = device.allocate(part.o.bytes());
    part.device_lse = device.allocate(part.lse.size() * sizeof(float));
    for (const DeviceMemory* memory : {&part.device_o, &part.device_lse}) {
      if (memory->bytes() > 0) receives.push_back({rank, memory->data(), memory->bytes()});
    }
  }
  exchange(ranks, device, stream, {}, receives);
  for (int rank = 1; rank < shards.ranks(); ++rank) {
    Part& part = parts[static_cast<std::size_t>(rank - 1)];
    device.copy_to_host(part.o.bits.data(), part.device_o.data(), part.device_o.bytes());
    device.copy_to_host(part.lse.data(), part.device_lse.data(), part.device_lse.bytes());
    place_rows(shards.q[static_cast<std::size_t>(rank)], part.o, part.lse, answer);
  }
}

// Waits until rank 0 has the answers of all ranks. Throws if rank 0 has gone or is late, so that
// the other ranks can compute the answers again without it. The error names all ranks that are
// missing, because rank 0 may have ended for lack of another one.
void wait_for_rank_0(const Ranks& ranks) {
  const Gathered gathered = ranks.meeting.gather({}, ranks.longest);
  if (std::ranges::count(gathered.gone, 0) + std::ranges::count(gathered.late, 0) == 0) return;
  std::string missing;
  const auto name = [&](const std::vector<int>& missed, const char* how) {
    for (const int rank : missed) {
      missing += fmt::format("{}rank {} of {} {}", missing.empty() ? "" : ", ", rank,
                             ranks.meeting.ranks(), how);
    }
  };
  name(gathered.gone, "has gone");
  name(gathered.late, "is late");
  base::fail(ErrorCode::kCommunication,
             "rank 0 did not get the answers of all ranks, or died after it got them: {}", missing);
}

// Plans and runs the ring, and collects the answers on rank 0. All ranks must have met before.
std::optional<RingAnswer> go_around(const Ranks& ranks, const Device& device,
                                    const RunArguments& arguments, const ProblemInput& input) {
  const int rank = ranks.meeting.rank(), count = ranks.meeting.ranks();
  const ShardMap shards = ring_shards(arguments.shard, input.problem, count);
  const RingRankPlan plan =
      plan_ring(device, ranks.communicator, input.problem, shards, ring_options(arguments));
  RingCall call;
  RankMemory memory =
      upload(device, input, shards, static_cast<std::size_t>(rank), plan.workspace_bytes(), &call);
  device.counters(true);
  std::vector<double> millis;
  for (int i = 0; i < arguments.repeat; ++i) {
    const Clock::time_point start = Clock::now();
    wait_for(device, memory.stream, ranks, plan.run(call));
    millis.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  const Counters counters = device.counters();
  const Told told = told_of(plan.info().ranks.front());
  const auto all = ranks.meeting.all_gather(bytes_of(told, counters), ranks.longest);
  if (rank != 0) {
    send_answer(ranks, device, memory);
    wait_for_rank_0(ranks);
    return std::nullopt;
  }
  RingAnswer result;
  result.info = plan.info();
  result.processes = count;
  result.generation = ranks.meeting.generation();
  result.peak_bytes_per_rank = told.peak_bytes;
  result.counters = counters;
  result.answer.millis = std::move(millis);
  for (int other = 1; other < count; ++other) {
    add_told(all[static_cast<std::size_t>(other)], other, &result);
  }
  make_room(input, &result.answer);
  const std::vector<float> lse = fetch(device, &memory);
  place_rows(shards.q[0], memory.host_o, lse, &result.answer);
  receive_answers(ranks, device, memory.stream, shards, input, &result.answer);
  result.events = ranks.communicator.events();
  ranks.meeting.gather({}, ranks.longest);  // the answer is complete, even if a rank has died
  return result;
}

// Facts about generations that failed.
struct Lost {
  std::vector<CommunicatorEvent> events;  // the events of all generations
  std::vector<int> blamed;                // the ranks blamed by the last generation
};

// Computes in one generation. If it fails, the communicator is destroyed by the exception and waits
// for no other rank.
std::optional<RingAnswer> compute_once(const Rendezvous& meeting, const Device& device,
                                       const RunArguments& arguments, const ProblemInput& input,
                                       milliseconds deadline, Lost* lost) {
  lost->blamed.clear();
  // The deadline bounds every wait of a rank.
  const Communicator communicator =
      Communicator::open(device, meeting, {.deadline = deadline, .planning = deadline});
  try {
    return go_around({meeting, communicator, longest_of(deadline)}, device, arguments, input);
  } catch (const Error&) {
    for (CommunicatorEvent& event : communicator.events()) lost->events.push_back(std::move(event));
    lost->blamed = communicator.blamed();
    throw;
  }
}

}  // namespace

std::optional<RingAnswer> compute_rank(const Seat& seat, const Device& device,
                                       const RunArguments& arguments, const ProblemInput& input) {
  const milliseconds deadline(arguments.deadline.value_or(kDefaultDeadline));
  const milliseconds longest = longest_of(deadline);
  Lost lost;
  Rendezvous meeting = Rendezvous::meet({.address = seat.address,
                                         .rank = seat.rank,
                                         .ranks = seat.ranks,
                                         .token = seat.token,
                                         .interface = "",
                                         .deadline = longest});
  while (true) {
    try {
      std::optional<RingAnswer> answer =
          compute_once(meeting, device, arguments, input, deadline, &lost);
      if (answer) {
        answer->events.insert(answer->events.begin(), lost.events.begin(), lost.events.end());
      }
      return answer;
    } catch (const Error& error) {
      if (!arguments.go_on || error.code() != ErrorCode::kCommunication) throw;
      std::fprintf(stderr, "annulus run: %s; the ranks that are left continue\n", error.what());
    }
    // Ranks detect a failure at different times, which lie at most one deadline apart.
    meeting =
        meeting.regroup({.without = lost.blamed,
                         .deadline = std::min(kLongest, 2 * longest + std::chrono::seconds(5))});
  }
}

}  // namespace annulus::program
