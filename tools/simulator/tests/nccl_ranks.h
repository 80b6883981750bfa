#ifndef ANNULUS_SIMULATOR_TESTS_NCCL_RANKS_H_
#define ANNULUS_SIMULATOR_TESTS_NCCL_RANKS_H_

// Ranks of a simulated NCCL for tests. Each has a device, a stream and two buffers.

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "annulus/simulator.h"
#include "simulator/driver/driver.h"
#include "simulator/nccl/entries.h"
#include "simulator/nccl/interface.h"

namespace annulus::simulator {

using namespace annulus::abi;

// The first members of ncclConfig_t of NCCL 2.28.
struct NcclSettings {
  std::size_t size = sizeof(NcclSettings);
  unsigned magic = 0xcafebeef;
  unsigned version = 22809;
  int blocking = 1;
  int rest[32] = {};

  NcclConfig* config() { return reinterpret_cast<NcclConfig*>(this); }
};

inline void set_nccl(std::uint64_t seed, std::uint32_t polls = 3, std::uint32_t version = 22809) {
  annulus_simulator_nccl_options options = ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT;
  options.seed = seed;
  options.polls = polls;
  options.version = version;
  REQUIRE(nccl::interface_set_options(&options) == kCudaSuccess);
}

struct NcclRank {
  static constexpr int kNumbers = 64;  // numbers in a buffer, in fp32

  const CudaTable cuda = make_cuda_table();
  const NcclTable nccl = nccl::make_table();
  const CUdevice device;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr from = 0, to = 0;
  NcclComm comm = nullptr;

  explicit NcclRank(int ordinal, std::uint64_t seed = 0, unsigned streams = 1) : device(ordinal) {
    REQUIRE(cuda.init(0) == kCudaSuccess);
    REQUIRE(cuda.primary_ctx_retain(&context, device) == kCudaSuccess);
    SimulatorOptions options;
    options.streams = streams;
    options.seed = seed;
    REQUIRE(cuda.simulator_set_options(device, &options) == kCudaSuccess);
    enter();
    REQUIRE(cuda.stream_create(&stream, kStreamNonBlocking) == kCudaSuccess);
    REQUIRE(cuda.mem_alloc(&from, kNumbers * 4 * 8) == kCudaSuccess);
    REQUIRE(cuda.mem_alloc(&to, kNumbers * 4 * 8) == kCudaSuccess);
    leave();
  }
  ~NcclRank() {
    const SimulatorOptions options;
    if (comm != nullptr) nccl.comm_abort(comm);
    cuda.simulator_clear_fault(device);
    cuda.simulator_set_options(device, &options);
    cuda.primary_ctx_release(device);
  }
  NcclRank(const NcclRank&) = delete;

  void enter() const { REQUIRE(cuda.ctx_push_current(context) == kCudaSuccess); }
  void leave() const {
    CUcontext popped = nullptr;
    REQUIRE(cuda.ctx_pop_current(&popped) == kCudaSuccess);
  }
  void* source(int at = 0) const {
    return reinterpret_cast<void*>(from + 4 * static_cast<CUdeviceptr>(at));
  }
  void* target(int at = 0) const {
    return reinterpret_cast<void*>(to + 4 * static_cast<CUdeviceptr>(at));
  }

  // Sets number i of the source to first + i.
  void fill(float first, int count = kNumbers) const {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + static_cast<float>(i);
    enter();
    REQUIRE(cuda.memcpy_htod(from, numbers.data(), numbers.size() * 4) == kCudaSuccess);
    leave();
  }
  CUresult wait() const {
    enter();
    const CUresult code = cuda.stream_synchronize(stream);
    leave();
    return code;
  }
  CUresult query() const {
    enter();
    const CUresult code = cuda.stream_query(stream);
    leave();
    return code;
  }
  std::vector<float> read(int count = kNumbers) const {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    enter();
    REQUIRE(cuda.memcpy_dtoh(numbers.data(), to, numbers.size() * 4) == kCudaSuccess);
    leave();
    return numbers;
  }
  std::string fault() const {
    char text[4096] = {};
    REQUIRE(cuda.simulator_last_fault(device, text, sizeof(text)) == kCudaSuccess);
    return text;
  }

  NcclResult init(int ranks, const NcclUniqueId& id, int rank, bool blocking) {
    NcclSettings settings;
    settings.blocking = blocking ? 1 : 0;
    enter();
    const NcclResult code = nccl.comm_init_rank_config(&comm, ranks, id, rank, settings.config());
    leave();
    return code;
  }
  // Polls until the operation of the communicator has ended.
  NcclResult poll() const {
    NcclResult code = kNcclInProgress;
    while (code == kNcclInProgress && nccl.comm_get_async_error(comm, &code) == kNcclSuccess) {
    }
    return code;
  }
  NcclResult send(int peer, int count = kNumbers, int at = 0) const {
    return nccl.send(source(at), static_cast<std::size_t>(count), kNcclFloat32, peer, comm, stream);
  }
  NcclResult receive(int peer, int count = kNumbers, int at = 0) const {
    return nccl.recv(target(at), static_cast<std::size_t>(count), kNcclFloat32, peer, comm, stream);
  }
};

inline NcclUniqueId new_id() {
  NcclUniqueId id{};
  REQUIRE(nccl::make_table().get_unique_id(&id) == kNcclSuccess);
  return id;
}

// Several ranks of this process. One thread makes their communicators in a group.
struct NcclRanks {
  std::vector<std::unique_ptr<NcclRank>> all;

  explicit NcclRanks(int ranks, std::uint64_t seed = 0, bool blocking = true,
                     unsigned streams = 1) {
    set_nccl(seed);
    const NcclUniqueId id = new_id();
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(std::make_unique<NcclRank>(rank, seed + static_cast<unsigned>(rank), streams));
    }
    const NcclTable& nccl = all[0]->nccl;
    REQUIRE(nccl.group_start() == kNcclSuccess);
    for (int rank = 0; rank < ranks; ++rank) {
      REQUIRE(at(rank).init(ranks, id, rank, blocking) == kNcclSuccess);
    }
    REQUIRE(nccl.group_end() == (blocking ? kNcclSuccess : kNcclInProgress));
    if (blocking) return;
    for (const auto& rank : all) REQUIRE(rank->poll() == kNcclSuccess);
  }
  NcclRank& at(int rank) const { return *all[static_cast<std::size_t>(rank)]; }
  int count() const { return static_cast<int>(all.size()); }
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_TESTS_NCCL_RANKS_H_
