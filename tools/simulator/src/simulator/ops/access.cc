#include "simulator/ops/access.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace annulus::simulator {
namespace {

[[noreturn]] void misaligned(Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                             const char* space) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
    if (address % bytes != 0) {
      raise_at(FaultKind::kMisaligned, lane,
               "{} address {:#x} is not a multiple of the {} bytes accessed", space, address,
               bytes);
    }
  }
  raise(FaultKind::kMisaligned, "misaligned access");
}

// Throws Fault if an address is not a multiple of `bytes`. `cut` returns the part of an address
// that counts. In the usual case all lanes are checked at once, by joining their addresses.
template <typename Address>
void check_alignment(Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                     const char* space, Address cut) {
  std::uint64_t all = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    all |= cut(addresses[static_cast<std::size_t>(lowest_lane(rest))]);
  }
  if ((all & (bytes - 1)) != 0) misaligned(mask, addresses, bytes, space);
}

// Whether all of [address, address + bytes) was written. `bytes` is a power of two up to 32 and
// divides the address. Other CTAs may mark their bytes in the same shadow byte at the same time.
inline bool all_written(std::uint8_t* shadow, std::uint64_t address, std::uint32_t bytes) {
  const auto read = [](std::uint8_t* byte) {
    return static_cast<std::uint32_t>(
        std::atomic_ref<std::uint8_t>(*byte).load(std::memory_order_relaxed));
  };
  if (bytes < 8) {
    const std::uint32_t wanted = (1u << bytes) - 1;
    return ((read(shadow) >> (address & 7)) & wanted) == wanted;
  }
  if (bytes == 16) {
    std::atomic_ref<std::uint16_t> both(*reinterpret_cast<std::uint16_t*>(shadow));
    return both.load(std::memory_order_relaxed) == 0xffff;
  }
  std::uint32_t all = 0xff;
  for (std::uint32_t i = 0; i < bytes / 8; ++i) all &= read(shadow + i);
  return all == 0xff;
}

// Whether a load may read bytes that were only partly written. The option `reading=proven` allows
// it if some of them were written: compilers load whole structs of which only a part was written
// and is used.
bool readable_in_part(const Cta& cta, std::uint8_t* shadow, std::uint64_t address,
                      std::uint32_t bytes) {
  if (cta.strict) return false;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const std::uint64_t at = (address & 7) + i;
    const std::atomic_ref<std::uint8_t> cell(shadow[at / 8]);
    if (((cell.load(std::memory_order_relaxed) >> (at % 8)) & 1) != 0) return true;
  }
  return false;
}

inline void set_shadow(std::uint8_t* shadow, std::uint64_t address, std::uint32_t bytes) {
  const auto mark = [](std::uint8_t* byte, std::uint32_t bits) {
    std::atomic_ref<std::uint8_t> cell(*byte);
    if ((cell.load(std::memory_order_relaxed) & bits) != bits) {
      cell.fetch_or(static_cast<std::uint8_t>(bits), std::memory_order_relaxed);
    }
  };
  if (bytes < 8) {
    mark(shadow, ((1u << bytes) - 1) << (address & 7));
  } else {
    for (std::uint32_t i = 0; i < bytes / 8; ++i) mark(shadow + i, 0xff);
  }
}

