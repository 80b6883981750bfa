#include "simulator/check/block_shadow.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "simulator/check/race.h"
#include "simulator/fault/fault.h"

namespace annulus::simulator {
namespace {

constexpr int kClockShift = 44;
constexpr int kWarpShift = 38;
constexpr int kLaneShift = 32;
constexpr std::uint64_t kStrong = std::uint64_t{1} << 31;
constexpr std::uint64_t kBulk = std::uint64_t{1} << 30;
constexpr std::uint64_t kSite = (std::uint64_t{1} << 14) - 1;

std::uint32_t clock_of(std::uint64_t stamp) {
  return static_cast<std::uint32_t>(stamp >> kClockShift);
}
int warp_of(std::uint64_t stamp) { return static_cast<int>((stamp >> kWarpShift) & 63u); }
int lane_of(std::uint64_t stamp) { return static_cast<int>((stamp >> kLaneShift) & 63u); }

}  // namespace

void BlockShadow::reset(const Program& program, ClusterClocks& clocks, Agent first) {
  program_ = &program;
  clocks_ = &clocks;
  first_ = first;
  chunks_.clear();
  recent_.fill(nullptr);
  if (pages_.size() > kKeptPages) {
    pages_.resize(kKeptPages);
    pool_.clear();
  }
  used_ = 0;
  given_.clear();
  for (std::vector<Gift>& pending : pending_) pending.clear();
  fenced_by_ = 0;
  lowest_ = ~std::uint64_t{0};
  highest_ = 0;
}

BlockShadow::Stamp BlockShadow::stamp(const Access& access, int lane) const {
  return Stamp{clocks_->clock(agent(access.warp))} << kClockShift |
         static_cast<Stamp>(access.warp) << kWarpShift | static_cast<Stamp>(lane) << kLaneShift |
         (strong(access.kind) ? kStrong : 0) | (access.bulk ? kBulk : 0) | access.site;
}

bool BlockShadow::before(Stamp stamp, int warp, int lane) const {
  return clocks_->before(agent(warp_of(stamp)), clock_of(stamp), lane_of(stamp), agent(warp), lane);
}

BlockShadow::Chunk* BlockShadow::find(std::uint64_t address) {
  const std::uint64_t number = address >> kChunkBits;
  Chunk*& recent = recent_[number % recent_.size()];
  if (recent != nullptr && recent->number == number) return recent;
  const auto found = chunks_.find(number);
  if (found == chunks_.end()) return nullptr;
  recent = found->second;
  return recent;
}

BlockShadow::Chunk& BlockShadow::make(std::uint64_t address, int shift) {
  Chunk* chunk = find(address);
  if (chunk == nullptr) {
    const std::uint64_t number = address >> kChunkBits;
    if (pool_.size() == chunks_.size()) pool_.push_back(std::make_unique_for_overwrite<Chunk>());
    chunk = pool_[chunks_.size()].get();
    chunk->number = number;
    chunk->shift = shift;
    chunk->readers = chunk->updaters = 0;
    chunk->written = nullptr;
    chunks_.emplace(number, chunk);
    recent_[number % recent_.size()] = chunk;
  }
  if (chunk->shift > shift) split(*chunk, shift);
  return *chunk;
}

BlockShadow::Cells BlockShadow::cells(std::uint64_t address, std::uint32_t bytes) {
  Chunk& chunk = make(address, std::min(kWidest, std::countr_zero(bytes)));
  const std::uint64_t within = address & (kChunkBytes - 1);
  const std::size_t first = within >> chunk.shift;
  return {&chunk, first, first + (bytes >> chunk.shift)};
}

BlockShadow::Stamp* BlockShadow::array(const Chunk& chunk) {
  const std::size_t count = chunk.cells();
  used_ = (used_ + count - 1) / count * count;  // rounded up, so that an array lies within a page
  if (used_ / kPageStamps == pages_.size()) {
    pages_.push_back(std::make_unique_for_overwrite<Stamp[]>(kPageStamps));
  }
  Stamp* const stamps = pages_[used_ / kPageStamps].get() + used_ % kPageStamps;
  std::fill_n(stamps, count, Stamp{0});
  used_ += count;
  return stamps;
}

// Divides the cells of a chunk into smaller cells. Each smaller cell gets the stamps of its former
// cell.
void BlockShadow::split(Chunk& chunk, int shift) {
  const std::size_t before = chunk.cells();
  const std::size_t times = std::size_t{1} << (chunk.shift - shift);
  chunk.shift = shift;
  const auto spread = [&](Stamp*& stamps) {
    Stamp* const fine = array(chunk);
    for (std::size_t cell = 0; cell < before; ++cell) {
      std::fill_n(fine + cell * times, times, stamps[cell]);
    }
    stamps = fine;
  };
  if (chunk.written != nullptr) spread(chunk.written);
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    if (((chunk.readers >> warp) & 1) != 0) spread(chunk.read[warp]);
    if (((chunk.updaters >> warp) & 1) != 0) spread(chunk.updated[warp]);
  }
}

