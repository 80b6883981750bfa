#ifndef ANNULUS_TESTS_FUZZ_C_CALLS_SETTING_H_
#define ANNULUS_TESTS_FUZZ_C_CALLS_SETTING_H_

// The devices, memory and files of all inputs of the fuzz target c_calls.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "annulus/c.h"

namespace annulus::fuzz {

constexpr const char* kConfig = "mma m64 n64 w4 s2";
// Lengths and head dims of planned problems are at most this, so 16 KiB hold any operand.
constexpr std::int64_t kSide = 64;

// The caller's device memory, which can run out.
struct Allocator {
  int (*allocate)(unsigned long long* address, std::size_t bytes) = nullptr;  // cuMemAlloc_v2
  int (*release)(unsigned long long address) = nullptr;                       // cuMemFree_v2
  std::int64_t left = INT64_MAX;  // allocations until it fails
  bool by_null = false;           // fails by a null address; otherwise by its return value

  static int take(void* user, std::size_t bytes, std::size_t alignment, void** address);
  static void give(void* user, void* address, std::size_t bytes);
};

// The caller's thread for tasks of the library. It keeps the tasks until an input runs or drops
// them.
class TaskQueue {
 public:
  // An annulus_execute_callback; `user` is the queue.
  static int keep(void* user, annulus_task* task);
  // Returns the kept tasks, which then belong to the caller.
  std::vector<annulus_task*> take();
  // Sets whether keep() refuses tasks from now on.
  void refuse(bool refuses);

 private:
  std::mutex mutex_;  // tasks come from threads of the library too
  std::vector<annulus_task*> kept_;
  bool refuses_ = false;
};

// Two devices, memory for operands, and a folder. The second device uses the caller's allocator,
// log, thread for tasks and file of shapes.
struct Setting {
  annulus_device* device = nullptr;
  annulus_device* limited = nullptr;
  Allocator allocator;
  TaskQueue tasks;
  void* memory[13] = {};  // zeros
  std::string folder;
  static constexpr std::size_t kBytes = std::size_t{1} << 18;  // size of each memory

  Setting();
  ~Setting();
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
};

// The first call makes it.
Setting& setting();

}  // namespace annulus::fuzz

#endif  // ANNULUS_TESTS_FUZZ_C_CALLS_SETTING_H_
