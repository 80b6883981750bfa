// The simulated NCCL between processes, some of which are killed.

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

// Starts the ranks, `what` for each, and returns what they print. With `hosts`, each is on a host
// of its own. `prefix` comes before each command.
std::vector<std::string> run(const std::vector<std::string>& what, bool hosts,
                             const std::string& prefix = "") {
  const NcclUniqueId id = new_id();
  std::vector<FILE*> pipes;
  for (std::size_t rank = 0; rank < what.size(); ++rank) {
    const std::string host = hosts ? fmt::format("NCCL_HOSTID=host{} ", rank) : "";
    const std::string command = fmt::format("{}{}{} '{}' {} {} {}", host, prefix, ANNULUS_NCCL_RANK,
                                            id.bytes, rank, what.size(), what[rank]);
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
  // Rank 0 still receives from rank 2, which waits for the dead rank.
  CHECK(said[0] == "got 201\ntold nothing\nthen numbers\n");
  CHECK(said[1] == "got 1\n");
  CHECK(said[2] == "got 101\ntold nothing\nthen poison\n");
}

TEST_CASE("between hosts those who talk to a rank that was killed get an error") {
  const std::vector<std::string> said = run({"survive", "die", "survive"}, true);
  CHECK(said[0].find("told remote error") != std::string::npos);
  CHECK(said[2].find("told remote error") != std::string::npos);
}

TEST_CASE("both ends of a connection that is cut get an error, unless they are on one host") {
  const std::vector<std::string> said = run({"cut", "survive", "survive"}, true);
  CHECK(said[0].find("told remote error") != std::string::npos);
  CHECK(said[1].find("told remote error") != std::string::npos);
  CHECK(run({"cut", "survive"}, false) ==
        std::vector<std::string>{"got 101\ntold nothing\nthen poison\n",
                                 "got 1\ntold nothing\nthen poison\n"});
}

TEST_CASE("ranks in different network namespaces exchange messages") {
  if (std::system("unshare --net true 2>/dev/null") != 0) {
    MESSAGE("skipped: this user may not make network namespaces (unshare --net)");
    return;
  }
  CHECK(run({"exchange", "exchange", "exchange"}, true, "unshare --net ") ==
        std::vector<std::string>{"got 201\n", "got 1\n", "got 101\n"});
}

TEST_CASE("a rank that has no socket to meet at says where it looked") {
  NcclRank rank(0);
  const std::string place = "/tmp/annulus-nccl-0-none/nobody";
  NcclUniqueId id{};
  std::memcpy(id.bytes, place.data(), place.size());
  REQUIRE(rank.init(2, id, 0, false) == kNcclInProgress);
  CHECK(rank.poll() == kNcclSystemError);
  const std::string text = rank.nccl.get_last_error(nullptr);
  CHECK_MESSAGE(text.find("rank 0 of 2: ") == 0, text);
  CHECK_MESSAGE(text.find(place) != std::string::npos, text);
}

}  // namespace
}  // namespace annulus::simulator