// Throws a Fault for an address outside of all allocations that the kernel may use. The message
// gives the reason: the memory belongs to a peer, it was freed, or it is past the end of the
// nearest allocation.
[[noreturn]] void outside(const Cta& cta, int lane, std::uint64_t address, std::uint32_t bytes,
                          const char* what) {
  for (const PeerMemory& peer : cta.global.peers) {
    if (peer.enabled || !peer.memory->contains(address)) continue;
    raise_at(FaultKind::kPeerAccess, lane,
             "{} of {} bytes at global address {:#x}, which is memory of device {}; call "
             "cuCtxEnablePeerAccess in the context of the kernel first, or for memory of a pool "
             "cuMemPoolSetAccess",
             what, bytes, address, peer.ordinal);
  }
  if (cta.global.races != nullptr) {
    cta.global.races->check_freed(cta.global.memory->freed_by(address), lane, address);
  }
  const Allocation below = cta.global.memory->find(address, 1);
  std::string near;
  if (below.end != 0) {
    near = fmt::format("; the allocation there ends after {} bytes", below.end - below.begin);
  } else {
    for (std::uint64_t back = 1; back <= 4096 && near.empty(); back += 1) {
      if (back > address) break;
      const Allocation found = cta.global.memory->find(address - back, 1);
      if (found.end != 0) {
        near = fmt::format("; an allocation of {} bytes ends {} bytes before it",
                           found.end - found.begin, address - found.end);
      }
    }
  }
  raise_at(FaultKind::kOutOfBounds, lane,
           "{} of {} bytes at global address {:#x}, which are not all in one allocation{}", what,
           bytes, address, near);
}

// The allocation that holds the bytes, on the kernel's device or on a peer.
Allocation find_allocation(const Cta& cta, int lane, std::uint64_t address, std::uint32_t bytes,
                           const char* what) {
  Allocation found = cta.global.memory->find(address, bytes);
  for (const PeerMemory& peer : cta.global.peers) {
    if (found.end != 0) break;
    if (!peer.enabled && peer.granted.empty()) continue;
    const Allocation there = peer.memory->find(address, bytes);
    if (there.end != 0 && peer.allows(there)) found = there;
  }
  if (found.end == 0) outside(cta, lane, address, bytes, what);
  return found;
}

GlobalView::Recent look_up(const Cta& cta, int lane, std::uint64_t address, std::uint32_t bytes,
                           const char* what) {
  GlobalView::Recent recent;
  static_cast<Allocation&>(recent) = find_allocation(cta, lane, address, bytes, what);
  if (cta.global.races != nullptr) {
    recent.view =
        cta.global.races->view(recent.memory->record(recent.begin, cta.global.races->detector()));
  }
  return recent;
}

// The stamp of the running instruction, without the lane.
Stamp stamp_of(const Warp& warp) {
  const Cta& cta = *warp.cta;
  return (cta.global.stamp + (static_cast<Stamp>(warp.index) << kStampWarpShift)) |
         cta.program->code[warp.pc].site;
}

// Searches for races with other operations. If blocks cannot order themselves, it also searches for
// races with other blocks. If they can, BlockOrder does that.
void search_races(Warp& warp, LaunchShadow::View& view, AccessKind kind, Mask mask,
                  const LaneAddresses& addresses, std::uint32_t bytes, Stamp mine) {
  Cta& cta = *warp.cta;
  cta.global.races->access(view, kind, mask, addresses.data(), bytes, mine);
  if (cta.global.order == nullptr) return;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    cta.global.order->access(cta.global.clocks, warp.index, view, kind, lane,
                             addresses[static_cast<std::size_t>(lane)], bytes, mine);
  }
}

// Checks that no copy of the CTA that is under way conflicts with the access.
void check_flights(const Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                   AccessKind kind) {
  const Cta& cta = *warp.cta;
  const bool reduces = kind == AccessKind::kStrongWrite;
  for (Mask rest = cta.flights.empty() ? 0 : mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    cta.flights.check(warp, lane, addresses[static_cast<std::size_t>(lane)], bytes, writes(kind),
                      reduces);
  }
  for (const Warp& other : cta.warps) {
    if (!writes(kind) || other.copies.empty()) continue;
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = lowest_lane(rest);
      other.copies.check_sources(other, lane, addresses[static_cast<std::size_t>(lane)], bytes);
    }
  }
}

}  // namespace

