#include "faults/failing_malloc.h"

#include <link.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace annulus::test {
namespace {

// Nothing here may allocate while an allocation is examined, so all tables have fixed sizes.
enum class Owner : std::uint8_t { kRuntime, kOurs, kOthers };
struct Range {
  std::uintptr_t begin, end, base;
  Owner owner;
  char name[40];
};
constexpr std::size_t kMaxRanges = 512;
constexpr std::size_t kFrames = 8;
constexpr std::size_t kWalked = 40;
constexpr std::size_t kTable = 1 << 16;

std::array<Range, kMaxRanges> ranges;
std::atomic<std::size_t> range_count{0};
std::array<CountedStack, kTable> table;
std::atomic_flag busy = ATOMIC_FLAG_INIT;
enum class Mode { kOff, kCounting, kFailing };
std::atomic<Mode> mode{Mode::kOff};
AllocationPoint wanted;
std::uint32_t visits = 0;
bool reached = false;
std::array<std::uintptr_t, kFrames> failed_frames;
thread_local bool inside = false;

Owner owner_of(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  if (std::strncmp(name, "libannulus", 10) == 0) return Owner::kOurs;
  for (const char* runtime : {"libc.", "libstdc++", "libgcc", "libm.", "ld-linux"}) {
    if (std::strncmp(name, runtime, std::strlen(runtime)) == 0) return Owner::kRuntime;
  }
  return Owner::kOthers;
}

int add_range(dl_phdr_info* info, std::size_t, void* count) {
  auto* const at = static_cast<std::size_t*>(count);
  for (int i = 0; i < info->dlpi_phnum && *at < kMaxRanges; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    Range& range = ranges[(*at)++];
    range.base = info->dlpi_addr;
    range.begin = info->dlpi_addr + part.p_vaddr;
    range.end = range.begin + part.p_memsz;
    range.owner = owner_of(info->dlpi_name);
    const char* slash = std::strrchr(info->dlpi_name, '/');
    std::snprintf(range.name, sizeof(range.name), "%s", slash ? slash + 1 : info->dlpi_name);
  }
  return 0;
}

// Requires: `busy` is held.
const Range* range_of(std::uintptr_t address) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (std::size_t i = 0; i < range_count; ++i) {
      if (address >= ranges[i].begin && address < ranges[i].end) return &ranges[i];
    }
    std::size_t count = 0;  // a library was loaded since the last search
    dl_iterate_phdr(add_range, &count);
    range_count = count;
  }
  return nullptr;
}

struct Walk {
  std::array<std::uintptr_t, kWalked> frames;
  std::size_t count = 0;
};
_Unwind_Reason_Code step(_Unwind_Context* context, void* into) {
  auto* const walk = static_cast<Walk*>(into);
  if (walk->count == kWalked) return _URC_END_OF_STACK;
  walk->frames[walk->count++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

// The hash of the stack, or 0 if the allocation is not the library's. The first kOwnFrames frames
// belong to this file and are skipped.
std::uint64_t hash_of(const Walk& walk, std::array<std::uintptr_t, kFrames>* frames) {
  constexpr std::size_t kOwnFrames = 3;
  std::uint64_t hash = 0xcbf29ce484222325u;
  std::size_t kept = 0;
  for (std::size_t i = kOwnFrames; i < walk.count && kept < kFrames; ++i) {
    const Range* range = range_of(walk.frames[i]);
    if (range == nullptr) break;
    if (range->owner == Owner::kRuntime) continue;
    if (range->owner == Owner::kOthers) {
      if (kept == 0) return 0;
      break;
    }
    (*frames)[kept++] = walk.frames[i];
    hash = (hash ^ (walk.frames[i] - range->base)) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return kept == 0 ? 0 : hash | 1;
}

bool refuse(const Walk& walk) {
  while (busy.test_and_set(std::memory_order_acquire)) {
  }
  bool refused = false;
  std::array<std::uintptr_t, kFrames> frames{};
  const std::uint64_t hash = hash_of(walk, &frames);
  if (hash != 0 && mode == Mode::kCounting) {
    std::size_t at = hash % kTable;
    while (table[at].stack != 0 && table[at].stack != hash) at = (at + 1) % kTable;
    table[at].stack = hash;
    ++table[at].visits;
  } else if (hash != 0 && mode == Mode::kFailing) {
    if (hash == wanted.stack && ++visits == wanted.visit) {
      refused = reached = true;
      failed_frames = frames;
    }
    refused = refused || (reached && wanted.for_good);
  }
  busy.clear(std::memory_order_release);
  return refused;
}

}  // namespace

// Only the functions below call this function, so this file always has three frames on the stack.
__attribute__((noinline)) bool allocation_is_refused() {
  if (mode.load(std::memory_order_relaxed) == Mode::kOff || inside) return false;
  inside = true;
  Walk walk;
  _Unwind_Backtrace(step, &walk);
  const bool refused = refuse(walk);
  inside = false;
  if (refused) errno = ENOMEM;
  return refused;
}

void begin_counting() {
  table.fill({});
  mode = Mode::kCounting;
}

std::vector<CountedStack> end_counting() {
  mode = Mode::kOff;
  std::vector<CountedStack> stacks;
  for (const CountedStack& each : table) {
    if (each.stack != 0) stacks.push_back(each);
  }
  return stacks;
}

void begin_failing(const AllocationPoint& point) {
  wanted = point;
  visits = 0;
  reached = false;
  mode = Mode::kFailing;
}

bool end_failing() {
  mode = Mode::kOff;
  return reached;
}

std::string last_failed_stack() {
  std::string text;
  for (const std::uintptr_t frame : failed_frames) {
    const Range* range = frame == 0 ? nullptr : range_of(frame);
    if (range == nullptr) break;
    char part[80];
    // The call instruction is before the return address.
    std::snprintf(part, sizeof(part), " %s+%#zx", range->name,
                  static_cast<std::size_t>(frame - range->base - 1));
    text += part;
  }
  return text;
}

}  // namespace annulus::test

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
  return annulus::test::allocation_is_refused() ? nullptr : __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return annulus::test::allocation_is_refused() ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  return annulus::test::allocation_is_refused() ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return annulus::test::allocation_is_refused() ? nullptr : __libc_memalign(alignment, bytes);
}
}
