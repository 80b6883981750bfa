#include "device/arena.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <vector>

#include "base/fail.h"
#include "base/math.h"
#include "device/capture_mode.h"
#include "device/context.h"

namespace annulus::device {
namespace {

constexpr std::size_t kAlignment = 256;  // the alignment that cuMemAlloc guarantees
// Blocks of up to kSmallBytes share slabs of kSmallSlab, and larger ones share slabs of kLargeSlab.
// A block of at least half of kLargeSlab gets its own slab. cuMemAlloc takes 2 MiB for any smaller
// size.
constexpr std::size_t kSmallBytes = std::size_t{1} << 20;
constexpr std::size_t kSmallSlab = std::size_t{2} << 20;
constexpr std::size_t kLargeSlab = std::size_t{16} << 20;
// Limits of the retired bytes: before an event is recorded, and before the arena waits for the
// device if the driver has no such event.
constexpr std::size_t kMaxUnmarked = std::size_t{1} << 20;
constexpr std::size_t kMaxWaiting = std::size_t{32} << 20;
// Empty slabs up to this size in total are kept, because giving them back may make the driver wait.
constexpr std::size_t kKeptEmpty = std::size_t{64} << 20;
// The gap between the blocks of a simulated device, so that accesses just past the end are
// detected.
constexpr std::size_t kGuard = 512;

std::size_t slab_bytes_for(std::size_t bytes) {
  if (bytes <= kSmallBytes) return kSmallSlab;
  if (bytes < kLargeSlab / 2) return kLargeSlab;
  return base::round_up(bytes, kSmallSlab);
}

// Creates a block that is in no map yet, with its node for the set of free blocks.
template <typename Blocks, typename Block>
typename Blocks::node_type make_block(abi::CUdeviceptr address, std::size_t span) {
  Block block;
  block.span = span;
  std::set<std::pair<std::size_t, abi::CUdeviceptr>> node = {{span, address}};
  block.node = node.extract(node.begin());
  Blocks one;
  one.emplace(address, std::move(block));
  return one.extract(one.begin());
}

}  // namespace

const char* to_string(MemoryUse use) {
  constexpr const char* kNames[kMemoryUses] = {"lists", "tables", "selection", "caller", "scratch"};
  return kNames[static_cast<int>(use)];
}

Arena::Arena(const Context& context, AllocatorCallbacks allocator, ArenaLimits limits)
    : context_(context),
      source_(context, std::move(allocator)),
      limits_(limits),
      guard_(context.table().simulator_add_block != nullptr ? kGuard : 0) {}

Arena::~Arena() {
  const QuietScope scope(context_);
  // No work uses free blocks. If the context is lost, there is no work to wait for, and an
  // allocator still gets its memory back.
  if (scope.active() && counted_.waiting_bytes > 0) context_.table().ctx_synchronize();
  if (scope.active() && marker_ != nullptr) context_.table().event_destroy(marker_);
  free_all(State::kRetired);
  free_all(State::kMarked);
  for (const auto& [address, slab] : slabs_) {
    if (slab.pooled) context_.table().simulator_set_pool(address, slab.bytes, 0);
    source_.give_back(address, slab.bytes, scope.active());
  }
}

abi::CUdeviceptr Arena::allocate(std::size_t bytes, MemoryUse use) {
  Lock lock(mutex_);
  if (const auto block = take(bytes, use)) return *block;
  poll(lock);
  if (const auto block = take(bytes, use)) return *block;
  const std::size_t whole = base::round_up(bytes, kAlignment);
  const std::size_t slab = std::max(slab_bytes_for(bytes), whole);
  if (const auto block = take_new(lock, slab, bytes, use)) return *block;
  // The caller's memory pool may be too small for a slab but large enough for the block.
  if (slab > whole) {
    if (const auto block = take_new(lock, whole, bytes, use)) return *block;
  }
  lock.unlock();
  run_trimmers();
  lock.lock();
  wait_for_waiting(lock);
  std::optional<abi::CUdeviceptr> block = take(bytes, use);
  if (!block) {
    give_back(lock, 0);
    block = take_new(lock, whole, bytes, use);
  }
  if (block) {
    context_.tally().add(base::Count::recovered_memory);
    return *block;
  }
  base::fail(ErrorCode::kOutOfMemory, "{}; {}", why_not_, holdings());
}

std::optional<abi::CUdeviceptr> Arena::take(std::size_t bytes, MemoryUse use) {
  const std::size_t whole = base::round_up(bytes, kAlignment);
  Free& free = free_[bytes <= kSmallBytes ? 0 : 1];
  const auto found = free.lower_bound({whole, 0});
  if (found == free.end()) return std::nullopt;
  const auto at = blocks_.find(found->second);
  Block& block = at->second;
  Slab& slab = block.slab->second;
  // All allocations are made first, because nothing may fail after them.
  const std::size_t span = std::min(block.span, whole + guard_);
  Blocks::node_type rest;
  if (block.span > span) rest = make_block<Blocks, Block>(at->first + span, block.span - span);
  if (slab.pooled) {
    abi::check(context_.table(), context_.table().simulator_add_block(at->first, bytes),
               "annulusSimulatorAddBlock");
  }
  block.node = free.extract(found);
  if (rest) {
    rest.mapped().slab = block.slab;
    insert_free(blocks_.insert(std::move(rest)).position);
  }
  block.span = span;
  block.bytes = bytes;
  block.use = use;
  block.state = State::kUsed;
  ++slab.blocks;
  ++counted_.blocks;
  counted_.used_by[static_cast<std::size_t>(use)] += bytes;
  counted_.used_bytes += bytes;
  counted_.peak_used_bytes = std::max(counted_.peak_used_bytes, counted_.used_bytes);
  return at->first;
}

std::optional<abi::CUdeviceptr> Arena::take_new(Lock& lock, std::size_t slab_bytes,
                                                std::size_t bytes, MemoryUse use) {
  // While the lock is released, other threads may take free blocks. They cannot do so between the
  // creation of the slab and take().
  if (!grow(lock, slab_bytes, bytes <= kSmallBytes)) return std::nullopt;
  return take(bytes, use);
}

bool Arena::grow(Lock& lock, std::size_t bytes, bool small) {
  if (limits_.max_bytes > 0 &&
      bytes > limits_.max_bytes - std::min(limits_.max_bytes, counted_.held_bytes)) {
    why_not_ = fmt::format(
        "{} more bytes of device memory are over the limit of DeviceOptions::max_device_bytes, {}; "
        "let it hold more, or make the problem smaller",
        bytes, limits_.max_bytes);
    return false;
  }
  // Allocated before the slab, because nothing may fail after the slab exists.
  Slabs slab;
  slab.emplace(0, Slab{bytes, small, false, 0});
  Blocks::node_type block = make_block<Blocks, Block>(0, bytes);
  // counted before the lock is released, so that two threads cannot exceed the limit together
  counted_.held_bytes += bytes;
  lock.unlock();
  abi::CUdeviceptr address = 0;
  bool pooled = false;
  std::exception_ptr error;
  try {
    address = source_.take(bytes);
    pooled = guard_ > 0 && context_.table().simulator_set_pool(address, bytes, 1) == 0;
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error) {
    counted_.held_bytes -= bytes;
    try {
      std::rethrow_exception(error);
    } catch (const Error& refused) {
      if (refused.code() != ErrorCode::kOutOfMemory) throw;
      why_not_ = refused.what();
    }
    return false;
  }
  counted_.peak_held_bytes = std::max(counted_.peak_held_bytes, counted_.held_bytes);
  ++counted_.slabs;
  ++counted_.slabs_taken;
  Slabs::node_type node = slab.extract(slab.begin());
  node.key() = block.key() = address;
  node.mapped().pooled = pooled;
  block.mapped().slab = slabs_.insert(std::move(node)).position;
  insert_free(blocks_.insert(std::move(block)).position);
  return true;
}

void Arena::retire(abi::CUdeviceptr address) noexcept {
  const Lock lock(mutex_);
  Block& block = blocks_.find(address)->second;
  block.state = State::kRetired;
  --counted_.blocks;
  counted_.used_bytes -= block.bytes;
  counted_.used_by[static_cast<std::size_t>(block.use)] -= block.bytes;
  counted_.waiting_bytes += block.bytes;
  retired_bytes_ += block.bytes;
}

void Arena::insert_free(Blocks::iterator block) noexcept {
  Free::node_type node = std::move(block->second.node);
  node.value() = {block->second.span, block->first};
  free_of(block->second.slab->second).insert(std::move(node));
}

void Arena::free_all(State state) noexcept {
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (block->second.state == state) block = free(block);
  }
}

