// Processes of a ring are killed, stopped, made late, or refused by NCCL at random moments, one
// after another until one process is left. Each time the other ranks return in time, and all name
// the right rank. The remaining ranks compute the bits of a new ring of their number. A rank whose
// NCCL call was refused is healthy, so it is not lost.
//   test_ring_faults --kills 1000    that number of faults; by default a few

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ring/fault_processes.h"
#include "support/faulty_files.h"
#include "support/options.h"

namespace annulus {
namespace {

using std::chrono::milliseconds;
using test::Clock;
using test::Line;
using test::Process;
using test::Ring;

constexpr milliseconds kDeadline(300);
constexpr int kMaxRanks = 6;

// A fault of one rank.
struct Fault {
  const char* name;
  int signal;
  bool while_planning;  // the others also detect it while they plan, unless planning takes too long
  bool ends;            // the process ends at once
  bool stays;           // the rank is healthy and continues with the others
};
constexpr Fault kFaults[] = {
    {"killed", SIGKILL, true, true, false},
    {"stopped", SIGSTOP, false, false, false},
    {"slow", SIGUSR1, false, false, false},
    {"refused by NCCL", SIGUSR2, false, false, true},
};

// Counts over the campaign.
struct Seen {
  int lost = 0;
  std::map<std::string, int> by_fault;
  milliseconds longest_notice{}, longest_recovery{};
  std::int64_t good_runs = 0;
};

// Loses one rank. Returns false if something is wrong and the ring can no longer be used.
bool lose_one(Ring& ring, std::int64_t generation, base::Random& random, Seen* seen) {
  const int ranks = ring.ranks();
  const int victim = static_cast<int>(random.below(static_cast<std::uint32_t>(ranks)));
  const bool planning = random.below(5) == 0;
  std::vector<Fault> faults;
  for (const Fault& fault : kFaults) {
    if (fault.while_planning || !planning) faults.push_back(fault);
  }
  // About half of the lost ranks are killed.
  const bool killed = planning || random.below(2) == 0;
  const Fault fault =
      killed ? faults[0] : faults[random.below(static_cast<std::uint32_t>(faults.size()))];
  const auto delay = std::chrono::microseconds(random.below(planning ? 120000 : 40000));
  INFO("generation " << generation << ", rank " << victim << " of " << ranks << " "
                     << std::string(fault.name) << (planning ? " while planning" : "") << " after "
                     << delay.count() << " us");
  if (!ring.all_say(planning ? "met" : "good", generation, milliseconds(20000))) {
    ring.tell_last();
    FAIL_CHECK("not all ranks have met, or come to their first run");
    return false;
  }
  std::this_thread::sleep_for(delay);
  Process& process = ring.member(victim);
  const Clock::time_point begin = Clock::now();
  const int first = ring.first(victim);
  process.signal(fault.signal);
  if (!fault.stays) ring.lose(victim);
  const std::string name = "rank " + std::to_string(victim) + " of " + std::to_string(ranks);
  if (!ring.all_say("lost", generation, 20 * kDeadline + milliseconds(4000))) {
    ring.tell_last();
    FAIL_CHECK("not all ranks have noticed");
    return false;
  }
  bool well = true;
  Clock::time_point noticed = begin;
  for (int number = 0; number < ring.ranks(); ++number) {
    const Line& line = *ring.find("lost", generation, number);
    noticed = std::max(noticed, line.when);
    std::istringstream words(line.rest);
    std::string took, blamed;
    words >> took >> blamed;
    const bool named = (!fault.stays && blamed == std::to_string(victim)) ||
                       (blamed == "-" && line.rest.find(name) != std::string::npos);
    CHECK_MESSAGE(named, line.rest);
    CHECK_MESSAGE(line.rest.find(name) != std::string::npos, line.rest);
    well = well && named;
  }
  // A late rank detects the failure only after its sleep.
  const milliseconds sleep = fault.signal == SIGUSR1 ? kDeadline : milliseconds(0);
  const auto notice = std::chrono::duration_cast<milliseconds>(noticed - begin) - sleep;
  seen->longest_notice = std::max(seen->longest_notice, notice);
  CHECK(notice <= kDeadline + milliseconds(1000));
  if (ring.ranks() > 1) {
    const bool recovered = ring.all_say("good", generation + 1, milliseconds(20000));
    CHECK(recovered);
    if (!recovered) return false;
    seen->longest_recovery = std::max(
        seen->longest_recovery, std::chrono::duration_cast<milliseconds>(Clock::now() - begin));
  } else {
    CHECK(ring.member(0).end(milliseconds(10000)) == 0);
  }
  ++seen->lost;
  ++seen->by_fault[fault.name];
  if (fault.stays) return well;
  // A living rank detects that it was left out.
  if (fault.signal == SIGSTOP) process.signal(SIGCONT);
  const int code = process.end(milliseconds(20000));
  CHECK(code == (fault.ends ? -1 : 0));
  if (!fault.ends) CHECK(process.find("out", generation, first) != nullptr);
  return well;
}

TEST_CASE("ranks are lost one after another, and the others go on with the bits of a fresh ring") {
  const int kills = test::options().kills > 0 ? test::options().kills : 9;
  Seen seen;
  for (std::uint64_t index = 0; seen.lost < kills; ++index) {
    base::Random random(test::seed_of(40) * 1000 + index);
    const int ranks = 2 + static_cast<int>((index + 2) % (kMaxRanks - 1));
    CAPTURE(index);
    test::ScratchFolder folder;
    std::vector<test::ProcessOptions> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      processes.push_back({.address = "file:" + (folder / "meeting"),
                           .first = rank,
                           .ranks = ranks,
                           .deadline = kDeadline,
                           .host = "",
                           .netns = ""});
    }
    Ring ring(processes);
    bool well = true;
    for (std::int64_t generation = 1; well && ring.ranks() > 1; ++generation) {
      well = lose_one(ring, generation, random, &seen);
    }
    seen.good_runs += test::check_lines(ring);
    if (!well) break;
  }
  std::string text;
  for (const auto& [name, count] : seen.by_fault) text += name + " " + std::to_string(count) + ", ";
  std::printf(
      "%d faults (%s%lld good runs); noticed within %lld ms, the next answers of the "
      "others within %lld ms\n",
      seen.lost, text.c_str(), static_cast<long long>(seen.good_runs),
      static_cast<long long>(seen.longest_notice.count()),
      static_cast<long long>(seen.longest_recovery.count()));
  CHECK(seen.good_runs > 0);
}

}  // namespace
}  // namespace annulus
