#ifndef ANNULUS_TESTS_FUZZ_C_CALLS_SETTING_H_
#define ANNULUS_TESTS_FUZZ_C_CALLS_SETTING_H_

// The devices, memory and files of all inputs of the fuzz target c_calls.

#include <cstddef>
#include <cstdint>
#include <string>

#include "annulus/c.h"

namespace annulus::fuzz {

constexpr const char* kConfig = "mma m64 n64 w4 s2";
// Lengths and head dim of what is planned are at most this, so 16 KiB hold any operand.
constexpr std::int64_t kSide = 64;

// The caller's device memory. The memory can run out.
struct Allocator {
  int (*allocate)(unsigned long long* address, std::size_t bytes) = nullptr;  // cuMemAlloc_v2
  int (*release)(unsigned long long address) = nullptr;                       // cuMemFree_v2
  std::int64_t left = INT64_MAX;  // allocations until it refuses
  bool by_null = false;           // refuses by a null address, else by its return value

  static int take(void* user, std::size_t bytes, std::size_t alignment, void** address);
  static void give(void* user, void* address, std::size_t bytes);
};

// Two devices, memory for operands, and a folder. The second device has the caller's allocator
// and log.
struct Setting {
  annulus_device* device = nullptr;
  annulus_device* limited = nullptr;
  Allocator allocator;
  void* memory[13] = {};  // zeros
  std::string folder;
  static constexpr std::size_t kBytes = std::size_t{1} << 18;  // of each memory

  Setting();
  ~Setting();
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
};

// Made by the first call.
Setting& setting();

}  // namespace annulus::fuzz

#endif  // ANNULUS_TESTS_FUZZ_C_CALLS_SETTING_H_
