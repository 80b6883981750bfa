#include "simulator/machine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/math.h"
#include "simulator/check/access_record.h"

namespace annulus::simulator {
namespace {

// The gap between two allocations has at least this many addresses, so that an access a little past
// the end is found.
constexpr std::uint64_t kGap = 512;
// Allocations of a device begin at multiples of 512, or of 2 MiB if they have 1 MiB or more, like
// the allocations of NVIDIA's drivers. Blocks of pools begin at multiples of 256.
constexpr std::uint64_t kAlignment = 512;
constexpr std::uint64_t kBlockAlignment = 256;
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;
constexpr std::uint64_t kLargeAlignment = std::uint64_t{2} << 20;
constexpr std::uint64_t kPage = 4096;

void* reserve(std::uint64_t bytes) {
  void* range = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    base::fail(ErrorCode::kOutOfMemory,
               "cannot reserve {} bytes of addresses for a simulated device; raise ulimit -v",
               bytes);
  }
  return range;
}

// Returns the pages of the range to the system. Afterwards the range reads as zero.
void discard(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t first = base::round_up(begin, kPage);
  const std::uint64_t last = end / kPage * kPage;
  if (first >= last) {
    std::memset(reinterpret_cast<void*>(begin), 0, end - begin);
    return;
  }
  std::memset(reinterpret_cast<void*>(begin), 0, first - begin);
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  std::memset(reinterpret_cast<void*>(last), 0, end - last);
}

void mark_written(const GlobalMemory& memory, std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t end = address + bytes;
  for (; address < end && (address & 7) != 0; ++address) {
    *memory.shadow(address) |= static_cast<std::uint8_t>(1u << (address & 7));
  }
  if (address >= end) return;
  for (; end > address && (end & 7) != 0; --end) {
    *memory.shadow(end - 1) |= static_cast<std::uint8_t>(1u << ((end - 1) & 7));
  }
  std::memset(memory.shadow(address), 0xff, (end - address) / 8);
}

}  // namespace

GlobalMemory::GlobalMemory(std::uint64_t bytes, Kind kind) : capacity_(bytes), kind_(kind) {
  // Twice the capacity is reserved, because gaps and alignment take addresses too. Released
  // addresses are used again only when all others are used up, so that a use after free is found.
  reserved_ = base::round_up(2 * bytes, kPage * 8) + 2 * kLargeAlignment;
  base_ = reinterpret_cast<std::uint64_t>(reserve(reserved_));
  shadow_ = static_cast<std::uint8_t*>(reserve(reserved_ / 8));
  next_ = base_ + kPage;
  end_ = (base_ + reserved_) / kLargeAlignment * kLargeAlignment;
}

GlobalMemory::GlobalMemory(void* begin, std::uint64_t bytes)
    : capacity_(bytes), kind_(Kind::kHost), adopted_(true) {
  const auto first = reinterpret_cast<std::uint64_t>(begin);
  base_ = first / 8 * 8;
  reserved_ = base::round_up(first + bytes - base_, kPage * 8);
  shadow_ = static_cast<std::uint8_t*>(reserve(reserved_ / 8));
  next_ = end_ = base_ + reserved_;  // nothing else is allocated here
  live_.emplace(first, Live{first + bytes, nullptr});
  used_ = bytes;
  mark_written(*this, first, bytes);
}

GlobalMemory::~GlobalMemory() {
  if (!adopted_) munmap(reinterpret_cast<void*>(base_), reserved_);
  munmap(shadow_, reserved_ / 8);
}

std::uint64_t GlobalMemory::alignment(std::uint64_t bytes) const {
  return kind_ == Kind::kHost ? kPage : bytes < kLarge ? kAlignment : kLargeAlignment;
}

std::uint64_t GlobalMemory::span(std::uint64_t bytes) const {
  return base::round_up(bytes + kGap, alignment(bytes));
}

