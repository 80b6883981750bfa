#ifndef ANNULUS_SIMULATOR_CHECK_ACCESS_PLANE_H_
#define ANNULUS_SIMULATOR_CHECK_ACCESS_PLANE_H_

// A plane records, for one kind of access, which access touched each byte of an allocation last. It
// has a stamp for every cell. The host threads that run the CTAs of a launch use a plane at the
// same time, without locks.
//
// A cell is as large as the smallest access to its 4096-byte chunk so far: 16 bytes at first, and
// down to 1. So stamps are exact to the byte, and cost only 8 bytes for each 16 bytes if all
// accesses are wide. A stamp identifies an access:
//
//   | operation : 14 | warp of the grid : 30 | lane : 5 | several : 1 | site : 14 |
//
//   operation   its number in Detector; 0: no access
//   warp        block << warp_bits | warp; only the lower 30 bits
//   several     another block of the operation accessed the cell in the same way
//   site        the number of the instruction (Program::sites)

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace annulus::simulator {

using Stamp = std::uint64_t;

constexpr int kStampWarpShift = 20;
constexpr int kStampLaneShift = 15;
constexpr int kStampOperationShift = 50;
constexpr Stamp kStampSite = (Stamp{1} << 14) - 1;
constexpr Stamp kStampSeveral = Stamp{1} << 14;
constexpr Stamp kStampWarps = ((Stamp{1} << 30) - 1) << kStampWarpShift;
constexpr Stamp kStampOperation = ~Stamp{0} << kStampOperationShift;
constexpr std::uint32_t kMaxOperations = (1u << 14) - 2;  // 16383 would look like kMoved

inline std::uint32_t stamp_operation(Stamp stamp) {
  return static_cast<std::uint32_t>(stamp >> kStampOperationShift);
}

class AccessPlane {
 public:
  static constexpr int kChunkBits = 12;
  static constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << kChunkBits;
  static constexpr int kWidest = 4;           // log2 of the bytes of the largest cell
  static constexpr Stamp kMoved = ~Stamp{0};  // the cell's stamp is in the chunk that replaces this
                                              // one

  struct Chunk {
    int shift;                  // log2 of the bytes of a cell
    Chunk* replaced = nullptr;  // for a split chunk: the next split chunk in the list
    std::atomic<Stamp>* cells() { return reinterpret_cast<std::atomic<Stamp>*>(this + 1); }
    std::size_t count() const { return kChunkBytes >> shift; }
  };

  explicit AccessPlane(std::uint64_t bytes);
  ~AccessPlane();
  AccessPlane(const AccessPlane&) = delete;
  AccessPlane& operator=(const AccessPlane&) = delete;

  // The chunk that holds the byte at `offset`, or null if nothing was stamped there yet. Acquire is
  // enough here next to the sequentially consistent stamps (LaunchShadow), because the simulator
  // runs only on x86. There a stamp is a locked instruction, and no later load can pass it.
  Chunk* find(std::uint64_t offset) const {
    return chunks_[offset >> kChunkBits].load(std::memory_order_acquire);
  }
  // The chunk that holds the byte at `offset`, with cells of at most 1 << shift bytes. The function
  // makes the chunk if there is none, and splits it if its cells are larger.
  Chunk* get(std::uint64_t offset, int shift) {
    Chunk* const chunk = find(offset);
    return chunk != nullptr && chunk->shift <= shift ? chunk : make(offset, shift);
  }

  // Waits until no chunk is being split. A thread that found kMoved calls this and then finds the
  // chunk again.
  void wait() const { std::lock_guard lock(mutex_); }

  // Visits the stamps of [begin, end) that are not 0: visit(stamp, cell begin, cell end).
  template <typename Visit>
  void each(std::uint64_t begin, std::uint64_t end, Visit visit) const;

  // Removes the stamps for which keep(stamp) is false, and frees chunks that are empty then.
  // Requires: no launch uses the plane.
  template <typename Keep>
  void sweep(Keep keep);

 private:
  static Chunk* allocate(int shift);
  static void free(Chunk* chunk);
  Chunk* make(std::uint64_t offset, int shift);
  void free_replaced();

  std::uint64_t count_;
  std::atomic<Chunk*>* chunks_;  // zero pages until they are written
  mutable std::mutex mutex_;     // held while a chunk is made or split
  Chunk* replaced_ = nullptr;    // split chunks, which other threads may still read
};

template <typename Visit>
void AccessPlane::each(std::uint64_t begin, std::uint64_t end, Visit visit) const {
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t chunk_begin = at & ~(kChunkBytes - 1);
    const std::uint64_t chunk_end = chunk_begin + kChunkBytes;
    const std::uint64_t last = end < chunk_end ? end : chunk_end;
    if (Chunk* const chunk = find(at)) {
      const std::uint64_t first_cell = (at - chunk_begin) >> chunk->shift;
      const std::uint64_t last_cell = (last - 1 - chunk_begin) >> chunk->shift;
      for (std::uint64_t cell = first_cell; cell <= last_cell; ++cell) {
        const Stamp stamp = chunk->cells()[cell].load(std::memory_order_relaxed);
        if (stamp == 0) continue;
        visit(stamp, chunk_begin + (cell << chunk->shift),
              chunk_begin + ((cell + 1) << chunk->shift));
      }
    }
    at = last;
  }
}

template <typename Keep>
void AccessPlane::sweep(Keep keep) {
  free_replaced();
  for (std::uint64_t i = 0; i < count_; ++i) {
    Chunk* const chunk = chunks_[i].load(std::memory_order_relaxed);
    if (chunk == nullptr) continue;
    bool empty = true;
    for (std::size_t cell = 0; cell < chunk->count(); ++cell) {
      const Stamp stamp = chunk->cells()[cell].load(std::memory_order_relaxed);
      if (stamp == 0) continue;
      if (keep(stamp)) {
        empty = false;
      } else {
        chunk->cells()[cell].store(0, std::memory_order_relaxed);
      }
    }
    if (!empty) continue;
    chunks_[i].store(nullptr, std::memory_order_relaxed);
    free(chunk);
  }
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_ACCESS_PLANE_H_