namespace {

// Both searches take aligned powers of two, so the bytes are split into the largest such pieces.
template <typename Visit>
void for_pieces(int lane, std::uint64_t address, std::uint32_t bytes, Visit visit) {
  LaneAddresses addresses;
  for (std::uint32_t done = 0; done < bytes;) {
    const std::uint64_t at = address + done;
    const auto aligned = static_cast<std::uint32_t>(at & (~at + 1) & 31u);
    std::uint32_t piece = aligned == 0 ? 16 : aligned;
    while (piece > bytes - done) piece /= 2;
    addresses[static_cast<std::size_t>(lane)] = at;
    visit(addresses, piece);
    done += piece;
  }
}

// Within the block an access of any scope counts as strong.
BlockShadow::Access in_block(const Warp& warp, bool stores, std::uint32_t bytes,
                             MemoryOrder order) {
  const bool weak = order == MemoryOrder::kWeak;
  const AccessKind kind = stores ? (weak ? AccessKind::kWrite : AccessKind::kStrongWrite)
                                 : (weak ? AccessKind::kRead : AccessKind::kStrongRead);
  return {.warp = warp.index,
          .kind = kind,
          .bytes = bytes,
          .site = warp.cta->program->code[warp.pc].site};
}

// Strong reads take what strong writes of the block passed on.
void take_strong(const Warp& warp, Mask mask, const LaneAddresses& addresses, MemoryOrder order) {
  const bool later = warp.cta->strict && !acquires(order);
  warp.cta->block_shadow.take(warp.index, mask, addresses.data(), later);
}

}  // namespace

void note_load(const Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
               MemoryOrder order) {
  BlockShadow& shadow = warp.cta->block_shadow;
  if (order != MemoryOrder::kWeak) take_strong(warp, mask, addresses, order);
  shadow.read(in_block(warp, false, bytes, order), mask, addresses.data());
}

void check_store(const Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes,
                 MemoryOrder order) {
  warp.cta->block_shadow.check_write(in_block(warp, true, bytes, order), lane, address);
}

void note_store(const Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes,
                MemoryOrder order) {
  warp.cta->block_shadow.note_write(in_block(warp, true, bytes, order), lane, address);
}

void update_in_block(const Warp& warp, int lane, const LaneAddresses& addresses,
                     std::uint32_t bytes, MemoryOrder order, bool learns) {
  const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
  check_store(warp, lane, address, bytes, MemoryOrder::kBlock);
  if (learns) take_strong(warp, 1u << lane, addresses, order);
  note_store(warp, lane, address, bytes, MemoryOrder::kBlock);
  warp.cta->block_shadow.give(warp.index, 1u << lane, addresses.data());
}

void require_aligned(Mask mask, const LaneAddresses& addresses, std::uint32_t bytes) {
  check_alignment(mask, addresses, bytes, "the", [](std::uint64_t address) { return address; });
}

void lane_addresses(const Warp& warp, std::uint32_t base_slot, bool base_is_64, std::int64_t offset,
                    LaneAddresses& addresses) {
  if (base_is_64) {
    const auto* base = warp.lanes<std::uint64_t>(base_slot);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = base[lane] + static_cast<std::uint64_t>(offset);
    }
  } else {
    const auto* base = warp.lanes<std::uint32_t>(base_slot);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = base[lane] + static_cast<std::uint32_t>(offset);
    }
  }
}

void check_global_read(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes) {
  Cta& cta = *warp.cta;
  if (bytes == 0) return;
  GlobalView::Recent& recent = cta.global.recent[warp.pc];
  if (!recent.holds(address, bytes)) {
    recent = look_up(cta, lane, address, bytes, "read");
  }
  if (cta.global.races == nullptr) return;
  const Stamp mine = stamp_of(warp);
  for_pieces(lane, address, bytes, [&](const LaneAddresses& addresses, std::uint32_t piece) {
    search_races(warp, *recent.view, AccessKind::kRead, 1u << lane, addresses, piece, mine);
  });
}

void note_load(const Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes) {
  for_pieces(lane, address, bytes, [&](const LaneAddresses& addresses, std::uint32_t piece) {
    note_load(warp, 1u << lane, addresses, piece, MemoryOrder::kWeak);
  });
}

