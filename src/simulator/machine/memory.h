#ifndef ANNULUS_SIMULATOR_MACHINE_MEMORY_H_
#define ANNULUS_SIMULATOR_MACHINE_MEMORY_H_

// Global memory of one simulated device: one reserved range of addresses, so that a device pointer
// is a host pointer; allocations with unmapped gaps between them; and one shadow bit per byte that
// says whether anything wrote it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace annulus::simulator {

class AccessRecord;
class Detector;
class GlobalMemory;
struct Operation;

struct Allocation {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // one past the last byte
  const GlobalMemory* memory = nullptr;
};

class GlobalMemory {
 public:
  // Reserves addresses, not memory: `bytes` is the capacity that the device reports.
  explicit GlobalMemory(std::uint64_t bytes);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  // 256-byte aligned; 0 where the capacity is used up. Contents are undefined and marked so.
  std::uint64_t allocate(std::uint64_t bytes);
  // False when `pointer` is not the start of a live allocation. `by` is remembered for a while.
  bool release(std::uint64_t pointer, std::shared_ptr<const Operation> by = nullptr);
  // Who freed the allocation that held the address last; null: nobody, or not an operation.
  std::shared_ptr<const Operation> freed_by(std::uint64_t address) const;

  // The live allocation that holds [address, address + bytes), or one with end == 0.
  Allocation find(std::uint64_t address, std::uint64_t bytes) const;

  // Who touched the live allocation that begins there; the first call makes the record.
  std::shared_ptr<AccessRecord> record(std::uint64_t begin, Detector& detector) const;
  // The same, or null where nobody has called record().
  std::shared_ptr<AccessRecord> made_record(std::uint64_t begin) const;

  // Host access to live bytes; false (and nothing copied) when any byte is outside. Reading bytes
  // that nothing wrote is allowed: the host may copy padding.
  bool write(std::uint64_t to, const void* from, std::uint64_t bytes);
  bool read(void* to, std::uint64_t from, std::uint64_t bytes) const;
  // From this memory or another device's; the shadow travels along.
  bool copy(std::uint64_t to, const GlobalMemory& source, std::uint64_t from, std::uint64_t bytes);
  bool fill(std::uint64_t to, std::uint32_t pattern, int pattern_bytes, std::uint64_t count);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // Rises with every allocate and release; whoever keeps an Allocation compares it.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // The shadow bit of `address`: bit (address & 7) of shadow(address)[0]. Set bits mean written.
  std::uint8_t* shadow(std::uint64_t address) const { return shadow_ + ((address - base_) >> 3); }
  bool contains(std::uint64_t address) const { return address - base_ < reserved_; }

 private:
  std::uint64_t capacity_;
  std::uint64_t reserved_;
  std::uint64_t base_;
  std::uint8_t* shadow_;
  std::uint64_t next_;  // never-used addresses start here
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
  std::map<std::uint64_t, Live> live_;                    // by begin
  std::deque<Freed> freed_;                               // by operations, the latest last
  std::multimap<std::uint64_t, std::uint64_t> released_;  // size -> begin
};

// The memory of another device, as a kernel sees it.
struct PeerMemory {
  const GlobalMemory* memory = nullptr;
  int ordinal = 0;       // of the device
  bool enabled = false;  // the kernel's context may access it
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_MEMORY_H_
