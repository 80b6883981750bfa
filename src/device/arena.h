#ifndef ANNULUS_DEVICE_ARENA_H_
#define ANNULUS_DEVICE_ARENA_H_

// The device memory that the library holds. An arena takes slabs from the caller's allocator, or
// from the driver if there is no allocator, and divides them into blocks. A block has one owner
// (device::Buffer) until it is retired. A retired block waits until all work that its device had
// received by then has ended. Then its memory may be used again. Retiring calls no driver function,
// so destroying a plan neither waits nor disturbs a capture.
//
// An event after the work of the whole context (cuCtxRecordEvent) shows that all work has ended. A
// narrower event is not enough, because a block may have been used on any stream and in graphs,
// which the library does not observe. If the driver does not have that function, the arena waits
// for the device after many bytes are retired. Before an allocation fails, caches drop unused
// entries, the arena waits for retired blocks, and empty slabs are given back.

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

// The purpose of a block, for statistics.
enum class MemoryUse {
  kLists,      // tile lists of plans
  kTables,     // other data that a plan reads: parts of rows, lists of masks, positions, scores
  kSelection,  // bit sets of selections
  kCaller,     // memory of Device::allocate
  kScratch,    // everything else: memory that a call needs while it runs, tuning, tests
};
constexpr int kMemoryUses = 5;
const char* to_string(MemoryUse use);

struct ArenaLimits {
  std::size_t max_bytes = 0;  // the sum over all slabs; 0: no limit
};

struct ArenaStatistics {
  std::size_t held_bytes = 0;  // the size of all slabs
  std::size_t used_bytes = 0;  // blocks that have an owner
  std::size_t waiting_bytes = 0;
  std::size_t peak_held_bytes = 0;
  std::size_t peak_used_bytes = 0;
  std::size_t largest_free_bytes = 0;
  std::int64_t slabs = 0;
  std::int64_t blocks = 0;       // blocks that have an owner
  std::int64_t slabs_taken = 0;  // since the arena was created
  std::int64_t slabs_given_back = 0;
  std::array<std::size_t, kMemoryUses> used_by = {};
};

// Any thread may call any function at any time.
class Arena {
 public:
  // The context owns the arena.
  Arena(const Context& context, AllocatorCallbacks allocator, ArenaLimits limits);
  // Requires: no block has an owner. Waits for the device if blocks are retired.
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A block of `bytes` > 0 bytes at a multiple of 256, which no pending work uses. Requires: the
  // context is current. Throws Error{kOutOfMemory} with the arena's contents, Error{kDevice}, and
  // errors of the caller's allocator.
  abi::CUdeviceptr allocate(std::size_t bytes, MemoryUse use);
  // Takes a block back from its owner. Work that was queued before may still use it.
  void retire(abi::CUdeviceptr address) noexcept;

  // Lets caches drop unused entries, waits for retired blocks, and gives empty slabs back until at
  // most `bytes` are held or no slab is empty. Returns the number of bytes given back. Throws if
  // waiting fails. Requires: the context is current.
  std::size_t trim(std::size_t bytes);

  // Calls `wait`, which waits for all work. Then blocks that were retired before this call are
  // free.
  void wait_for_all(const std::function<void()>& wait);

  ArenaStatistics statistics() const;

  // Functions that drop entries which only a cache holds. They run in any thread that needs memory.
  // They may retire blocks but must not allocate. remove_trimmer() waits while a trimmer runs.
  using Trimmers = std::list<std::function<void()>>;
  Trimmers::iterator add_trimmer(std::function<void()> trim);
  void remove_trimmer(Trimmers::iterator trimmer);

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Slab {
    std::size_t bytes = 0;
    bool small = false;      // holds only small blocks, which would leave holes among large ones
    bool pooled = false;     // the simulated driver has been informed of the pool and its blocks
    std::size_t blocks = 0;  // the number of blocks that are not free
  };
  using Slabs = std::map<abi::CUdeviceptr, Slab>;
  // A retired block waits until an event is recorded, and a marked block until that event has
  // passed. An awaited block waits for a call of wait_for_all().
  enum class State { kFree, kUsed, kRetired, kMarked, kAwaited };
  // Free blocks, by span. One set is for small slabs, the other for large ones.
  using Free = std::set<std::pair<std::size_t, abi::CUdeviceptr>>;
  struct Block {
    std::size_t span = 0;   // bytes up to the next block
    std::size_t bytes = 0;  // the size that the owner requested
    State state = State::kFree;
    MemoryUse use = MemoryUse::kScratch;
    Slabs::iterator slab;
    // The block's node of free_ while the block is not in free_. So a block becomes free without an
    // allocation, which could fail.
    Free::node_type node;
  };
  using Blocks = std::map<abi::CUdeviceptr, Block>;

  // The functions below require that mutex_ is held. Functions with a Lock parameter release it
  // while they call the driver or the caller's functions, which may wait for other threads.
  std::optional<abi::CUdeviceptr> take(std::size_t bytes, MemoryUse use);
  std::optional<abi::CUdeviceptr> take_new(Lock& lock, std::size_t slab_bytes, std::size_t bytes,
                                           MemoryUse use);
  bool grow(Lock& lock, std::size_t bytes, bool small);
  // Returns the free block that now contains it.
  Blocks::iterator free(Blocks::iterator block) noexcept;
  void insert_free(Blocks::iterator block) noexcept;
  void free_all(State state) noexcept;
  void change_all(State from, State to);
  Free& free_of(const Slab& slab) { return free_[slab.small ? 0 : 1]; }
  // Frees the blocks whose event has passed. If many other blocks are retired, records an event or
  // waits for them.
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
  // bytes that stay free after a block, for the checks of a simulated driver
  const std::size_t guard_;

  mutable std::mutex mutex_;  // guards all members below, except the trimmers
  std::condition_variable not_busy_;
  Slabs slabs_;
  Blocks blocks_;
  std::array<Free, 2> free_;
  abi::CUevent marker_ = nullptr;  // recorded after all work of the context
  bool busy_ = false;              // a thread uses the event without the lock
  std::size_t retired_bytes_ = 0;  // the size of retired blocks that no event covers
  std::size_t marked_bytes_ = 0;   // the size of retired blocks that the event covers
  ArenaStatistics counted_;
  std::string why_not_;  // the reason why the last slab was refused

  std::mutex trimmers_mutex_;
  Trimmers trimmers_;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_ARENA_H_
