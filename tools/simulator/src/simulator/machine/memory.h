#ifndef ANNULUS_SIMULATOR_MACHINE_MEMORY_H_
#define ANNULUS_SIMULATOR_MACHINE_MEMORY_H_

// Memory that kernels can access: the memory of one simulated device, or memory of the host. It is
// one reserved range of addresses, so a device pointer is a host pointer. Between allocations there
// are gaps of addresses that belong to no allocation. A shadow bit for each byte states whether the
// byte was ever written.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace annulus::simulator {

class AccessRecord;
class Detector;
class GlobalMemory;
struct Operation;

struct Allocation {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // one past the last byte
  const GlobalMemory* memory = nullptr;

  // Whether [address, address + bytes) is inside. It is correct even if address + bytes is 2^64 or
  // more.
  bool holds(std::uint64_t address, std::uint64_t bytes) const {
    return address >= begin && address < end && bytes <= end - address;
  }
};

class GlobalMemory {
 public:
  enum class Kind {
    kDevice,
    // The program can write this memory without the driver noticing, so all of an allocation counts
    // as written. Allocations begin at pages.
    kHost,
  };
  // Reserves addresses, but no memory yet. `bytes` is the capacity that the device reports.
  explicit GlobalMemory(std::uint64_t bytes, Kind kind = Kind::kDevice);
  // Memory of the host that the program owns: one allocation, [begin, begin + bytes), of kind
  // kHost. The program keeps the ownership.
  GlobalMemory(void* begin, std::uint64_t bytes);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  // The address is a multiple of 512, of 2 MiB for allocations of at least 1 MiB, or of a page for
  // kHost. It is 0 if the capacity is used up. The contents are marked as not written.
  std::uint64_t allocate(std::uint64_t bytes);
  // Returns false if `pointer` is not the start of a live allocation. The last kMaxFreed operations
  // `by` which memory was freed are remembered for freed_by().
  bool release(std::uint64_t pointer, std::shared_ptr<const Operation> by = nullptr);

  // A pool is an allocation of which only blocks may be used (annulus/simulator.h). set_pool()
  // returns false if no live allocation with this start and size exists, or, with `on` false, no
  // pool whose blocks are all removed. add_block() returns false if no pool holds all of the bytes,
  // or if another block has some of them. remove_block() returns false if `pointer` is not the
  // start of a block.
  bool set_pool(std::uint64_t pointer, std::uint64_t bytes, bool on);
  bool add_block(std::uint64_t pointer, std::uint64_t bytes);
  bool remove_block(std::uint64_t pointer);

  // The operation that freed the last allocation which held the address. Null if there is none, or
  // if it is forgotten.
  std::shared_ptr<const Operation> freed_by(std::uint64_t address) const;

  // The live allocation that holds [address, address + bytes), or one with end == 0.
  Allocation find(std::uint64_t address, std::uint64_t bytes) const;

  // The record of accesses to the live allocation that begins at the address. The first call makes
  // the record.
  std::shared_ptr<AccessRecord> record(std::uint64_t begin, Detector& detector) const;
  // The same record, or null if record() was not called before.
  std::shared_ptr<AccessRecord> made_record(std::uint64_t begin) const;

  // Accesses of the host. If any byte is in no live allocation, nothing is copied and the result is
  // false. The host may read bytes that were never written, because it may copy padding.
  bool write(std::uint64_t to, const void* from, std::uint64_t bytes);
  // Marks bytes of an allocation that was not used yet as written. Their value is zero already, so
  // they take no memory.
  void zero_new(std::uint64_t begin, std::uint64_t bytes);
  bool read(void* to, std::uint64_t from, std::uint64_t bytes) const;
  // Copies from this memory, or from the memory of another device, together with the shadow bits.
  bool copy(std::uint64_t to, const GlobalMemory& source, std::uint64_t from, std::uint64_t bytes);
  bool fill(std::uint64_t to, std::uint32_t pattern, int pattern_bytes, std::uint64_t count);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // A number that rises with every allocate() and release(). A holder of an Allocation compares the
  // number to see whether the Allocation is still valid.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // The byte with the shadow bit of `address`, which is bit (address & 7). A set bit means written.
  std::uint8_t* shadow(std::uint64_t address) const { return shadow_ + ((address - base_) >> 3); }
  bool contains(std::uint64_t address) const { return address - base_ < reserved_; }
  Kind kind() const { return kind_; }

 private:
  std::uint64_t alignment(std::uint64_t bytes) const;  // the alignment of an allocation's first
                                                       // byte
  std::uint64_t span(std::uint64_t bytes) const;       // the addresses that an allocation takes,
                                                       // including its gap

  std::uint64_t capacity_;
  const Kind kind_;
  const bool adopted_ = false;  // the program owns the bytes
  std::uint64_t reserved_;
  std::uint64_t base_;
  std::uint8_t* shadow_;
  // The addresses that were never used. Small allocations take the first of them and large
  // allocations the last, so that neither kind leaves holes for the other's alignment.
  std::uint64_t next_;
  std::uint64_t end_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> generation_{1};
  mutable std::mutex mutex_;
  struct Live {
    std::uint64_t end = 0;
    mutable std::shared_ptr<AccessRecord> record;
  };
  struct Freed {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::shared_ptr<const Operation> by;
  };
  static constexpr std::size_t kMaxFreed = 256;

  // true if there is no live allocation and no block
  bool none_in(std::uint64_t begin, std::uint64_t end) const;
  void forget(std::uint64_t begin, std::uint64_t end);  // drops the contents and the shadow bits

  std::map<std::uint64_t, Live> live_;  // by their first byte; includes the blocks of pools
  // Pools by their first byte, with their end. A block may be a pool itself, and both may begin at
  // the same address. Then the inner one, whose end is not higher, was added later.
  std::multimap<std::uint64_t, std::uint64_t> pools_;
  std::deque<Freed> freed_;                               // freed by operations, the latest last
  std::multimap<std::uint64_t, std::uint64_t> released_;  // size with its gap -> begin
};

// The memory of another device, as a kernel sees it.
struct PeerMemory {
  const GlobalMemory* memory = nullptr;
  int ordinal = 0;       // ordinal of the device
  bool enabled = false;  // the kernel's context may access it
  // If `enabled` is false: the allocations that the kernel's device may access nevertheless. They
  // are given by their first bytes, in ascending order.
  std::vector<std::uint64_t> granted;

  bool allows(const Allocation& allocation) const {
    return enabled || std::binary_search(granted.begin(), granted.end(), allocation.begin);
  }
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_MEMORY_H_
