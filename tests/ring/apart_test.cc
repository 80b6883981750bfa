// Ranks on several hosts, as NCCL distinguishes them: it reports to a rank that a connection to
// another host has ended. The tests kill and stop processes, cut the connection between two living
// ranks, and cut off a host. The remaining ranks must all blame only ranks that are lost. They must
// continue without losing another rank, and compute the bits of a new ring of their number.
//   test_ring_faults --kills 1000 "--test-case=*hosts*"    that number of faults; by default a few

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "ring/fault_processes.h"
#include "support/faulty_files.h"
#include "support/options.h"

namespace annulus {
namespace {

using std::chrono::milliseconds;
using test::Clock;
using test::Line;
using test::ProcessOptions;
using test::Ring;

constexpr milliseconds kDeadline(500);

enum class Kind { kKilled, kStopped, kConnection, kHostEnded, kHostSilent };
constexpr const char* kNames[] = {"process killed", "process stopped", "connection cut",
                                  "host cut off", "host cut off silently"};
constexpr int kKinds = 5;

// Counts over the campaign.
struct Seen {
  int faults = 0, wrong_names = 0, healthy_lost = 0;
  std::int64_t good_runs = 0;
  std::array<int, kKinds> count{};
  std::array<milliseconds, kKinds> longest{};  // until all ranks knew
};

// A ring of 3 to 6 ranks. Each process has one or two ranks, and each host has one or two
// processes.
std::vector<ProcessOptions> draw_processes(base::Random& random, const std::string& address) {
  const int ranks = 3 + static_cast<int>(random.below(4));
  std::vector<ProcessOptions> processes;
  for (int first = 0, host = 0; first < ranks;) {
    const int count = first + 2 <= ranks && random.below(3) == 0 ? 2 : 1;
    const bool same_host = first > 0 && random.below(4) == 0;
    if (first > 0 && !same_host) ++host;
    // The last process and the first one are on different hosts.
    if (first + count == ranks && host == 0) ++host;
    processes.push_back({.address = address,
                         .first = first,
                         .count = count,
                         .ranks = ranks,
                         .deadline = kDeadline,
                         .host = "host" + std::to_string(host),
                         .netns = ""});
    first += count;
  }
  return processes;
}

// A fault and the ranks that it hits, by their current numbers.
struct Fault {
  Kind kind = Kind::kConnection;
  std::set<int> victims;    // the ranks that must be lost
  std::set<int> processes;  // the processes of the victims
  int end = 0, other = 0;   // the two ends of the connection
};

Fault draw_fault(Ring& ring, const std::vector<ProcessOptions>& processes, base::Random& random) {
  const auto host_of = [&](int number) {
    return processes[static_cast<std::size_t>(ring.process_index(number))].host;
  };
  const auto draw_rank = [&] {
    return static_cast<int>(random.below(static_cast<std::uint32_t>(ring.ranks())));
  };
  Fault fault;
  // If all ranks are on one host or in one process, some faults are impossible. So faults are drawn
  // until one is possible.
  for (int tries = 0; tries < 100; ++tries) {
    fault = {};
    fault.kind = static_cast<Kind>(random.below(kKinds));
    fault.end = draw_rank();
    fault.other = draw_rank();
    if (fault.kind == Kind::kConnection) {
      if (host_of(fault.end) != host_of(fault.other)) return fault;
      continue;
    }
    const bool whole_host = fault.kind == Kind::kHostEnded || fault.kind == Kind::kHostSilent;
    for (int number = 0; number < ring.ranks(); ++number) {
      const bool lost = whole_host ? host_of(number) == host_of(fault.end)
                                   : ring.process_index(number) == ring.process_index(fault.end);
      if (!lost) continue;
      fault.victims.insert(number);
      fault.processes.insert(ring.process_index(number));
    }
    if (static_cast<int>(fault.victims.size()) < ring.ranks()) return fault;
  }
  FAIL("no fault is possible among " << ring.ranks() << " ranks");
  return fault;
}

void inject(Ring& ring, const Fault& fault) {
  const auto to_processes = [&](auto action) {
    for (const int process : fault.processes) {
      action(*ring.processes()[static_cast<std::size_t>(process)]);
    }
  };
  switch (fault.kind) {
    case Kind::kKilled:
      to_processes([](const test::Process& one) { one.signal(SIGKILL); });
      break;
    case Kind::kStopped:
      to_processes([](const test::Process& one) { one.stop(); });
      break;
    case Kind::kConnection:
      ring.member(fault.end).order("cut " + std::to_string(fault.end) + " " +
                                   std::to_string(fault.other));
      break;
    case Kind::kHostEnded:
      to_processes([](const test::Process& one) { one.order("off"); });
      break;
    case Kind::kHostSilent:
      // NCCL reports the loss to the others, and the control channel is silent.
      to_processes([](const test::Process& one) { one.stop(); });
      for (int number = 0; number < ring.ranks(); ++number) {
        if (fault.victims.contains(number)) continue;
        for (const int victim : fault.victims) {
          ring.member(number).order("cut " + std::to_string(number) + " " + std::to_string(victim));
        }
      }
      break;
  }
}

// The ranks that a line "lost" blames, by their first numbers.
std::set<int> blamed_in(Ring& ring, const std::set<int>& victims, const Line& lost) {
  std::istringstream words(lost.rest);
  std::string took, list;
  words >> took >> list;
  std::set<int> blamed, members = victims;
  for (int number = 0; number < ring.ranks(); ++number) members.insert(ring.first(number));
  std::istringstream numbers(list);
  for (std::string one; list != "-" && std::getline(numbers, one, ',');) {
    for (const auto& process : ring.processes()) {
      for (const Line& line : process->lines) {
        const bool it =
            line.kind == "met" && line.generation == lost.generation && line.rank == std::stoi(one);
        // Ranks that were lost earlier may have a separate generation with the same number.
        if (it && members.contains(line.first)) blamed.insert(line.first);
      }
    }
  }
  return blamed;
}

// The first good run of a rank after a generation, with at most as many ranks as remain.
const Line* good_after(Ring& ring, int number, std::int64_t generation) {
  for (const Line& line : ring.member(number).lines) {
    if (line.kind == "good" && line.first == ring.first(number) && line.generation > generation &&
        line.ranks <= ring.ranks()) {
      return &line;
    }
  }
  return nullptr;
}

// Counts and checks the lines that a remaining rank has written since generation `before`.
bool check_survivor(Ring& ring, int number, const std::set<int>& victims, std::int64_t before,
                    Seen* seen) {
  for (const Line& line : ring.member(number).lines) {
    if (line.kind != "lost" || line.first != ring.first(number) || line.generation < before) {
      continue;
    }
    const std::set<int> blamed = blamed_in(ring, victims, line);
    const bool right = std::ranges::includes(victims, blamed) &&
                       (blamed.empty() == victims.empty() || line.generation > before);
    if (!right) ++seen->wrong_names;
    CHECK_MESSAGE(right, "rank " << line.rank << ":" << line.rest);
  }
  if (ring.ranks() == 1) return true;
  const Line* const line = good_after(ring, number, before);
  const bool there = line != nullptr && line->ranks == ring.ranks();
  if (!there) ++seen->healthy_lost;
  CHECK_MESSAGE(there, "rank " << number << " of those that are left was lost as well");
  return there;
}

// The survivors detect the fault and continue, in *generation. If several ranks are lost, that may
// take several steps. Returns false if the ring can no longer be used.
bool recovers(Ring& ring, const Fault& fault, std::int64_t* generation, Clock::time_point begin,
              Seen* seen) {
  const std::int64_t before = *generation;
  std::set<int> victims;
  for (const int victim : fault.victims) victims.insert(ring.first(victim));
  for (auto victim = fault.victims.rbegin(); victim != fault.victims.rend(); ++victim) {
    ring.lose(*victim);
  }
  if (!ring.all_say("lost", before, 20 * kDeadline + milliseconds(4000))) {
    ring.tell_last();
    FAIL_CHECK("not all ranks have noticed");
    return false;
  }
  Clock::time_point noticed = begin;
  for (int number = 0; number < ring.ranks(); ++number) {
    noticed = std::max(noticed, ring.find("lost", before, number)->when);
  }
  milliseconds& longest = seen->longest[static_cast<std::size_t>(fault.kind)];
  const auto notice = std::chrono::duration_cast<milliseconds>(noticed - begin);
  longest = std::max(longest, notice);
  CHECK(notice <= kDeadline + milliseconds(3000));

  const auto all_good = [&] {
    for (int number = 0; number < ring.ranks(); ++number) {
      if (good_after(ring, number, before) == nullptr) return false;
    }
    return true;
  };
  bool good = ring.ranks() == 1 ? ring.member(0).end(milliseconds(20000)) == 0
                                : ring.read_until(all_good, milliseconds(20000));
  if (!good) ring.tell_last();
  for (int number = 0; number < ring.ranks(); ++number) {
    good = check_survivor(ring, number, victims, before, seen) && good;
  }
  CHECK(good);
  if (good && ring.ranks() > 1) *generation = good_after(ring, 0, before)->generation;
  return good;
}

TEST_CASE("ranks on several hosts blame those that are lost alone, and lose no other") {
  const int faults = test::options().kills > 0 ? test::options().kills : 12;
  Seen seen;
  bool well = true;
  for (std::uint64_t index = 0; well && seen.faults < faults; ++index) {
    base::Random random(test::seed_of(41) * 1000 + index);
    CAPTURE(index);
    test::ScratchFolder folder;
    const std::vector<ProcessOptions> processes =
        draw_processes(random, "file:" + (folder / "meeting"));
    Ring ring(processes);
    std::int64_t generation = 1;
    while (well && seen.faults < faults && ring.ranks() > 1) {
      if (!ring.all_say("good", generation, milliseconds(20000))) {
        ring.tell_last();
        FAIL_CHECK("not all ranks have come to their first run");
        well = false;
        break;
      }
      std::set<std::string> hosts;
      for (int number = 0; number < ring.ranks(); ++number) {
        hosts.insert(processes[static_cast<std::size_t>(ring.process_index(number))].host);
      }
      if (hosts.size() < 2) break;
      const Fault fault = draw_fault(ring, processes, random);
      std::string text;
      for (const int victim : fault.victims) text += " " + std::to_string(victim);
      INFO("generation " << generation << ", " << ring.ranks() << " ranks: "
                         << std::string(kNames[static_cast<int>(fault.kind)]) << ", ranks" << text
                         << "; or between " << fault.end << " and " << fault.other);
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(40000)));
      const Clock::time_point begin = Clock::now();
      inject(ring, fault);
      well = recovers(ring, fault, &generation, begin, &seen);
      for (const int process : fault.processes) {
        ring.processes()[static_cast<std::size_t>(process)]->signal(SIGKILL);
      }
      ++seen.faults;
      ++seen.count[static_cast<std::size_t>(fault.kind)];
    }
    seen.good_runs += test::check_lines(ring);
  }
  std::printf("%d faults between hosts: %d wrong names, %d healthy ranks lost, %lld good runs\n",
              seen.faults, seen.wrong_names, seen.healthy_lost,
              static_cast<long long>(seen.good_runs));
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    std::printf("  %d times %s: known to all within %lld ms\n", seen.count[kind], kNames[kind],
                static_cast<long long>(seen.longest[kind].count()));
  }
  CHECK(seen.good_runs > 0);
}

}  // namespace
}  // namespace annulus
