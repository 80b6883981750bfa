// One rank of a simulated NCCL in a separate process:
//
//   nccl_rank ID RANK RANKS exchange   passes its numbers on, and prints what it received
//   nccl_rank ID RANK RANKS die        does the same, and then ends as if it were killed
//   nccl_rank ID RANK RANKS survive    does the same, then waits for an exchange that never ends
//   nccl_rank ID RANK RANKS cut        ends its connection to the next rank, then acts as `survive`
//
// A rank that survives prints the error that NCCL reports ("nothing" or "remote error"). Then it
// aborts, and prints the state of its stream and its buffer.

#define DOCTEST_CONFIG_IMPLEMENT
#include "nccl_ranks.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace annulus::simulator {
namespace {

int run(const std::string& id_text, int number, int ranks, const std::string& what) {
  NcclUniqueId id{};
  std::memcpy(id.bytes, id_text.data(), std::min(id_text.size(), sizeof(id.bytes) - 1));
  set_nccl(static_cast<std::uint64_t>(number));
  NcclRank rank(number % ANNULUS_SIMULATOR_DEVICES);
  const auto need = [&](bool good, const char* text) {
    if (good) return;
    fmt::print("failed: {}\n", text);
    std::exit(1);
  };
  need(rank.init(ranks, id, number, false) == kNcclInProgress, "init");
  need(rank.poll() == kNcclSuccess, "the ranks meet");
  rank.fill(100.0f * static_cast<float>(number), 2 * NcclRank::kNumbers);
  const int next = (number + 1) % ranks, last = (number + ranks - 1) % ranks;
  const auto pass_on = [&] {
    need(rank.nccl.group_start() == kNcclSuccess, "a group");
    need(rank.send(next) == kNcclSuccess && rank.receive(last) == kNcclSuccess, "messages");
    return rank.nccl.group_end() == kNcclInProgress;
  };
  need(pass_on() && rank.poll() == kNcclSuccess && rank.wait() == kCudaSuccess, "an exchange");
  fmt::print("got {}\n", rank.read()[1]);
  if (what == "exchange") {
    need(rank.nccl.comm_finalize(rank.comm) == kNcclInProgress, "finalize");
    need(rank.poll() == kNcclSuccess, "all say bye");
    need(rank.nccl.comm_destroy(rank.comm) == kNcclSuccess, "destroy");
    rank.comm = nullptr;
    return 0;
  }
  std::fflush(stdout);
  if (what == "die") raise(SIGKILL);
  if (what == "cut") need(nccl::interface_cut(number, next) == kCudaSuccess, "a connection to cut");
  need(pass_on(), "a second exchange");
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  NcclResult code = kNcclSuccess;
  while (std::chrono::steady_clock::now() < end &&
         (code == kNcclSuccess || code == kNcclInProgress)) {
    need(rank.nccl.comm_get_async_error(rank.comm, &code) == kNcclSuccess, "the state");
    need(code != kNcclSuccess || rank.query() == kCudaNotReady, "the exchange does not end");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  fmt::print("told {}\n", code == kNcclRemoteError ? "remote error" : "nothing");
  need(rank.nccl.comm_abort(rank.comm) == kNcclSuccess, "abort");
  rank.comm = nullptr;
  need(rank.wait() == kCudaSuccess, "the stream goes on");
  fmt::print("then {}\n", std::isnan(rank.read()[0]) ? "poison" : "numbers");
  return 0;
}

}  // namespace
}  // namespace annulus::simulator

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  doctest::Context context;  // because REQUIRE is used outside of a test
  context.setAsDefaultForAssertsOutOfTestCases();
  return annulus::simulator::run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4]);
}