std::uint64_t GlobalMemory::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > capacity_) return 0;
  const std::uint64_t span = this->span(bytes);
  const bool large = alignment(bytes) == kLargeAlignment;
  std::lock_guard lock(mutex_);
  if (bytes > capacity_ - used()) return 0;
  std::uint64_t begin = 0;
  if (span <= end_ - next_) {
    begin = large ? end_ -= span : std::exchange(next_, next_ + span);
  } else {
    auto found = released_.lower_bound(span);
    while (found != released_.end() && found->second % alignment(bytes) != 0) ++found;
    if (found == released_.end()) return 0;
    begin = found->second;
    if (found->first > span) released_.emplace(found->first - span, begin + span);
    released_.erase(found);
  }
  try {
    live_.emplace(begin, Live{begin + bytes, nullptr});
  } catch (...) {
    if (begin + span == next_) next_ = begin;
    if (begin == end_) end_ += span;  // other addresses are not used again
    throw;
  }
  used_ += bytes;
  if (kind_ == Kind::kHost) mark_written(*this, begin, bytes);
  generation_.fetch_add(1, std::memory_order_release);
  return begin;
}

bool GlobalMemory::release(std::uint64_t pointer, std::shared_ptr<const Operation> by) {
  std::lock_guard lock(mutex_);
  // Nothing below may fail for lack of memory, because a caller that frees memory cannot do
  // anything else.
  std::uint64_t own_end = 0;
  if (const auto pool = pools_.find(pointer); pool != pools_.end()) {
    // A pool that is freed as a whole frees its blocks too.
    own_end = pool->second;
    live_.erase(live_.lower_bound(pointer), live_.lower_bound(own_end));
    pools_.erase(pools_.lower_bound(pointer), pools_.lower_bound(own_end));
  } else {
    const auto found = live_.find(pointer);
    if (found == live_.end()) return false;
    own_end = found->second.end;
    live_.erase(found);
  }
  const std::uint64_t bytes = own_end - pointer;
  const std::uint64_t end = adopted_ ? own_end : base::round_up(own_end, kAlignment);
  used_ -= bytes;
  try {
    if (by != nullptr) freed_.push_back({pointer, own_end, std::move(by)});
    if (freed_.size() > kMaxFreed) freed_.pop_front();
  } catch (const std::bad_alloc&) {
    // A use after this free is still found, but its message cannot name the operation that freed.
  }
  forget(pointer, end);
  try {
    if (!adopted_) released_.emplace(span(bytes), pointer);
  } catch (const std::bad_alloc&) {
    // The addresses are not used again; there are many more.
  }
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

void GlobalMemory::forget(std::uint64_t begin, std::uint64_t end) {
  if (!adopted_) discard(begin, end);
  discard(reinterpret_cast<std::uint64_t>(shadow(begin)),
          reinterpret_cast<std::uint64_t>(shadow(end)));
}

bool GlobalMemory::none_in(std::uint64_t begin, std::uint64_t end) const {
  const auto after = live_.lower_bound(end);
  return after == live_.begin() || std::prev(after)->second.end <= begin;
}

bool GlobalMemory::set_pool(std::uint64_t pointer, std::uint64_t bytes, bool on) {
  std::lock_guard lock(mutex_);
  const std::uint64_t end = pointer + bytes;
  if (on) {
    const auto found = live_.find(pointer);
    if (found == live_.end() || found->second.end != end) return false;
    pools_.emplace(pointer, end);
    live_.erase(found);
  } else {
    // If two pools begin at one address, the inner one was added last and comes last.
    auto found = pools_.upper_bound(pointer);
    if (found == pools_.begin() || (--found)->first != pointer || found->second != end) {
      return false;
    }
    if (!none_in(pointer, end)) return false;
    live_.emplace(pointer, Live{end, nullptr});
    pools_.erase(found);
  }
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

bool GlobalMemory::add_block(std::uint64_t pointer, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const std::uint64_t end = pointer + bytes;
  const auto after = pools_.upper_bound(pointer);
  const bool inside = after != pools_.begin() && pointer < std::prev(after)->second &&
                      bytes <= std::prev(after)->second - pointer;
  if (bytes == 0 || pointer % kBlockAlignment != 0 || !inside || !none_in(pointer, end))
    return false;
  live_.emplace(pointer, Live{end, nullptr});
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

bool GlobalMemory::remove_block(std::uint64_t pointer) {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(pointer);
  const auto after = pools_.upper_bound(pointer);
  const bool inside = after != pools_.begin() && pointer < std::prev(after)->second;
  if (found == live_.end() || !inside) return false;
  const std::uint64_t end = base::round_up(found->second.end, kBlockAlignment);
  live_.erase(found);
  forget(pointer, end);
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

std::shared_ptr<const Operation> GlobalMemory::freed_by(std::uint64_t address) const {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(freed_.rbegin(), freed_.rend(), [&](const Freed& freed) {
    return address >= freed.begin && address < freed.end;
  });
  return found == freed_.rend() ? nullptr : found->by;
}

std::shared_ptr<AccessRecord> GlobalMemory::record(std::uint64_t begin, Detector& detector) const {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(begin);
  if (found == live_.end()) return nullptr;
  auto& record = found->second.record;
  if (record == nullptr) {
    record = std::make_shared<AccessRecord>(detector, begin, found->second.end);
  }
  return record;
}

std::shared_ptr<AccessRecord> GlobalMemory::made_record(std::uint64_t begin) const {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(begin);
  return found == live_.end() ? nullptr : found->second.record;
}

Allocation GlobalMemory::find(std::uint64_t address, std::uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  auto above = live_.upper_bound(address);
  if (above == live_.begin()) return {};
  --above;
  const Allocation found = {above->first, above->second.end, this};
  return found.holds(address, bytes) ? found : Allocation{};
}

bool GlobalMemory::write(std::uint64_t to, const void* from, std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (find(to, bytes).end == 0) return false;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  mark_written(*this, to, bytes);
  return true;
}

void GlobalMemory::zero_new(std::uint64_t begin, std::uint64_t bytes) {
  mark_written(*this, begin, bytes);
}

bool GlobalMemory::read(void* to, std::uint64_t from, std::uint64_t bytes) const {
  if (bytes == 0) return true;
  if (find(from, bytes).end == 0) return false;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return true;
}

bool GlobalMemory::copy(std::uint64_t to, const GlobalMemory& source, std::uint64_t from,
                        std::uint64_t bytes) {
  if (bytes == 0) return true;
  if (find(to, bytes).end == 0 || source.find(from, bytes).end == 0) return false;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  if (kind_ == Kind::kHost) return true;  // all of it counts as written
  if (((to | from | bytes) & 7) == 0) {
    std::memmove(shadow(to), source.shadow(from), bytes / 8);
    return true;
  }
  std::vector<bool> written(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) {
    written[i] = (*source.shadow(from + i) >> ((from + i) & 7)) & 1;
  }
  for (std::uint64_t i = 0; i < bytes; ++i) {
    const auto bit = static_cast<std::uint8_t>(1u << ((to + i) & 7));
    std::uint8_t* byte = shadow(to + i);
    *byte = static_cast<std::uint8_t>(written[i] ? *byte | bit : *byte & ~bit);
  }
  return true;
}

bool GlobalMemory::fill(std::uint64_t to, std::uint32_t pattern, int pattern_bytes,
                        std::uint64_t count) {
  const std::uint64_t bytes = count * static_cast<std::uint64_t>(pattern_bytes);
  if (bytes == 0) return true;
  if (find(to, bytes).end == 0) return false;
  if (pattern_bytes == 1) {
    std::memset(reinterpret_cast<void*>(to), static_cast<int>(pattern & 0xff), bytes);
  } else {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(reinterpret_cast<void*>(to + i * static_cast<std::uint64_t>(pattern_bytes)),
                  &pattern, static_cast<std::size_t>(pattern_bytes));
    }
  }
  mark_written(*this, to, bytes);
  return true;
}

}  // namespace annulus::simulator