// In a cell, a warp has one stamp of a kind, from its last clock. Two lanes at the same clock
// become kSeveral.
void BlockShadow::note(Stamp& place, Stamp fresh) {
  if (clock_of(place) != clock_of(fresh)) {
    place = fresh;
    return;
  }
  if (lane_of(place) != lane_of(fresh)) {
    place |= static_cast<Stamp>(ClusterClocks::kSeveral) << kLaneShift;
  }
  place &= fresh | ~(kStrong | kBulk);
}

void BlockShadow::conflict_with(Stamp earlier, AccessKind kind, const Chunk& chunk,
                                std::size_t cell, const Access& access, int lane) const {
  if (earlier == 0 || !conflict(kind, access.kind)) return;
  if (before(earlier, access.warp, lane)) return;
  const std::uint64_t address = (chunk.number << kChunkBits) + (cell << chunk.shift);
  Fault fault = unordered_lanes(
      {access.kind, access.warp, lane, access.site},
      {kind, warp_of(earlier), lane_of(earlier), static_cast<std::uint32_t>(earlier & kSite)},
      *program_, address);
  fault.lane = lane;
  report(fault);
}

// Compares an access with the stamps of a cell. Reads come first, so that a race is reported as the
// same kind in whichever order its two accesses run.
void BlockShadow::check_cell(const Chunk& chunk, std::size_t cell, const Access& access,
                             int lane) const {
  const auto compare = [&](std::uint32_t warps, const std::array<Stamp*, kWarps>& stamps,
                           AccessKind plain, AccessKind as_strong) {
    for (std::uint32_t rest = warps; rest != 0; rest &= rest - 1) {
      const Stamp earlier = stamps[static_cast<std::size_t>(std::countr_zero(rest))][cell];
      conflict_with(earlier, (earlier & kStrong) != 0 ? as_strong : plain, chunk, cell, access,
                    lane);
    }
  };
  if (writes(access.kind)) {
    compare(chunk.readers, chunk.read, AccessKind::kRead, AccessKind::kStrongRead);
  }
  compare(chunk.updaters, chunk.updated, AccessKind::kStrongWrite, AccessKind::kStrongWrite);
  if (chunk.written != nullptr) {
    conflict_with(chunk.written[cell], AccessKind::kWrite, chunk, cell, access, lane);
  }
}

void BlockShadow::read(const Access& access, Lanes lanes, const std::uint64_t* addresses) {
  const Stamp base = stamp(access, 0);
  const auto warp = static_cast<std::size_t>(access.warp);
  const int shift = std::min(kWidest, std::countr_zero(access.bytes));
  // Neighbouring lanes mostly use the same chunk.
  Chunk* chunk = nullptr;
  Stamp* stamps = nullptr;
  bool written = false;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = addresses[lane];
    if (chunk == nullptr || chunk->number != address >> kChunkBits) {
      chunk = &make(address, shift);
      if (((chunk->readers >> warp) & 1) == 0) {
        chunk->read[warp] = array(*chunk);
        chunk->readers |= 1u << warp;
      }
      stamps = chunk->read[warp];
      written = chunk->written != nullptr || chunk->updaters != 0;
    }
    const std::size_t first = (address & (kChunkBytes - 1)) >> chunk->shift;
    const std::size_t end = first + (access.bytes >> chunk->shift);
    for (std::size_t cell = first; cell < end; ++cell) {
      if (written) check_cell(*chunk, cell, access, lane);
      note(stamps[cell], base | static_cast<Stamp>(lane) << kLaneShift);
    }
  }
}

