// The simulated NCCL between processes, of which some are killed.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "nccl_ranks.h"

namespace annulus::simulator {
namespace {

// Starts the ranks, `what` for each, and returns what they print. `hosts`: each is on one of its
// own.
std::vector<std::string> run(const std::vector<std::string>& what, bool hosts) {
  const NcclUniqueId id = new_id();
  std::vector<FILE*> pipes;
  for (std::size_t rank = 0; rank < what.size(); ++rank) {
    const std::string host = hosts ? fmt::format("NCCL_HOSTID=host{} ", rank) : "";
    const std::string command = fmt::format("{}{} {} {} {} {}", host, ANNULUS_NCCL_RANK, id.bytes,
                                            rank, what.size(), what[rank]);
    pipes.push_back(popen(command.c_str(), "r"));
    REQUIRE(pipes.back() != nullptr);
  }
  std::vector<std::string> said;
  for (FILE* const pipe : pipes) {
    std::string text;
    char piece[256];
    while (std::fgets(piece, sizeof(piece), pipe) != nullptr) text += piece;
    pclose(pipe);
    said.push_back(text);
  }
  return said;
}

TEST_CASE("ranks of several processes exchange messages") {
  CHECK(run({"exchange", "exchange", "exchange"}, false) ==
        std::vector<std::string>{"got 201\n", "got 1\n", "got 101\n"});
}

TEST_CASE("on one host nobody is told of a rank that was killed") {
  const std::vector<std::string> said = run({"survive", "die", "survive"}, false);
  // Rank 0 still hears from rank 2, which waits for the dead rank.
  CHECK(said[0] == "got 201\ntold nothing\nthen numbers\n");
  CHECK(said[1] == "got 1\n");
  CHECK(said[2] == "got 101\ntold nothing\nthen poison\n");
}

TEST_CASE("between hosts those who talk to a rank that was killed get an error") {
  const std::vector<std::string> said = run({"survive", "die", "survive"}, true);
  CHECK(said[0].find("told remote error") != std::string::npos);
  CHECK(said[2].find("told remote error") != std::string::npos);
}

}  // namespace
}  // namespace annulus::simulator
