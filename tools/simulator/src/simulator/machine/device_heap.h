#ifndef ANNULUS_SIMULATOR_MACHINE_DEVICE_HEAP_H_
#define ANNULUS_SIMULATOR_MACHINE_DEVICE_HEAP_H_

// The memory that kernels allocate with malloc and new (CUDA C++ Programming Guide, "Dynamic Global
// Memory Allocation and Operations"). It stays allocated until a kernel frees it or the context
// ends. The host cannot use it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "simulator/machine/memory.h"

namespace annulus::simulator {

class DeviceHeap {
 public:
  static constexpr std::size_t kDefaultBytes = std::size_t{8} << 20;  // the same default as CUDA's

  explicit DeviceHeap(GlobalMemory& memory) : memory_(memory) {}
  ~DeviceHeap() {
    end_launch();
    for (const auto& [address, bytes] : live_) memory_.release(address);
  }
  DeviceHeap(const DeviceHeap&) = delete;

  void set_limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
  }
  // Returns 0 if there is no room.
  std::uint64_t allocate(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes == 0 || used_ > limit_ || bytes > limit_ - used_) return 0;
    const std::uint64_t address = memory_.allocate(bytes);
    if (address == 0) return 0;
    live_.emplace(address, bytes);
    used_ += bytes;
    return address;
  }
  // Returns false if no allocation begins at the address. The memory becomes free at the end of the
  // launch, so that no CTA finds another allocation at an address that it has looked up.
  bool release(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end()) return false;
    freed_.push_back(address);
    used_ -= found->second;
    live_.erase(found);
    return true;
  }
  void end_launch() {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t address : freed_) memory_.release(address);
    freed_.clear();
  }

 private:
  GlobalMemory& memory_;
  std::mutex mutex_;  // guards the members below
  std::size_t limit_ = kDefaultBytes;
  std::size_t used_ = 0;
  std::map<std::uint64_t, std::uint64_t> live_;  // address -> bytes
  std::vector<std::uint64_t> freed_;             // freed by the launch that runs now
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_DEVICE_HEAP_H_