void BlockShadow::check_write(const Access& access, int lane, std::uint64_t address) {
  const auto [chunk, first, end] = cells(address, access.bytes);
  for (std::size_t cell = first; cell < end; ++cell) check_cell(*chunk, cell, access, lane);
}

void BlockShadow::note_write(const Access& access, int lane, std::uint64_t address) {
  const auto [chunk, first, end] = cells(address, access.bytes);
  const auto warp = static_cast<std::size_t>(access.warp);
  const bool first_update = ((chunk->updaters >> warp) & 1) == 0;
  if (strong(access.kind) && first_update) {
    chunk->updated[warp] = array(*chunk);
    chunk->updaters |= 1u << warp;
  } else if (!strong(access.kind) && chunk->written == nullptr) {
    chunk->written = array(*chunk);
  }
  Stamp* const stamps = strong(access.kind) ? chunk->updated[warp] : chunk->written;
  const Stamp fresh = stamp(access, lane);
  for (std::size_t cell = first; cell < end; ++cell) {
    if (strong(access.kind)) {
      note(stamps[cell], fresh);
    } else {
      stamps[cell] = fresh;
    }
  }
  lowest_ = std::min(lowest_, address);
  highest_ = std::max(highest_, address + access.bytes);
}

// Adds a gift to a list, which keeps only the last gift of each warp.
void BlockShadow::keep(std::vector<Gift>& gifts, const Gift& gift) {
  const auto earlier = std::ranges::find(gifts, gift.warp, &Gift::warp);
  if (earlier == gifts.end()) {
    gifts.push_back(gift);
  } else {
    earlier->clock = std::max(earlier->clock, gift.clock);
    earlier->lanes |= gift.lanes;
  }
}

void BlockShadow::settle_all(int warp) {
  std::vector<Gift>& pending = pending_[static_cast<std::size_t>(warp)];
  for (const Gift& gift : pending) clocks_->learn(agent(warp), agent(gift.warp), gift.clock);
  pending.clear();
}

void BlockShadow::take(int warp, Lanes lanes, const std::uint64_t* addresses, bool later) {
  for (Lanes rest = given_.empty() ? 0 : lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto given = given_.find(addresses[lane]);
    if (given == given_.end()) given = given_.find(kAnywhere);
    if (given == given_.end()) continue;
    for (const Gift& gift : given->second) {
      if (gift.warp == warp) {
        clocks_->learn_lane(agent(warp), lane, gift.lanes, gift.clock);
      } else {
        keep(pending_[static_cast<std::size_t>(warp)], gift);
      }
    }
  }
  if (!later) settle(warp);
}

// Other warps receive everything that the warp did, whichever lane makes the access.
void BlockShadow::give(int warp, Lanes lanes, const std::uint64_t* addresses) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const bool apart = given_.size() < kMaxGiven || given_.contains(addresses[lane]);
    keep(given_[apart ? addresses[lane] : kAnywhere],
         {warp, clocks_->clock(agent(warp)), Lanes{1} << lane});
  }
}

void BlockShadow::learn(int warp, std::uint32_t others, std::uint64_t address) {
  if (others == 0) return;
  const auto given = given_.find(address);
  for (; others != 0; others &= others - 1) {
    const int other = std::countr_zero(others);
    const bool directly =
        given != given_.end() &&
        std::ranges::find(given->second, other, &Gift::warp) != given->second.end();
    if (other == warp || directly) continue;
    clocks_->learn(agent(warp), agent(other), clocks_->advance(agent(other)));
  }
}