void Arena::change_all(State from, State to) {
  for (auto& [address, block] : blocks_) {
    if (block.state == from) block.state = to;
  }
}

Arena::Blocks::iterator Arena::free(Blocks::iterator block) noexcept {
  Slab& slab = block->second.slab->second;
  if (block->second.state == State::kRetired) retired_bytes_ -= block->second.bytes;
  if (block->second.state == State::kMarked) marked_bytes_ -= block->second.bytes;
  // A simulated driver reports work that still uses the block. If it could not remove the block, it
  // would refuse a new block at the same address, so this block stays retired.
  if (slab.pooled && context_.table().simulator_remove_block(block->first) != abi::kCudaSuccess) {
    block->second.state = State::kRetired;
    retired_bytes_ += block->second.bytes;
    return block;
  }
  counted_.waiting_bytes -= block->second.bytes;
  --slab.blocks;
  Free& free = free_of(slab);
  const auto is_free_beside = [&](Blocks::iterator other) {
    return other->second.slab == block->second.slab && other->second.state == State::kFree;
  };
  if (const auto next = std::next(block); next != blocks_.end() && is_free_beside(next)) {
    free.erase({next->second.span, next->first});
    block->second.span += next->second.span;
    blocks_.erase(next);
  }
  if (block != blocks_.begin()) {
    if (const auto before = std::prev(block); is_free_beside(before)) {
      before->second.node = free.extract({before->second.span, before->first});
      before->second.span += block->second.span;
      blocks_.erase(block);
      block = before;
    }
  }
  block->second.state = State::kFree;
  insert_free(block);
  return block;
}

