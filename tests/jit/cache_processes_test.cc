// Several processes that use one cache folder. They are killed while they write, and they start
// with an empty cache at the same moment.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/random.h"
#include "jit/kernel_cache.h"
#include "jit/sample_kernel.h"
#include "support/faulty_files.h"
#include "support/processes.h"

namespace annulus::jit {
namespace {

using test::sample_kernel;
using test::sample_key;
using test::ScratchFolder;
using test::start;

// so large that the signal often cuts a write
constexpr std::size_t kImageBytes = 200'000;
constexpr int kKeys = 3;

TEST_CASE("killed writers never leave a kernel that is read wrong, nor a lock that stays") {
  ScratchFolder scratch;
  const DiskCacheOptions options{.folder = scratch / "cache"};
  const std::vector<CompiledKernel> expected = {
      sample_kernel(0, kImageBytes), sample_kernel(1, kImageBytes), sample_kernel(2, kImageBytes)};
  DiskCache reader(options);
  base::Random random(5);
  int kills = 0, hits = 0, wrong = 0, damaged = 0;
  const base::Log count_damage([&](base::LogLevel, std::string_view) { ++damaged; });
  DiskCache strict(options, count_damage);
  for (int round = 0; round < 300; ++round) {
    int stored[2];
    REQUIRE(pipe(stored) == 0);
    const pid_t writer = start([&] {
      DiskCache disk(options);
      for (int i = round;; ++i) {
        const int number = i % kKeys;
        const DiskCache::Lock lock = disk.lock(sample_key(number));
        disk.store(sample_key(number), expected[static_cast<std::size_t>(number)]);
        if (i == round && write(stored[1], "x", 1) != 1) _exit(2);
      }
    });
    // Half of the writers die in their first file or even before. The others have stored one file,
    // however slow the machine is.
    char byte;
    if (round % 2 == 0) REQUIRE(read(stored[0], &byte, 1) == 1);
    std::this_thread::sleep_for(std::chrono::microseconds(200 + random.below(4000)));
    for (int number = 0; number < kKeys; ++number) {
      if (const auto found = strict.find(sample_key(number))) {
        ++hits;
        wrong += *found != expected[static_cast<std::size_t>(number)];
      }
    }
    kill(writer, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(writer, &status, 0) == writer);
    kills += WIFSIGNALED(status);
    close(stored[0]);
    close(stored[1]);
  }
  MESSAGE(kills << " writers killed, " << hits << " kernels read");
  CHECK(kills == 300);
  CHECK(hits > 100);
  CHECK(wrong == 0);
  CHECK(damaged == 0);
  // The locks ended with their holders.
  const auto begin = std::chrono::steady_clock::now();
  for (int number = 0; number < kKeys; ++number) {
    const DiskCache::Lock lock = reader.lock(sample_key(number));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("processes that start cold on one key get the same bytes from one compilation") {
  for (int round = 0; round < 5; ++round) {
    ScratchFolder scratch;
    const DiskCacheOptions options{.folder = scratch / "cache"};
    const std::string ledger = scratch / "ledger";
    std::vector<pid_t> children;
    for (int child = 0; child < 8; ++child) {
      children.push_back(start([&] {
        DiskCache disk(options);
        const ObtainedKernel obtained = obtain_kernel(disk, sample_key(1), [&] {
          const int file = open(ledger.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
          if (write(file, "x", 1) != 1) _exit(2);
          close(file);
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          return sample_kernel(1, kImageBytes);
        });
        if (obtained.kernel != sample_kernel(1, kImageBytes)) _exit(3);
      }));
    }
    for (pid_t child : children) {
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 0);
    }
    CHECK(std::filesystem::file_size(ledger) == 1);
    DiskCache after(options);
    CHECK(after.list().size() == 1);
  }
}

TEST_CASE("without working locks each process may compile, and all get the right kernel") {
  class NoLocks : public base::FileSystem {
    int lock(int) override { return -ENOLCK; }
  };
  ScratchFolder scratch;
  std::vector<pid_t> children;
  for (int child = 0; child < 8; ++child) {
    children.push_back(start([&] {
      DiskCache disk({.folder = scratch / "cache"}, {}, std::make_shared<NoLocks>());
      for (int i = 0; i < 20; ++i) {
        const int number = i % kKeys;
        const ObtainedKernel obtained = obtain_kernel(
            disk, sample_key(number), [&] { return sample_kernel(number, kImageBytes); });
        if (obtained.kernel != sample_kernel(number, kImageBytes)) _exit(3);
      }
    }));
  }
  for (pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("threads of one process with caches of their own compile one key once") {
  ScratchFolder scratch;
  std::atomic<int> builds{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      DiskCache disk({.folder = scratch / "cache"});
      const ObtainedKernel obtained = obtain_kernel(disk, sample_key(1), [&] {
        ++builds;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return sample_kernel(1, kImageBytes);
      });
      wrong += obtained.kernel != sample_kernel(1, kImageBytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(builds == 1);
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace annulus::jit
