#include "simulator/check/access_plane.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace annulus::simulator {
namespace {

// Memory that reads as zero. A page takes no memory until it is written.
void* zero_pages(std::size_t bytes) {
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}

}  // namespace

AccessPlane::AccessPlane(std::uint64_t bytes)
    : count_((bytes + kChunkBytes - 1) >> kChunkBits),
      chunks_(static_cast<std::atomic<Chunk*>*>(zero_pages(count_ * sizeof(Chunk*)))) {
  static_assert(sizeof(std::atomic<Chunk*>) == sizeof(Chunk*));
  static_assert(sizeof(Chunk) % alignof(std::atomic<Stamp>) == 0);
}

AccessPlane::~AccessPlane() {
  for (std::uint64_t i = 0; i < count_; ++i) {
    if (Chunk* const chunk = chunks_[i].load(std::memory_order_relaxed)) free(chunk);
  }
  free_replaced();
  munmap(chunks_, count_ * sizeof(Chunk*));
}

AccessPlane::Chunk* AccessPlane::allocate(int shift) {
  const std::size_t cells = kChunkBytes >> shift;
  void* const memory = std::calloc(1, sizeof(Chunk) + cells * sizeof(Stamp));
  if (memory == nullptr) throw std::bad_alloc();
  auto* const chunk = new (memory) Chunk{shift};
  return chunk;
}

void AccessPlane::free(Chunk* chunk) { std::free(chunk); }

void AccessPlane::free_replaced() {
  while (replaced_ != nullptr) {
    Chunk* const next = replaced_->replaced;
    free(replaced_);
    replaced_ = next;
  }
}

// A split exchanges the stamps of the old chunk, one after another, for kMoved. A thread that finds
// kMoved waits for the split and then uses the new chunk. So no stamp is lost between the copy of a
// cell and the exchange of the chunks.
AccessPlane::Chunk* AccessPlane::make(std::uint64_t offset, int shift) {
  std::lock_guard lock(mutex_);
  std::atomic<Chunk*>& place = chunks_[offset >> kChunkBits];
  Chunk* const old = place.load(std::memory_order_acquire);
  if (old != nullptr && old->shift <= shift) return old;
  Chunk* const fresh = allocate(shift);
  if (old != nullptr) {
    const std::size_t times = std::size_t{1} << (old->shift - shift);
    for (std::size_t cell = 0; cell < old->count(); ++cell) {
      const Stamp stamp = old->cells()[cell].exchange(kMoved);
      if (stamp == 0) continue;
      for (std::size_t i = 0; i < times; ++i) {
        fresh->cells()[cell * times + i].store(stamp, std::memory_order_relaxed);
      }
    }
    old->replaced = replaced_;
    replaced_ = old;
  }
  place.store(fresh, std::memory_order_release);
  return fresh;
}

}  // namespace annulus::simulator
