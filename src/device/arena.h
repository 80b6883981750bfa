#ifndef ANNULUS_DEVICE_ARENA_H_
#define ANNULUS_DEVICE_ARENA_H_

// The device memory that the library holds. An arena takes slabs from the caller's allocator, or
// from the driver where there is none, and cuts them into blocks. A block has one owner
// (device::Buffer) until it is retired; then it waits until all work is done that its device had
// been given by then, and may be cut anew. Retiring calls no driver, so destroying a plan neither
// waits nor disturbs a capture.
//
// That all work is done is known from an event behind the work of the whole context
// (cuCtxRecordEvent), since a block may have been used on any stream and in graphs, which the
// library does not see. A driver without that function is waited for once many bytes wait. Before
// an allocation fails, caches drop what nobody uses, waiting blocks are waited for, and empty slabs
// are given back.

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "abi/cuda_types.h"
#include "device/slab_source.h"

namespace annulus::device {

class Context;

// What a block is for, as statistics tell it.
enum class MemoryUse {
  kLists,      // lists of tiles
  kTables,     // what else a plan reads: parts of rows, lists of masks, positions, scores
  kSelection,  // bits of selections
  kCaller,     // Device::allocate
  kScratch,    // all else: what a call needs while it runs, tuning, tests
};
constexpr int kMemoryUses = 5;
const char* to_string(MemoryUse use);

struct ArenaLimits {
  std::size_t max_bytes = 0;  // of all slabs; 0: no limit
};

struct ArenaStatistics {
  std::size_t held_bytes = 0;  // all slabs
  std::size_t used_bytes = 0;  // blocks that have an owner
  std::size_t waiting_bytes = 0;
  std::size_t peak_held_bytes = 0;
  std::size_t peak_used_bytes = 0;
  std::size_t largest_free_bytes = 0;
  std::int64_t slabs = 0;
  std::int64_t blocks = 0;       // that have an owner
  std::int64_t slabs_taken = 0;  // since the arena was made
  std::int64_t slabs_given_back = 0;
  std::array<std::size_t, kMemoryUses> used_by = {};
};

// Any thread may call any function at any time.
class Arena {
 public:
  // The context holds the arena.
  Arena(const Context& context, AllocatorCallbacks allocator, ArenaLimits limits);
  // Requires: no block has an owner. Waits for the device where blocks wait for it.
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A block of `bytes` > 0 bytes at a multiple of 256, which no pending work uses. Requires: the
  // context is current. Throws Error{kOutOfMemory} with what the arena holds, Error{kDevice}, and
  // what the caller's allocator says.
  abi::CUdeviceptr allocate(std::size_t bytes, MemoryUse use);
  // Takes a block back from its owner, while work that was queued before may still use it.
  void retire(abi::CUdeviceptr address) noexcept;

  // Lets caches drop what nobody uses, waits for retired blocks, and gives empty slabs back until
  // at most `bytes` are held or no slab is empty. Returns the bytes given back. Throws where
  // waiting fails. Requires: the context is current.
  std::size_t trim(std::size_t bytes);

  // Waits for all work by `wait`, after which blocks that were retired before the call are free.
  void wait_for_all(const std::function<void()>& wait);

  ArenaStatistics statistics() const;

  // Functions that drop what only a cache holds. They run in any thread that needs memory, and may
  // retire blocks but not allocate. remove_trimmer() waits while one runs.
  using Trimmers = std::list<std::function<void()>>;
  Trimmers::iterator add_trimmer(std::function<void()> trim);
  void remove_trimmer(Trimmers::iterator trimmer);

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Slab {
    std::size_t bytes = 0;
    bool small = false;      // for small blocks only, which would leave holes among large ones
    bool pooled = false;     // a simulated driver knows its blocks
    std::size_t blocks = 0;  // that are not free
  };
  using Slabs = std::map<abi::CUdeviceptr, Slab>;
  // A block that is retired waits for an event that is still to be recorded, a marked one for the
  // event, an awaited one for the call of the thread that counts on it.
  enum class State { kFree, kUsed, kRetired, kMarked, kAwaited };
  // Free blocks, of small slabs and of others, by span.
  using Free = std::set<std::pair<std::size_t, abi::CUdeviceptr>>;
  struct Block {
    std::size_t span = 0;   // bytes up to the next block
    std::size_t bytes = 0;  // that the owner asked for
    State state = State::kFree;
    MemoryUse use = MemoryUse::kScratch;
    Slabs::iterator slab;
    // Its node of free_, unless it is there, so that a block becomes free without an allocation,
    // which could fail.
    Free::node_type node;
  };
  using Blocks = std::map<abi::CUdeviceptr, Block>;

  // The functions below require that mutex_ is held. Those that take the lock release it while they
  // call the driver or the caller's functions, which may wait for other threads.
  std::optional<abi::CUdeviceptr> take(std::size_t bytes, MemoryUse use);
  std::optional<abi::CUdeviceptr> take_new(Lock& lock, std::size_t slab_bytes, std::size_t bytes,
                                           MemoryUse use);
  bool grow(Lock& lock, std::size_t bytes, bool small);
  // Returns the free block that it is part of.
  Blocks::iterator free(Blocks::iterator block) noexcept;
  void insert_free(Blocks::iterator block) noexcept;
  void free_all(State state) noexcept;
  void change_all(State from, State to);
  Free& free_of(const Slab& slab) { return free_[slab.small ? 0 : 1]; }
  // Frees the blocks whose event has passed, and starts to wait for the others where they are many.
  void poll(Lock& lock);
  abi::CUresult query_marker() const;
  void mark(Lock& lock);
  void wait_for_waiting(Lock& lock);
  std::size_t give_back(Lock& lock, std::size_t keep_bytes);
  void run_trimmers();
  std::string holdings() const;

  const Context& context_;
  const SlabSource source_;
  const ArenaLimits limits_;
  const std::size_t guard_;  // bytes that stay free behind a block, for a simulated driver's checks

  mutable std::mutex mutex_;  // guards all below, but for trimmers
  std::condition_variable not_busy_;
  Slabs slabs_;
  Blocks blocks_;
  std::array<Free, 2> free_;
  abi::CUevent marker_ = nullptr;  // behind all work of the context
  bool busy_ = false;              // a thread uses the event, without the lock
  std::size_t retired_bytes_ = 0;  // of blocks without an event behind them
  std::size_t marked_bytes_ = 0;   // of those with one
  ArenaStatistics counted_;
  std::string why_not_;  // what the last slab that was not to be had was refused with

  std::mutex trimmers_mutex_;
  Trimmers trimmers_;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_ARENA_H_