abi::CUresult Arena::query_marker() const {
  const RelaxedCapture relaxed(context_.table());
  return context_.table().event_query(marker_);
}

void Arena::poll(Lock& lock) {
  if (busy_) return;
  if (marked_bytes_ > 0) {
    busy_ = true;
    lock.unlock();
    const abi::CUresult code = query_marker();
    lock.lock();
    busy_ = false;
    not_busy_.notify_all();
    // A lost context gives its memory back when it is closed.
    if (code == abi::kCudaSuccess) free_all(State::kMarked);
  }
  if (context_.table().ctx_record_event != nullptr) {
    if (marked_bytes_ == 0 && retired_bytes_ >= kMaxUnmarked) mark(lock);
  } else if (retired_bytes_ >= kMaxWaiting) {
    wait_for_waiting(lock);
  }
  give_back(lock, counted_.held_bytes);
}

void Arena::mark(Lock& lock) {
  change_all(State::kRetired, State::kMarked);
  marked_bytes_ = std::exchange(retired_bytes_, 0);
  busy_ = true;
  lock.unlock();
  const abi::CudaTable& cuda = context_.table();
  abi::CUresult code = abi::kCudaSuccess;
  if (marker_ == nullptr) code = cuda.event_create(&marker_, abi::kEventDisableTiming);
  if (code == abi::kCudaSuccess) code = cuda.ctx_record_event(context_.handle(), marker_);
  lock.lock();
  busy_ = false;
  not_busy_.notify_all();
  if (code == abi::kCudaSuccess) return;
  change_all(State::kMarked, State::kRetired);
  retired_bytes_ += std::exchange(marked_bytes_, 0);
}

