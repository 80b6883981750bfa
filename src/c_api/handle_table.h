#ifndef ANNULUS_C_API_HANDLE_TABLE_H_
#define ANNULUS_C_API_HANDLE_TABLE_H_

// The live handles of one kind that C callers hold. A handle is a number, never an address:
//
//   63            32 31         8 7      0
//   +---------------+------------+--------+
//   | generation    | slot       | kind   |
//   +---------------+------------+--------+
//
// `kind` is odd, so no pointer to an object is a valid handle. A slot that is used again gets
// another generation. So every value that a caller passes is checked without being dereferenced:
// null, handles of another kind, and handles that were destroyed long ago. Slots last as long as
// the table.
//
// A handle of an object that belongs to a device is refused in a child of the process that made it.
//
// Using a handle takes no lock: a slot's word counts its users, and the last one after erase()
// destroys the object. Only insert() and the end of an object lock, for the list of free slots.

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fail.h"
#include "base/process.h"

namespace annulus::c_api {

template <typename Object>
class HandleTable {
  struct Slot;

 public:
  enum class Use { kAnywhere, kInItsProcess };

  // `name` is for messages: "plan".
  HandleTable(const char* name, std::uint8_t kind, Use use = Use::kAnywhere)
      : name_(name), kind_(kind), use_(use) {}
  // Requires: no handle is in use.
  ~HandleTable() {
    for (const std::atomic<Slot*>& slots : chunks_) delete[] slots.load();
  }
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // Uses a live object, which lives at least until the end of the Pin.
  class Pin {
   public:
    Pin(HandleTable& table, std::uintptr_t handle)
        : table_(table), index_(index_of(handle)), slot_(table.enter(handle)) {}
    ~Pin() { table_.leave(index_, *slot_); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

    Object* operator->() const { return slot_->object.get(); }
    Object& operator*() const { return *slot_->object; }

   private:
    friend class HandleTable;
    HandleTable& table_;
    std::uint32_t index_;
    Slot* slot_;
  };

  std::uintptr_t insert(std::unique_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t index = free_slot();
    Slot& slot = *find(index);
    slot.object = std::move(object);
    slot.process = {};
    const std::uint64_t generation = slot.word.load(std::memory_order_relaxed) & kGeneration;
    slot.word.store(generation | kLive, std::memory_order_release);
    return static_cast<std::uintptr_t>(generation | index << kIndexShift | kind_);
  }

  // Makes the handle invalid; the object is destroyed when its last user leaves. Throws
  // Error{kInvalidArgument} as Pin does, and also if another thread erased the handle first.
  void erase(std::uintptr_t handle) {
    const Pin pin(*this, handle);
    const std::uint64_t before = pin.slot_->word.fetch_and(~kLive, std::memory_order_acq_rel);
    if ((before & kLive) == 0) fail_gone();
  }

 private:
  static constexpr std::uint64_t kGeneration = ~std::uint64_t{0} << 32;
  static constexpr std::uint64_t kLive = std::uint64_t{1} << 31;
  static constexpr std::uint64_t kUsers = kLive - 1;
  static constexpr int kIndexShift = 8;
  static constexpr std::uint32_t kMaxSlots = 1u << 24;
  static constexpr std::uint32_t kFirstChunk = 64;  // chunk c holds 64 << c slots

  struct Slot {
    std::atomic<std::uint64_t> word{std::uint64_t{1} << 32};  // generation | live | users
    std::unique_ptr<Object> object;
    base::ProcessMark process;  // the process that made the object
  };

  static std::uint32_t index_of(std::uintptr_t handle) {
    return static_cast<std::uint32_t>(handle) >> kIndexShift;
  }

  // Null for an index that was never handed out.
  Slot* find(std::uint32_t index) const {
    const std::uint32_t place = index + kFirstChunk;
    const int chunk = std::bit_width(place) - std::bit_width(kFirstChunk);
    Slot* slots = chunks_[static_cast<std::size_t>(chunk)].load(std::memory_order_acquire);
    return slots == nullptr ? nullptr : slots + (place - (kFirstChunk << chunk));
  }

  // Adds a user, if the slot is live and has the handle's generation at that moment.
  Slot* enter(std::uintptr_t handle) const {
    if (handle == 0) {
      base::fail(ErrorCode::kInvalidArgument,
                 "the {} is null; give one that was made and not given "
                 "back",
                 name_);
    }
    Slot* slot = (handle & 0xff) == kind_ ? find(index_of(handle)) : nullptr;
    if (slot == nullptr) {
      base::fail(ErrorCode::kInvalidArgument,
                 "{:#x} is not a handle of type {}; was another kind of handle given?", handle,
                 name_);
    }
    std::uint64_t word = slot->word.load(std::memory_order_relaxed);
    do {
      if ((word & kLive) == 0 || (word & kGeneration) != (handle & kGeneration)) fail_gone();
    } while (!slot->word.compare_exchange_weak(word, word + 1, std::memory_order_acquire,
                                               std::memory_order_relaxed));
    if (use_ == Use::kInItsProcess && !slot->process.is_here()) {
      slot->word.fetch_sub(1, std::memory_order_relaxed);
      slot->process.check(name_);
    }
    return slot;
  }

  // Removes a user. The last user of an erased slot destroys the object and raises the generation
  // before the slot becomes free.
  void leave(std::uint32_t index, Slot& slot) {
    const std::uint64_t before = slot.word.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kLive) != 0 || (before & kUsers) != 1) return;
    slot.object.reset();
    const std::lock_guard lock(mutex_);
    slot.word.fetch_add(std::uint64_t{1} << 32, std::memory_order_relaxed);
    free_.push_back(index);  // cannot throw: the memory was reserved when the slot was made
  }

  std::uint32_t free_slot() {
    if (!free_.empty()) {
      const std::uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    if (count_ == kMaxSlots - kFirstChunk) {
      base::fail(ErrorCode::kOutOfMemory, "there are {} handles of a {} already; give some back",
                 count_, name_);
    }
    const std::uint32_t place = count_ + kFirstChunk;
    const int chunk = std::bit_width(place) - std::bit_width(kFirstChunk);
    auto& slots = chunks_[static_cast<std::size_t>(chunk)];
    if (slots.load(std::memory_order_relaxed) == nullptr) {
      free_.reserve(count_ + (kFirstChunk << chunk));
      slots.store(new Slot[kFirstChunk << chunk], std::memory_order_release);
    }
    return count_++;
  }

  [[noreturn]] void fail_gone() const {
    base::fail(ErrorCode::kInvalidArgument, "the {} was given back already; make another", name_);
  }

  const char* name_;
  std::uint8_t kind_;
  Use use_;
  std::mutex mutex_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> free_;
  std::array<std::atomic<Slot*>, 19> chunks_{};
};

}  // namespace annulus::c_api

#endif  // ANNULUS_C_API_HANDLE_TABLE_H_