// Lanes mostly stay in the allocation that this instruction accessed last (GlobalView::recent), so
// the search for races handles all lanes of one allocation together. The search runs before the
// access itself, which the caller makes.
template <bool kChecked>
void reach_global(Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                  Access access, AccessKind kind, LanePointers& pointers) {
  Cta& cta = *warp.cta;
  check_alignment(mask, addresses, bytes, "global", [](std::uint64_t a) { return a; });
  GlobalView::Recent recent = cta.global.recent[warp.pc];
  const Stamp mine = kChecked && cta.global.races != nullptr ? stamp_of(warp) : 0;
  Mask compared = mask;  // the lanes whose races were not searched for yet
  std::uint64_t last_sector = ~std::uint64_t{0};
  std::uint64_t sectors = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
    if (!recent.holds(address, bytes)) {
      if (mine != 0 && compared != rest) {  // the earlier lanes are in another allocation
        search_races(warp, *recent.view, kind, compared & ~rest, addresses, bytes, mine);
      }
      compared = rest;
      recent = look_up(cta, lane, address, bytes, access == Access::kStore ? "write" : "read");
      cta.global.recent[warp.pc] = recent;
    }
    pointers[static_cast<std::size_t>(lane)] = reinterpret_cast<std::byte*>(address);
    if constexpr (kChecked) {
      std::uint8_t* shadow = recent.memory->shadow(address);
      if (access != Access::kStore) {
        if (!all_written(shadow, address, bytes) &&
            !(access == Access::kLoad && readable_in_part(cta, shadow, address, bytes))) {
          report_at(FaultKind::kUninitialized, lane,
                    "read of {} bytes at global address {:#x} (byte {} of its allocation), which "
                    "was never written",
                    bytes, address, address - recent.begin);
        }
      } else {
        set_shadow(shadow, address, bytes);
      }
    } else if (access != Access::kLoad) {
      // Fast mode never reads these bits. But the next launch may run in checked mode, because the
      // options of a device can change, and it would report the bytes as never written.
      set_shadow(recent.memory->shadow(address), address, bytes);
    }
    // Neighbouring lanes share sectors. The sectors of interleaved lanes may be counted twice.
    const std::uint64_t sector = address >> 5;
    sectors += sector != last_sector;
    last_sector = sector;
  }
  if (mine != 0) search_races(warp, *recent.view, kind, compared, addresses, bytes, mine);
  if constexpr (kChecked) check_flights(warp, mask, addresses, bytes, kind);
  (access == Access::kStore ? cta.counts.global_sectors_written : cta.counts.global_sectors_read) +=
      sectors;
}

template void reach_global<true>(Warp&, Mask, const LaneAddresses&, std::uint32_t, Access,
                                 AccessKind, LanePointers&);
template void reach_global<false>(Warp&, Mask, const LaneAddresses&, std::uint32_t, Access,
                                  AccessKind, LanePointers&);

template <bool kChecked>
void reach_shared(Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                  LanePointers& pointers) {
  Cta& cta = *warp.cta;
  check_alignment(mask, addresses, bytes, "shared",
                  [](std::uint64_t a) { return a & 0xffffffffu; });
  const std::uint64_t size = cta.shared.size();
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint64_t offset =
        (addresses[static_cast<std::size_t>(lane)] & 0xffffffffu) - kSharedBase;
    if (offset + bytes > size || offset >= size) {
      raise_at(FaultKind::kOutOfBounds, lane,
               "{} bytes at shared address {}, but the CTA has {} bytes from address {} on", bytes,
               addresses[static_cast<std::size_t>(lane)] & 0xffffffffu, size, kSharedBase);
    }
    pointers[static_cast<std::size_t>(lane)] = cta.shared.data() + offset;
  }
  if (kChecked) count_wavefronts(cta, mask, addresses, bytes);
}

