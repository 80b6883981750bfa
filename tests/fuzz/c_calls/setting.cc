#include "fuzz/c_calls/setting.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "annulus/c.h"
#include "fuzz/fuzz.h"

namespace annulus::fuzz {

int Allocator::take(void* user, std::size_t bytes, std::size_t, void** address) {
  auto* const self = static_cast<Allocator*>(user);
  if (self->left <= 0) {
    *address = nullptr;
    return self->by_null ? 0 : 7;
  }
  --self->left;
  unsigned long long made = 0;
  const int code = self->allocate(&made, bytes);
  *address = reinterpret_cast<void*>(made);
  return code;
}

void Allocator::give(void* user, void* address, std::size_t) {
  static_cast<Allocator*>(user)->release(reinterpret_cast<unsigned long long>(address));
}

int TaskQueue::keep(void* user, annulus_task* task) {
  auto* const queue = static_cast<TaskQueue*>(user);
  const std::lock_guard lock(queue->mutex_);
  if (queue->refuses_) return 1;
  queue->kept_.push_back(task);
  return 0;
}

std::vector<annulus_task*> TaskQueue::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(kept_, {});
}

void TaskQueue::refuse(bool refuses) {
  const std::lock_guard lock(mutex_);
  refuses_ = refuses;
}

Setting::Setting() {
  std::string made = (std::filesystem::temp_directory_path() / "annulus_c_calls_XXXXXX").string();
  if (mkdtemp(made.data()) == nullptr) wrong("no folder {}", made);
  folder = made;
  std::ofstream(folder + "/damaged.tuned") << "annulus-tuned 4 0\n{}";
  std::ofstream(folder + "/damaged.pack") << "annulus-tuned-pack 4 0\n{}";
  std::filesystem::create_directory(folder + "/kernels");
  annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
  options.name = "sim:sm_80";
  options.tuned_path = "";
  options.simulation_threads = 1;
  options.check_operands = 1;
  if (annulus_device_open(&options, &device) != ANNULUS_OK) {
    wrong("no simulated device: {}", annulus_last_error());
  }
  void* entries[2] = {};
  annulus_device_driver_entry(device, "cuMemAlloc_v2", &entries[0]);
  annulus_device_driver_entry(device, "cuMemFree_v2", &entries[1]);
  std::memcpy(&allocator.allocate, &entries[0], sizeof entries[0]);
  std::memcpy(&allocator.release, &entries[1], sizeof entries[1]);
  options.allocate = Allocator::take;
  options.release = Allocator::give;
  options.allocator_user = &allocator;
  options.log = [](void*, std::int32_t level, const char* text) {
    if (level < ANNULUS_LOG_ERROR || level > ANNULUS_LOG_DEBUG) wrong("a note of level {}", level);
    if (text == nullptr || text[0] == '\0') wrong("a note without a text");
  };
  options.log_level = ANNULUS_LOG_DEBUG;
  options.time_every_nth_run = 1;
  options.execute = TaskQueue::keep;
  options.execute_user = &tasks;
  const std::string shapes = folder + "/log.shapes";
  options.shape_log = shapes.c_str();
  if (annulus_device_open(&options, &limited) != ANNULUS_OK) {
    wrong("no second device: {}", annulus_last_error());
  }
  const std::vector<std::byte> zeros(kBytes);
  for (void*& place : memory) {
    annulus_device_allocate(device, kBytes, &place);
    annulus_device_copy_to_device(device, place, zeros.data(), kBytes);
  }
}

Setting::~Setting() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

Setting& setting() {
  static Setting setting;
  return setting;
}

}  // namespace annulus::fuzz