void Arena::wait_for_waiting(Lock& lock) {
  if (counted_.waiting_bytes == 0) return;
  lock.unlock();
  try {
    wait_for_all([&] {
      abi::check(context_.table(), context_.table().ctx_synchronize(), "cuCtxSynchronize");
    });
  } catch (const Error&) {  // the blocks stay retired
  }
  lock.lock();
}

// Only the blocks of this call are freed after its wait, because another thread's blocks may have
// been retired after this wait began.
void Arena::wait_for_all(const std::function<void()>& wait) {
  Lock lock(mutex_);
  not_busy_.wait(lock, [&] { return !busy_; });
  std::vector<Blocks::iterator> awaited;
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    State& state = block->second.state;
    if (state == State::kRetired || state == State::kMarked) awaited.push_back(block);
  }
  for (const auto block : awaited) block->second.state = State::kAwaited;
  retired_bytes_ = marked_bytes_ = 0;
  lock.unlock();
  std::exception_ptr error;
  try {
    wait();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  for (const auto block : awaited) {
    if (!error) {
      free(block);
      continue;
    }
    block->second.state = State::kRetired;
    retired_bytes_ += block->second.bytes;
  }
  if (error) std::rethrow_exception(error);
}

std::size_t Arena::trim(std::size_t bytes) {
  run_trimmers();
  Lock lock(mutex_);
  wait_for_waiting(lock);
  return give_back(lock, bytes);
}

// Gives empty slabs back until only `keep_bytes` are held. Empty slabs beyond kKeptEmpty are always
// given back.
std::size_t Arena::give_back(Lock& lock, std::size_t keep_bytes) {
  Slabs given;
  std::size_t bytes = 0;
  std::size_t empty = 0;
  for (auto slab = slabs_.begin(); slab != slabs_.end();) {
    const auto next = std::next(slab);
    if (slab->second.blocks == 0) {
      empty += slab->second.bytes;
      if (counted_.held_bytes > keep_bytes || empty > kKeptEmpty) {
        empty -= slab->second.bytes;
        bytes += slab->second.bytes;
        counted_.held_bytes -= slab->second.bytes;
        --counted_.slabs;
        ++counted_.slabs_given_back;
        free_of(slab->second).erase({slab->second.bytes, slab->first});
        blocks_.erase(slab->first);
        given.insert(slabs_.extract(slab));
      }
    }
    slab = next;
  }
  if (given.empty()) return 0;
  lock.unlock();
  for (const auto& [address, slab] : given) {
    if (slab.pooled) context_.table().simulator_set_pool(address, slab.bytes, 0);
    source_.give_back(address, slab.bytes, true);
  }
  lock.lock();
  return bytes;
}

ArenaStatistics Arena::statistics() const {
  const Lock lock(mutex_);
  ArenaStatistics now = counted_;
  for (const Free& free : free_) {
    if (!free.empty())
      now.largest_free_bytes = std::max(now.largest_free_bytes, free.rbegin()->first);
  }
  return now;
}

std::string Arena::holdings() const {
  std::string by;
  for (int use = 0; use < kMemoryUses; ++use) {
    const std::size_t bytes = counted_.used_by[static_cast<std::size_t>(use)];
    if (bytes == 0) continue;
    by += fmt::format("{}{} {}", by.empty() ? ": " : ", ", to_string(static_cast<MemoryUse>(use)),
                      bytes);
  }
  return fmt::format("the library holds {} bytes on the device, {} of them in use{}",
                     counted_.held_bytes, counted_.used_bytes, by);
}

Arena::Trimmers::iterator Arena::add_trimmer(std::function<void()> trim) {
  const std::lock_guard lock(trimmers_mutex_);
  return trimmers_.insert(trimmers_.end(), std::move(trim));
}

void Arena::remove_trimmer(Trimmers::iterator trimmer) {
  const std::lock_guard lock(trimmers_mutex_);
  trimmers_.erase(trimmer);
}

void Arena::run_trimmers() {
  const std::lock_guard lock(trimmers_mutex_);
  for (const auto& trim : trimmers_) trim();
}

}  // namespace annulus::device