template void reach_shared<true>(Warp&, Mask, const LaneAddresses&, std::uint32_t, LanePointers&);
template void reach_shared<false>(Warp&, Mask, const LaneAddresses&, std::uint32_t, LanePointers&);

template <bool kChecked>
void reach_local(Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                 Access access, LanePointers& pointers) {
  check_alignment(mask, addresses, bytes, "local", [](std::uint64_t a) { return a & 0xffffffffu; });
  const std::uint64_t size = warp.cta->program->info.local_bytes;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint64_t offset = addresses[static_cast<std::size_t>(lane)] & 0xffffffffu;
    if (offset + bytes > size) {
      raise_at(FaultKind::kOutOfBounds, lane,
               "{} bytes at local address {}, but there are {} bytes", bytes, offset, size);
    }
    const std::size_t at = static_cast<std::size_t>(lane) * size + offset;
    pointers[static_cast<std::size_t>(lane)] = warp.local.data() + at;
    if (!kChecked) continue;
    const auto written = warp.local_written.begin() + static_cast<std::ptrdiff_t>(at);
    if (access == Access::kStore) {
      std::fill_n(written, bytes, std::uint8_t{1});
    } else if (std::find(written, written + bytes, 0) != written + bytes &&
               (warp.cta->strict || std::find(written, written + bytes, 1) == written + bytes)) {
      report_at(FaultKind::kUninitialized, lane,
                "read of {} bytes at local address {}, which "
                "was never written",
                bytes, offset);
    }
  }
}

template void reach_local<true>(Warp&, Mask, const LaneAddresses&, std::uint32_t, Access,
                                LanePointers&);
template void reach_local<false>(Warp&, Mask, const LaneAddresses&, std::uint32_t, Access,
                                 LanePointers&);

namespace {

// For one phase whose lanes may collide: the largest number of different words in one bank.
std::uint32_t collisions(Mask mask, const LaneAddresses& addresses, std::uint32_t words) {
  std::uint32_t count[32] = {};
  std::uint32_t seen[32][32];
  std::uint32_t most = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const auto start =
        static_cast<std::uint32_t>(addresses[static_cast<std::size_t>(lowest_lane(rest))]) / 4;
    for (std::uint32_t word = start; word < start + words; ++word) {
      const std::uint32_t bank = word & 31u;
      const auto end = seen[bank] + count[bank];
      if (std::find(seen[bank], end, word) != end) continue;
      *end = word;
      most = std::max(most, ++count[bank]);
    }
  }
  return most;
}

}  // namespace

// A phase moves at most 128 bytes: 32 lanes of 4 bytes, 16 of 8 or 8 of 16. A phase takes one
// wavefront for each different word in its most used bank.
void count_wavefronts(Cta& cta, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes) {
  const std::uint32_t words = std::max(bytes, 4u) / 4;
  if (words > 4) return;
  const int lanes_per_phase = kLanes / static_cast<int>(words);
  const std::uint32_t shift = bytes <= 4 ? 2 : bytes == 8 ? 3 : 4;
  const Mask phase = lanes_per_phase == 32 ? kFull : (1u << lanes_per_phase) - 1;
  for (int first = 0; first < kLanes; first += lanes_per_phase) {
    const Mask lanes = mask & (phase << first);
    if (lanes == 0) continue;
    ++cta.counts.shared_wavefronts_ideal;
    // Aligned accesses of one size share all of their banks or none. So lanes that share no bank
    // need one wavefront.
    std::uint32_t groups = 0;
    for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
      const std::uint64_t address = addresses[static_cast<std::size_t>(lowest_lane(rest))];
      groups |= 1u << ((address >> shift) & static_cast<std::uint64_t>(lanes_per_phase - 1));
    }
    const bool apart = __builtin_popcount(groups) == __builtin_popcount(lanes);
    cta.counts.shared_wavefronts += apart ? 1 : collisions(lanes, addresses, words);
  }
}

}  // namespace annulus::simulator
