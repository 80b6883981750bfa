// Several processes that use one folder of tuned results. They are killed while they write, and
// they write at the same time.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/random.h"
#include "support/faulty_files.h"
#include "support/options.h"
#include "support/processes.h"
#include "tuned/sample_entry.h"

namespace annulus::tuned {
namespace {

using test::Notes;
using test::sample_entry;
using test::ScratchFolder;
using test::start;
using test::store_options;

constexpr int kShapes = 3;

// --kills N kills more of them.
TEST_CASE("killed writers leave no entry that is damaged, and no lock that stays") {
  ScratchFolder scratch;
  const int rounds = test::options().kills > 0 ? test::options().kills : 100;
  base::Random random(test::options().seed);
  int kills = 0, read = 0, wrong = 0, damaged = 0;
  for (int round = 0; round < rounds; ++round) {
    int stored[2];
    REQUIRE(pipe(stored) == 0);
    const pid_t writer = start([&] {
      TunedStore store(store_options({scratch / "t"}));
      for (int i = round;; ++i) {
        Entry entry = sample_entry(i % kShapes);
        entry.rounds = 1 + i % 1000;
        store.store(entry, true);
        if (i == round && ::write(stored[1], "x", 1) != 1) _exit(2);
      }
    });
    // Half of the writers die in their first file or even before. The others have stored one file,
    // however slow the machine is.
    char byte;
    if (round % 2 == 0) REQUIRE(::read(stored[0], &byte, 1) == 1);
    std::this_thread::sleep_for(std::chrono::microseconds(100 + random.below(3000)));
    for (int again = 0; again < 2; ++again) {
      Notes notes;
      TunedStore reader(store_options({scratch / "t"}), notes.log());
      for (int number = 0; number < kShapes; ++number) {
        const auto found = reader.find_exact(sample_entry(number).shape);
        if (!found) continue;
        ++read;
        Entry expected = sample_entry(number);
        expected.rounds = found->entry.rounds;
        wrong += found->entry != expected;
      }
      damaged += static_cast<int>(notes.lines.size());
      if (again == 0) kill(writer, SIGKILL);
    }
    int status = 0;
    REQUIRE(waitpid(writer, &status, 0) == writer);
    kills += WIFSIGNALED(status);
    close(stored[0]);
    close(stored[1]);
  }
  MESSAGE(kills << " writers killed, " << read << " entries read, " << damaged << " damaged, "
                << wrong << " wrong");
  CHECK(kills == rounds);
  CHECK(read > rounds / 2);
  CHECK(wrong == 0);
  CHECK(damaged == 0);
  const auto begin = std::chrono::steady_clock::now();
  TunedStore after(store_options({scratch / "t"}));
  CHECK(after.store(sample_entry(7), false).outcome == TunedStore::Outcome::kStored);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("processes that store into one folder at the same time lose nothing") {
  constexpr int kWriters = 32;
  class NoLocks : public base::FileSystem {
    int lock(int) override { return -ENOLCK; }
  };
  for (const bool locks : {true, false}) {
    ScratchFolder scratch;
    std::vector<pid_t> children;
    for (int child = 0; child < kWriters; ++child) {
      children.push_back(start([&] {
        TunedStore store(store_options({scratch / "t"}), {},
                         locks ? nullptr : std::make_shared<NoLocks>());
        // A shape that only this process has, and a shape for which all processes have a result.
        const auto stored = store.store(sample_entry(child), false);
        if (stored.outcome != TunedStore::Outcome::kStored) _exit(3);
        for (int i = 0; i < 5; ++i) {
          Entry common = sample_entry(45);
          common.ratio_low_ppm = common.ratio_high_ppm =
              900'000 + 1000 * ((child * 5 + i) * 7 % (kWriters * 5));
          store.store(common, false);
        }
      }));
    }
    for (const pid_t child : children) {
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 0);
    }
    Notes notes;
    TunedStore after(store_options({scratch / "t"}), notes.log());
    for (int number = 0; number < kWriters; ++number) {
      CAPTURE(number);
      const auto found = after.find_exact(sample_entry(number).shape);
      REQUIRE(found);
      CHECK(found->entry == sample_entry(number));
    }
    CHECK(notes.lines.empty());
    // With locks every comparison counts, and the best result stays.
    const auto common = after.find_exact(sample_entry(45).shape);
    REQUIRE(common);
    if (locks) CHECK(common->entry.ratio_high_ppm == 900'000);
  }
}

}  // namespace
}  // namespace annulus::tuned
