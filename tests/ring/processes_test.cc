// Rings whose ranks are processes give the same bits as rings whose ranks are in one process.
//   test_ring_processes --problems 200    that number of random cases; by default a few

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "ring/case_rows.h"
#include "ring/on_ring.h"
#include "support/faulty_files.h"
#include "support/options.h"

extern char** environ;

namespace annulus {
namespace {

using test::devices;
using test::RingCase;
using test::RingMemory;

// Starts a rank, and redirects its output to a file.
pid_t start(std::vector<std::string> words, const std::string& output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, words[0].c_str(), &actions, nullptr, pointers.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

void check_ranks(int ranks, int first, int count) {
  const std::uint64_t seed = test::options().seed;
  const test::ScratchFolder folder;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "case_rank";
  std::string kind = devices(1)[0].info().name;
  kind = kind.substr(0, kind.rfind(':') > 3 ? kind.rfind(':') : std::string::npos);
  std::vector<pid_t> children;
  const auto output = [&](int rank) { return folder / ("rank-" + std::to_string(rank)); };
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(
        start({program, folder / "meeting", std::to_string(rank), std::to_string(ranks), kind,
               std::to_string(seed), std::to_string(first), std::to_string(count)},
              output(rank)));
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  std::vector<std::map<int, std::uint64_t>> got(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(output(rank));
    std::string word;
    int index = 0;
    std::uint64_t hash = 0;
    while (file >> word >> index >> hash) got[static_cast<std::size_t>(rank)][index] = hash;
    CHECK(got[static_cast<std::size_t>(rank)].size() == static_cast<std::size_t>(count));
  }
  for (int index = first; index < first + count; ++index) {
    const RingCase c(seed, index, ranks);
    CAPTURE(index);
    CAPTURE(ranks);
    CAPTURE(c.whole.text);
    const RingPlan plan = plan_ring(devices(ranks), c.whole.problem, c.shards, c.options);
    RingMemory memory(devices(ranks), c.whole, c.shards);
    const test::DeviceAnswer answer = test::run_ring(plan, memory);
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(got[static_cast<std::size_t>(rank)][index] == test::hash_rows(c, answer, rank));
    }
  }
}

TEST_CASE("random rings of processes have the bits of rings of one process") {
  const int count = test::options().problems > 0 ? test::options().problems : 6;
  constexpr int kWorlds = 6;
  for (int world = 0; world < kWorlds; ++world) {
    const int first = count * world / kWorlds;
    const int end = count * (world + 1) / kWorlds;
    if (end > first) check_ranks(2 + (world + 1) % kWorlds, first, end - first);
  }
}

}  // namespace
}  // namespace annulus