template <typename Visit>
void BlockShadow::each(std::uint64_t begin, std::uint64_t end, Visit visit) {
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t chunk_begin = at & ~(kChunkBytes - 1);
    const std::uint64_t last = std::min(end, chunk_begin + kChunkBytes);
    if (Chunk* const chunk = find(at)) {
      const std::size_t stop = ((last - 1 - chunk_begin) >> chunk->shift) + 1;
      for (std::size_t cell = (at - chunk_begin) >> chunk->shift; cell < stop; ++cell) {
        visit(*chunk, cell);
      }
    }
    at = last;
  }
}

void BlockShadow::fence(int warp, Lanes lanes, bool whole) {
  Fence& fence = fences_[static_cast<std::size_t>(warp)];
  fence.order.clear();
  fence.clock = clocks_->clock(agent(warp));
  clocks_->release(fence.order, agent(warp), lanes, whole);
  fenced_by_ |= 1u << warp;
}

bool BlockShadow::fenced(Stamp stamp, int warp, int lane) const {
  const Agent other = agent(warp_of(stamp));
  if (clocks_->before_async(other, clock_of(stamp), lane_of(stamp), agent(warp))) return true;
  for (std::uint32_t rest = fenced_by_; rest != 0; rest &= rest - 1) {
    const int by = std::countr_zero(rest);
    const Fence& fence = fences_[static_cast<std::size_t>(by)];
    if (other >= fence.order.size() ||
        !fence.order[other].order.covers(clock_of(stamp), lane_of(stamp))) {
      continue;
    }
    if (by == warp ||
        clocks_->before(agent(by), fence.clock, ClusterClocks::kCollective, agent(warp), lane)) {
      return true;
    }
  }
  return false;
}

// Throws if the bytes are ordered before the access, but were written with no fence.proxy.async
// since.
void BlockShadow::check_fenced(const Chunk& chunk, std::size_t cell, const Access& access,
                               int lane) const {
  const auto check = [&](Stamp earlier) {
    if (earlier == 0 || (earlier & kBulk) != 0 || fenced(earlier, access.warp, lane)) return;
    report_at(FaultKind::kMissingFence, lane,
              "read of global address {:#x} through the asynchronous proxy, which lane {} of warp "
              "{} of the block wrote with no fence.proxy.async since",
              (chunk.number << kChunkBits) + (cell << chunk.shift), lane_of(earlier),
              warp_of(earlier));
  };
  if (chunk.written != nullptr) check(chunk.written[cell]);
  for (std::uint32_t rest = chunk.updaters; rest != 0; rest &= rest - 1) {
    check(chunk.updated[static_cast<std::size_t>(std::countr_zero(rest))][cell]);
  }
}

void BlockShadow::check_bulk_read(const Access& access, int lane, std::uint64_t begin,
                                  std::uint64_t end) {
  if (begin >= highest_ || end <= lowest_) return;
  each(begin, end, [&](const Chunk& chunk, std::size_t cell) {
    check_cell(chunk, cell, access, lane);
    check_fenced(chunk, cell, access, lane);
  });
}

void BlockShadow::check_bulk_write(const Access& access, int lane, std::uint64_t begin,
                                   std::uint64_t end) {
  each(begin, end,
       [&](const Chunk& chunk, std::size_t cell) { check_cell(chunk, cell, access, lane); });
}

void BlockShadow::note_bulk_write(const Access& access, int lane, std::uint64_t begin,
                                  std::uint64_t end) {
  // Copies are multiples of 16 bytes, except at the edges of tensors.
  Access piece = access;
  for (std::uint64_t at = begin; at < end; at += piece.bytes) {
    piece.bytes = 16;
    while ((at & (piece.bytes - 1)) != 0 || piece.bytes > end - at) piece.bytes /= 2;
    note_write(piece, lane, at);
  }
}

}  // namespace annulus::simulator
