// The simulated NCCL within one process: messages and collective calls of ranks, which are threads
// or are called by one thread in groups. Also its codes, and its reports of misuse.

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "nccl_ranks.h"

namespace annulus::simulator {
namespace {

// Each rank sends its numbers to the next one, all in one group of one thread.
void pass_on(const NcclRanks& ranks) {
  const NcclTable& nccl = ranks.at(0).nccl;
  const int count = ranks.count();
  REQUIRE(nccl.group_start() == kNcclSuccess);
  for (int rank = 0; rank < count; ++rank) {
    REQUIRE(ranks.at(rank).send((rank + 1) % count) == kNcclSuccess);
    REQUIRE(ranks.at(rank).receive((rank + count - 1) % count) == kNcclSuccess);
  }
}

TEST_CASE("ranks of one thread exchange what one group says, whatever the seed") {
  for (const unsigned streams : {0u, 1u}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      for (const int count : {1, 2, 5}) {
        CAPTURE(streams);
        CAPTURE(seed);
        CAPTURE(count);
        const NcclRanks ranks(count, seed, seed % 2 == 0, streams);
        for (int rank = 0; rank < count; ++rank) ranks.at(rank).fill(100.0f * rank);
        pass_on(ranks);
        const NcclResult ended = ranks.at(0).nccl.group_end();
        CHECK(ended == (seed % 2 == 0 ? kNcclSuccess : kNcclInProgress));
        for (int rank = 0; rank < count; ++rank) CHECK(ranks.at(rank).poll() == kNcclSuccess);
        for (int rank = 0; rank < count; ++rank) {
          REQUIRE(ranks.at(rank).wait() == kCudaSuccess);
          const int from = (rank + count - 1) % count;
          CHECK(ranks.at(rank).read()[3] == 100.0f * static_cast<float>(from) + 3);
          CHECK(ranks.at(rank).fault().empty());
        }
      }
    }
  }
}

TEST_CASE("ranks of several threads meet without blocking, and run all collective calls") {
  constexpr int kRanks = 4;
  constexpr std::size_t kCount = 16;
  set_nccl(7);
  const NcclUniqueId id = new_id();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < kRanks; ++number) {
    threads.emplace_back([&, number] {
      NcclRank rank(number, static_cast<std::uint64_t>(number));
      const auto expect = [&](bool good) { wrong += good ? 0 : 1; };
      const auto call = [&](NcclResult code) {
        expect(code == kNcclInProgress || code == kNcclSuccess);
        expect(rank.poll() == kNcclSuccess);
        expect(rank.wait() == kCudaSuccess);
      };
      call(rank.init(kRanks, id, number, false));
      rank.fill(static_cast<float>(number), kRanks * kCount);
      const NcclTable& nccl = rank.nccl;
      const float all = 0 + 1 + 2 + 3;
      const auto mine = static_cast<float>(number);
      call(nccl.all_reduce(rank.source(), rank.target(), kCount, kNcclFloat32, kNcclSum, rank.comm,
                           rank.stream));
      expect(rank.read()[5] == all + 4 * 5);
      call(nccl.all_reduce(rank.source(), rank.target(), kCount, kNcclFloat32, kNcclMax, rank.comm,
                           rank.stream));
      expect(rank.read()[5] == 3 + 5);
      call(nccl.all_gather(rank.source(), rank.target(), kCount, kNcclFloat32, rank.comm,
                           rank.stream));
      expect(rank.read()[2 * kCount + 1] == 3);
      call(nccl.reduce_scatter(rank.source(), rank.target(), kCount, kNcclFloat32, kNcclSum,
                               rank.comm, rank.stream));
      expect(rank.read()[2] == all + 4 * (mine * kCount + 2));
      call(nccl.broadcast(rank.source(), rank.target(), kCount, kNcclFloat32, 2, rank.comm,
                          rank.stream));
      expect(rank.read()[0] == 2);
      call(nccl.reduce(rank.source(), rank.target(), kCount, kNcclFloat32, kNcclMin, 1, rank.comm,
                       rank.stream));
      if (number == 1) expect(rank.read()[4] == 4);
      call(nccl.all_to_all(rank.source(), rank.target(), kCount, kNcclFloat32, rank.comm,
                           rank.stream));
      expect(rank.read()[3 * kCount] == 3 + mine * kCount);
      int told = 0;
      expect(nccl.comm_count(rank.comm, &told) == kNcclSuccess && told == kRanks);
      expect(nccl.comm_user_rank(rank.comm, &told) == kNcclSuccess && told == number);
      expect(nccl.comm_cu_device(rank.comm, &told) == kNcclSuccess && told == number);
      call(nccl.comm_finalize(rank.comm));
      expect(nccl.comm_destroy(rank.comm) == kNcclSuccess);
      rank.comm = nullptr;
      expect(rank.fault().empty());
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("messages of a pair keep their order, others go as they come") {
  const NcclRanks ranks(2, 3);
  ranks.at(0).fill(10);
  const NcclTable& nccl = ranks.at(0).nccl;
  REQUIRE(nccl.group_start() == kNcclSuccess);
  for (int i = 0; i < 4; ++i) {
    REQUIRE(ranks.at(0).send(1, 4, 4 * i) == kNcclSuccess);
    REQUIRE(ranks.at(1).receive(0, 4, 4 * (3 - i)) == kNcclSuccess);
  }
  REQUIRE(nccl.group_end() == kNcclSuccess);
  REQUIRE(ranks.at(1).wait() == kCudaSuccess);
  CHECK(ranks.at(1).read(16) ==
        std::vector<float>{22, 23, 24, 25, 18, 19, 20, 21, 14, 15, 16, 17, 10, 11, 12, 13});
}

TEST_CASE("a captured group is exchanged at each launch of its graph") {
  const NcclRanks ranks(2);
  const CudaTable& cuda = ranks.at(0).cuda;
  const NcclTable& nccl = ranks.at(0).nccl;
  CUgraphExec graphs[2] = {};
  // NCCL connects peers at their first message, which may not be captured.
  pass_on(ranks);
  REQUIRE(nccl.group_end() == kNcclSuccess);
  for (int rank = 0; rank < 2; ++rank) REQUIRE(ranks.at(rank).wait() == kCudaSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    ranks.at(rank).enter();
    REQUIRE(cuda.stream_begin_capture(ranks.at(rank).stream, 1) == kCudaSuccess);
    ranks.at(rank).leave();
  }
  pass_on(ranks);
  REQUIRE(nccl.group_end() == kNcclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    CUgraph graph = nullptr;
    ranks.at(rank).enter();
    REQUIRE(cuda.stream_end_capture(ranks.at(rank).stream, &graph) == kCudaSuccess);
    REQUIRE(cuda.graph_instantiate(&graphs[rank], graph, 0) == kCudaSuccess);
    ranks.at(rank).leave();
  }
  for (int launch = 0; launch < 3; ++launch) {
    for (int rank = 0; rank < 2; ++rank) {
      ranks.at(rank).fill(static_cast<float>(100 * rank + 10 * launch));
      ranks.at(rank).enter();
      REQUIRE(cuda.graph_launch(graphs[rank], ranks.at(rank).stream) == kCudaSuccess);
      ranks.at(rank).leave();
    }
    for (int rank = 0; rank < 2; ++rank) {
      REQUIRE(ranks.at(rank).wait() == kCudaSuccess);
      CHECK(ranks.at(rank).read()[0] == static_cast<float>(100 * (1 - rank) + 10 * launch));
    }
  }
}

TEST_CASE("a communicator is split by color and shrunk to those that are left") {
  const NcclRanks ranks(4);
  const NcclTable& nccl = ranks.at(0).nccl;
  NcclSettings settings;
  settings.blocking = 0;
  NcclComm created[4] = {};
  for (int rank = 0; rank < 4; ++rank) {
    const NcclResult code = nccl.comm_split(ranks.at(rank).comm, rank == 3 ? -1 : rank % 2, -rank,
                                            &created[rank], settings.config());
    CHECK(code == kNcclInProgress);
  }
  const auto poll = [&](NcclComm comm) {
    NcclResult code = kNcclInProgress;
    while (code == kNcclInProgress) nccl.comm_get_async_error(comm, &code);
    return code;
  };
  for (const NcclComm comm : created) CHECK(poll(comm) == kNcclSuccess);
  int number = -1;
  CHECK(nccl.comm_user_rank(created[0], &number) == kNcclSuccess);
  CHECK(number == 1);  // rank 2 has the smaller key
  CHECK(nccl.comm_count(created[1], &number) == kNcclSuccess);
  CHECK(number == 1);
  for (const NcclComm comm : created) CHECK(nccl.comm_abort(comm) == kNcclSuccess);

  int dead = 2;
  NcclComm left[4] = {};
  CHECK(nccl.comm_shrink(ranks.at(2).comm, &dead, 1, &left[2], settings.config(), 1) ==
        kNcclInvalidArgument);
  for (const int rank : {0, 1, 3}) {
    CHECK(nccl.comm_shrink(ranks.at(rank).comm, &dead, 1, &left[rank], settings.config(), 1) ==
          kNcclInProgress);
  }
  for (const int rank : {0, 1, 3}) CHECK(poll(left[rank]) == kNcclSuccess);
  CHECK(nccl.comm_user_rank(left[3], &number) == kNcclSuccess);
  CHECK(number == 2);
  CHECK(ranks.at(0).send(1) == kNcclInvalidUsage);  // the parent was stopped
  for (const int rank : {0, 1, 3}) CHECK(nccl.comm_abort(left[rank]) == kNcclSuccess);
}

TEST_CASE(
    "an aborted communicator lets its stream go on, with poison where messages were to come") {
  const NcclRanks ranks(2);
  NcclRank& waiting = ranks.at(1);
  waiting.enter();
  REQUIRE(waiting.cuda.memset_d8_async(waiting.to, 0, NcclRank::kNumbers * 4, waiting.stream) ==
          kCudaSuccess);
  waiting.leave();
  // Both ranks connect, and then only one of them continues.
  pass_on(ranks);
  REQUIRE(waiting.nccl.group_end() == kNcclSuccess);
  REQUIRE(waiting.wait() == kCudaSuccess);
  REQUIRE(waiting.receive(0) == kNcclSuccess);
  for (int i = 0; i < 20; ++i) CHECK(waiting.query() == kCudaNotReady);
  CHECK(waiting.poll() == kNcclSuccess);  // NCCL has no error to report
  REQUIRE(waiting.nccl.comm_abort(waiting.comm) == kNcclSuccess);
  waiting.comm = nullptr;
  CHECK(waiting.wait() == kCudaSuccess);
  CHECK(std::isnan(waiting.read()[0]));
}

TEST_CASE("a revoked communicator ends what is under way and takes nothing new") {
  const NcclRanks ranks(2, 1, false);
  pass_on(ranks);
  REQUIRE(ranks.at(0).nccl.group_end() == kNcclInProgress);
  for (int rank = 0; rank < 2; ++rank) REQUIRE(ranks.at(rank).poll() == kNcclSuccess);
  NcclRank& waiting = ranks.at(0);
  REQUIRE(waiting.receive(1) == kNcclInProgress);
  REQUIRE(waiting.poll() == kNcclSuccess);
  CHECK(waiting.nccl.comm_revoke(waiting.comm, 1) == kNcclInvalidArgument);
  CHECK(waiting.nccl.comm_revoke(waiting.comm, 0) == kNcclInProgress);
  CHECK(waiting.poll() == kNcclSuccess);
  CHECK(waiting.query() == kCudaSuccess);
  CHECK(waiting.nccl.comm_revoke(waiting.comm, 0) == kNcclInvalidArgument);
  CHECK(waiting.receive(1) == kNcclInvalidUsage);
  CHECK(waiting.nccl.comm_destroy(waiting.comm) == kNcclSuccess);
  waiting.comm = nullptr;
}

TEST_CASE("groups, messages and bytes are counted, and links have a time by the options") {
  annulus_simulator_nccl_options options = ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT;
  options.link_latency_ns = 2000;
  options.link_bytes_per_second = 1'000'000'000;
  const NcclRanks ranks(2, 0, true);
  REQUIRE(nccl::interface_set_options(&options) == kCudaSuccess);
  annulus_simulator_nccl_counters counters = ANNULUS_SIMULATOR_NCCL_COUNTERS_INIT;
  REQUIRE(nccl::interface_counters(&counters, 1) == kCudaSuccess);
  // Rank 0 sends two messages in one direction, and rank 1 sends one in the other. The busier
  // direction takes two latencies, and 256 + 64 bytes at a nanosecond each.
  const NcclTable& table = ranks.at(0).nccl;
  REQUIRE(table.group_start() == kNcclSuccess);
  REQUIRE(ranks.at(0).send(1, 64) == kNcclSuccess);
  REQUIRE(ranks.at(0).send(1, 16, 64) == kNcclSuccess);
  REQUIRE(ranks.at(0).receive(1, 8) == kNcclSuccess);
  REQUIRE(ranks.at(1).receive(0, 64) == kNcclSuccess);
  REQUIRE(ranks.at(1).receive(0, 16, 64) == kNcclSuccess);
  REQUIRE(ranks.at(1).send(0, 8) == kNcclSuccess);
  REQUIRE(table.group_end() == kNcclSuccess);
  for (int rank = 0; rank < 2; ++rank) REQUIRE(ranks.at(rank).wait() == kCudaSuccess);
  REQUIRE(nccl::interface_counters(&counters, 1) == kCudaSuccess);
  CHECK(counters.groups == 2);
  CHECK(counters.messages == 3);
  CHECK(counters.bytes == 352);
  CHECK(counters.predicted_ns == 2 * (2 * 2000 + 256 + 64));
  REQUIRE(nccl::interface_counters(&counters, 0) == kCudaSuccess);
  CHECK(counters.groups == 0);
  CHECK(nccl::interface_counters(nullptr, 0) == kCudaInvalidValue);
  set_nccl(0);
}

TEST_CASE("misuse of messages has a name") {
  SUBCASE("the sides of a message differ") {
    const NcclRanks ranks(2);
    ranks.at(0).fill(0);
    REQUIRE(ranks.at(0).nccl.group_start() == kNcclSuccess);
    REQUIRE(ranks.at(0).send(1, 8) == kNcclSuccess);
    REQUIRE(ranks.at(1).receive(0, 9) == kNcclSuccess);
    REQUIRE(ranks.at(0).nccl.group_end() == kNcclSuccess);
    CHECK(ranks.at(0).wait() == kCudaLaunchFailed);
    CHECK(ranks.at(0).fault().find("message mismatch") != std::string::npos);
    CHECK(ranks.at(0).fault().find("36 bytes") != std::string::npos);
  }
  SUBCASE("collective calls in another order") {
    const NcclRanks ranks(2);
    for (int rank = 0; rank < 2; ++rank) ranks.at(rank).fill(0);
    const NcclTable& nccl = ranks.at(0).nccl;
    const auto gather = [&](int rank) {
      return nccl.all_gather(ranks.at(rank).source(), ranks.at(rank).target(), 4, kNcclFloat32,
                             ranks.at(rank).comm, ranks.at(rank).stream);
    };
    const auto sum = [&](int rank) {
      return nccl.all_reduce(ranks.at(rank).source(), ranks.at(rank).target(), 4, kNcclFloat32,
                             kNcclSum, ranks.at(rank).comm, ranks.at(rank).stream);
    };
    REQUIRE(nccl.group_start() == kNcclSuccess);
    REQUIRE(gather(0) == kNcclSuccess);
    REQUIRE(sum(1) == kNcclSuccess);
    REQUIRE(nccl.group_end() == kNcclSuccess);
    CHECK(ranks.at(0).wait() == kCudaLaunchFailed);
    CHECK(ranks.at(0).fault().find("ncclAllReduce") != std::string::npos);
  }
  SUBCASE("work on the stream before the group is queued") {
    const NcclRanks ranks(2, 5, false);
    pass_on(ranks);
    REQUIRE(ranks.at(0).nccl.group_end() == kNcclInProgress);
    NcclRank& early = ranks.at(0);
    early.enter();
    REQUIRE(early.cuda.memset_d8_async(early.to, 0, 16, early.stream) == kCudaSuccess);
    early.leave();
    CHECK(early.poll() == kNcclSuccess);
    CHECK(early.wait() == kCudaLaunchFailed);
    CHECK(early.fault().find("early work") != std::string::npos);
  }
  SUBCASE("a buffer that is written while it travels") {
    const NcclRanks ranks(2);
    NcclRank& rank = ranks.at(0);
    rank.fill(0);
    CUstream other = nullptr;
    rank.enter();
    REQUIRE(rank.cuda.stream_create(&other, kStreamNonBlocking) == kCudaSuccess);
    rank.leave();
    pass_on(ranks);
    REQUIRE(rank.nccl.group_end() == kNcclSuccess);
    rank.enter();
    REQUIRE(rank.cuda.memset_d8_async(rank.from, 0, 16, other) == kCudaSuccess);
    rank.leave();
    const CUresult code = rank.wait();
    rank.enter();
    const CUresult of_other = rank.cuda.stream_synchronize(other);
    rank.leave();
    CHECK((code == kCudaLaunchFailed || of_other == kCudaLaunchFailed));
    CHECK(rank.fault().find("a group of NCCL") != std::string::npos);
  }
  SUBCASE("a buffer that is not there") {
    const NcclRanks ranks(2);
    REQUIRE(ranks.at(0).nccl.group_start() == kNcclSuccess);
    REQUIRE(ranks.at(0).send(1, 1 << 20) == kNcclSuccess);
    REQUIRE(ranks.at(1).receive(0, 1 << 20) == kNcclSuccess);
    REQUIRE(ranks.at(0).nccl.group_end() == kNcclSuccess);
    CHECK(ranks.at(0).wait() == kCudaIllegalAddress);
  }
}

TEST_CASE("calls are refused with the codes of NCCL") {
  const NcclRanks ranks(2);
  const NcclRank& rank = ranks.at(0);
  const NcclTable& nccl = rank.nccl;
  CHECK(nccl.group_end() == kNcclInvalidUsage);
  CHECK(nccl.comm_abort(nullptr) == kNcclSuccess);
  CHECK(nccl.comm_count(nullptr, nullptr) == kNcclInvalidArgument);
  CHECK(rank.send(2) == kNcclInvalidArgument);
  CHECK(rank.send(-1) == kNcclInvalidArgument);
  CHECK(rank.send(0) == kNcclInvalidUsage);  // a message to itself without its other half
  CHECK(nccl.send(rank.source(), 4, 77, 1, rank.comm, rank.stream) == kNcclInvalidArgument);
  CHECK(nccl.send(nullptr, 4, kNcclFloat32, 1, rank.comm, rank.stream) == kNcclInvalidArgument);
  CHECK(nccl.all_reduce(rank.source(), rank.target(), 4, kNcclFloat32, 9, rank.comm, rank.stream) ==
        kNcclInvalidArgument);
  // An error inside a group drops the whole group.
  REQUIRE(nccl.group_start() == kNcclSuccess);
  CHECK(rank.send(1) == kNcclSuccess);
  CHECK(rank.send(9) == kNcclInvalidArgument);
  CHECK(nccl.group_end() == kNcclInvalidArgument);
  CHECK(rank.query() == kCudaSuccess);

  const NcclUniqueId id = new_id();
  NcclComm comm = nullptr;
  rank.enter();
  CHECK(nccl.comm_init_rank(&comm, 2, id, 2) == kNcclInvalidArgument);
  CHECK(nccl.comm_init_rank(&comm, 0, id, 0) == kNcclInvalidArgument);
  CHECK(nccl.comm_init_rank(&comm, 1, NcclUniqueId{}, 0) == kNcclInvalidArgument);
  NcclSettings settings;
  settings.magic = 1;
  CHECK(nccl.comm_init_rank_config(&comm, 1, id, 0, settings.config()) == kNcclInvalidArgument);
  rank.leave();
  // Without a current context the call is an error of CUDA, and the thread remains inside a group.
  CHECK(nccl.comm_init_rank(&comm, 1, id, 0) == kNcclUnhandledCudaError);
  CHECK(nccl.group_end() == kNcclSuccess);
  CHECK(std::string(nccl.get_error_string(kNcclRemoteError)).find("remote") != std::string::npos);
  CHECK(std::string(nccl.get_error_string(8)) == "unknown result code");
}

TEST_CASE("two ranks on one device of a host are refused on both") {
  set_nccl(0);
  const NcclUniqueId id = new_id();
  NcclRank rank(0);
  NcclComm comms[2] = {};
  rank.enter();
  REQUIRE(rank.nccl.group_start() == kNcclSuccess);
  for (int i = 0; i < 2; ++i)
    REQUIRE(rank.nccl.comm_init_rank(&comms[i], 2, id, i) == kNcclSuccess);
  CHECK(rank.nccl.group_end() == kNcclInvalidUsage);
  rank.leave();
  for (const NcclComm comm : comms) {
    NcclResult code = kNcclSuccess;
    CHECK(rank.nccl.comm_get_async_error(comm, &code) == kNcclSuccess);
    CHECK(code == kNcclInvalidUsage);
    CHECK(rank.nccl.comm_abort(comm) == kNcclSuccess);
  }
}

TEST_CASE("a call fails when the options say so, and functions come with their versions") {
  const NcclRanks ranks(2);
  annulus_simulator_nccl_options options = ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT;
  std::strcpy(options.fail_function, "ncclGroupStart");
  options.fail_after = 1;
  options.fail_code = kNcclSystemError;
  REQUIRE(nccl::interface_set_options(&options) == kCudaSuccess);
  const NcclTable& nccl = ranks.at(0).nccl;
  CHECK(nccl.group_start() == kNcclSuccess);
  CHECK(nccl.group_start() == kNcclSystemError);
  CHECK(nccl.group_start() == kNcclSuccess);
  CHECK(nccl.group_end() == kNcclSuccess);
  CHECK(nccl.group_end() == kNcclSuccess);
  options.version = 100;
  CHECK(nccl::interface_set_options(&options) == kCudaInvalidValue);
  set_nccl(0, 3, 22000);
  void* entry = nullptr;
  CHECK(nccl::interface_entry("ncclCommSplit", &entry) == kCudaSuccess);
  CHECK(nccl::interface_entry("ncclCommRevoke", &entry) == kCudaNotFound);
  const bool revokes = nccl::make_table().comm_revoke != nullptr;
  const bool splits = nccl::make_table().comm_split != nullptr;
  CHECK(!revokes);
  CHECK(splits);
  int version = 0;
  CHECK(nccl.get_version(&version) == kNcclSuccess);
  CHECK(version == 22000);
  set_nccl(0);
}

}  // namespace
}  // namespace annulus::simulator
