#include "simulator/check/shared_shadow.h"

#include <algorithm>
#include <bit>

#include "simulator/fault/fault.h"
#include "simulator/program/address_spaces.h"
#include "simulator/program/lanes.h"

namespace annulus::simulator {
namespace {

constexpr std::uint32_t kAllBytes = 15;

// The kind of barrier that would have ordered the two accesses, for messages.
const char* missing(bool same_warp) {
  return same_warp ? "bar.warp.sync (__syncwarp) or barrier" : "barrier";
}

}  // namespace

std::string SharedShadow::who(Stamp stamp, Agent asking) const {
  const auto warp = (stamp >> kWarpShift) & 31u;
  const std::uint32_t lane = stamp & 63u;
  const std::string whose =
      first_ + warp == asking ? std::string("the same warp") : fmt::format("warp {}", warp);
  if (lane == kCollective) return fmt::format("all lanes of {} at once", whose);
  if (lane == kSeveral) return fmt::format("several lanes of {}", whose);
  return fmt::format("lane {} of {}", lane, whose);
}

void SharedShadow::reset(std::uint32_t bytes, int warps, ClusterClocks& clocks, Agent first,
                         bool by_warp, bool strict) {
  words_ = (bytes + 3) / 4;
  warps_ = warps;
  clocks_ = &clocks;
  first_ = first;
  by_warp_ = by_warp;
  strict_ = strict;
  writer_.assign(words_, 0);
  readers_.assign(static_cast<std::size_t>(words_) * static_cast<std::size_t>(warps), 0);
  touched_.assign((words_ >> kBlockShift) + 1, 0);
  for (Agent warp = 0; warp < clocks.warps(); ++warp) {
    settled_[warp].fill(1);
    ended_[warp].fill(1);
  }
  for (auto& group : matrix_) group.clear();
  foreign_.clear();
  records_.clear();
  bytes_.clear();
  atomics_.clear();
  compared_.clear();
}

bool SharedShadow::ordered_read(std::uint32_t reader, int reader_warp, const Access& access) const {
  if (reader == 0) return true;
  const int other_lane = static_cast<int>(reader & 63u);
  const std::uint32_t clock = reader >> kWarpShift;
  // Every lane has executed a collective read when any lane continues.
  if (agent(reader_warp) == access.warp && other_lane == kCollective) return true;
  if (access.write) {
    return clocks_->ended(agent(reader_warp), clock, other_lane, access.warp, access.lane);
  }
  return clocks_->before(agent(reader_warp), clock, other_lane, access.warp, access.lane);
}

void SharedShadow::uninitialized(const Access& access, std::uint32_t offset) const {
  // Programs often multiply rows of a tile that lie outside of the tensor and were never written,
  // and discard the results (FlashAttention-2).
  if (!strict_ && (access.matrix || access.lane == kCollective)) return;
  report_at(FaultKind::kUninitialized, lane_or_none(access.lane),
            "{} of shared byte {}, which was never written", access.what, offset + kSharedBase);
}

void SharedShadow::check_proxy(Agent writer, std::uint32_t clock, int lane, const Access& access,
                               std::uint32_t offset) const {
  if (!access.async || clocks_->before_async(writer, clock, lane, access.warp)) return;
  report_at(FaultKind::kMissingFence, lane_or_none(access.lane),
            "{} of shared byte {} through the asynchronous proxy, which a warp wrote with no "
            "fence.proxy.async since",
            access.what, offset + kSharedBase);
}

// Throws if the write that left the stamp does not come before the access. The order of the tests
// follows the causes: first a copy in flight, then a race, and only then a missing proxy fence. The
// last test is made only for accesses that are ordered.
void SharedShadow::check_writer(Stamp writer, const Access& access, std::uint32_t offset) const {
  if (writer == 0) return;
  if (writer == kAtomicStamp) return check_atomics(access, offset);
  if ((writer & kForeign) != 0) {
    return check_foreign_writer(records_[writer & ~kForeign], access, offset);
  }
  const Agent other = first_ + ((writer >> kWarpShift) & 31u);
  if ((writer >> kClockShift) == kFlightClock) {
    return report_at(
        FaultKind::kInFlight, lane_or_none(access.lane),
        "{} of shared byte {}, into which {} copies asynchronously; wait for the copy first",
        access.what, offset + kSharedBase, who(writer, access.warp));
  }
  const std::uint32_t clock = writer >> kClockShift;
  const int lane = static_cast<int>(writer & 63u);
  // All lanes of a warp execute a product together, so it comes after the writes of each of them.
  // What remains to be checked is the proxy fence of the lane that wrote.
  const bool own_product = access.matrix && other == access.warp;
  if (!own_product && !ordered_write(writer, access.warp, access.lane)) {
    report_at(FaultKind::kSharedRace, lane_or_none(access.lane),
              "{} of shared byte {}, which {} wrote with no {} in between", access.what,
              offset + kSharedBase, who(writer, access.warp), missing(other == access.warp));
  }
  check_proxy(other, clock, lane, access, offset);
}

// For each warp and word there is one record, of the last clock at which the warp read the word.
// Two lanes at the same clock become kSeveral. If single lanes and a collective read happen at the
// same clock, the single lanes are kept, because a warp barrier has to order them.
void SharedShadow::note_read(std::uint32_t& reader, int warp, int lane) const {
  const std::uint32_t clock = clocks_->clock(agent(warp)) << kWarpShift;
  const auto fresh = clock | static_cast<std::uint32_t>(lane);
  if (reader == fresh) return;
  const bool same_time = (reader & ~63u) == clock;
  reader = same_time && (reader & 63u) != kCollective && lane != kCollective
               ? clock | static_cast<std::uint32_t>(kSeveral)
               : (same_time && lane == kCollective ? reader : fresh);
}

SharedShadow::ByteStamps& SharedShadow::by_bytes(std::uint32_t word) {
  ByteStamps& bytes = bytes_[word];
  if (writer_[word] != kBytesStamp) {
    bytes.writer.fill(writer_[word]);
    for (int warp = 0; warp < warps_; ++warp) {
      for (auto& readers : bytes.readers) {
        readers[static_cast<std::size_t>(warp)] =
            readers_[static_cast<std::size_t>(warp) * words_ + word];
      }
    }
    writer_[word] = kBytesStamp;
  }
  return bytes;
}

void SharedShadow::read_word(int warp, int lane, std::uint32_t word, std::uint32_t byte_mask,
                             bool in_part) {
  const Access access{.warp = agent(warp), .lane = lane, .what = "read"};
  const Stamp writer = writer_[word];
  touched_[word >> kBlockShift] |= std::uint64_t{1} << warp;
  if (byte_mask == kAllBytes && writer != kBytesStamp) {
    if (writer == 0 && !in_part) uninitialized(access, word * 4);
    check_writer(writer, access, word * 4);
    note_read(readers_[static_cast<std::size_t>(warp) * words_ + word], warp, lane);
    return;
  }
  ByteStamps& bytes = by_bytes(word);
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (((byte_mask >> i) & 1) == 0) continue;
    if (bytes.writer[i] == 0 && !in_part) uninitialized(access, word * 4 + i);
    check_writer(bytes.writer[i], access, word * 4 + i);
    note_read(bytes.readers[i][static_cast<std::size_t>(warp)], warp, lane);
  }
}

void SharedShadow::write_word(int warp, int lane, std::uint32_t word, std::uint32_t byte_mask,
                              bool changes, Stamp fresh) {
  const Access access{.warp = agent(warp), .lane = lane, .what = "write"};
  const auto check = [&](Stamp writer, std::uint32_t offset) {
    // A write that does not change the value is harmless, except over a copy in flight or an
    // mbarrier. It still leaves its own stamp: a word has one writer, the last, and a reader has to
    // come after that writer.
    if (writer == 0) return;
    const bool moment = (writer >> kClockShift) > kBytesClock && writer != kAtomicStamp;
    if (changes || moment) check_writer(writer, access, offset);
  };
  if (changes) check_foreign_readers(word, access);
  if (changes) check_compared(word, access);
  if (byte_mask == kAllBytes && writer_[word] != kBytesStamp) {
    check(writer_[word], word * 4);
    if (changes) check_readers(word, access);
    writer_[word] = fresh;
    return;
  }
  ByteStamps& bytes = by_bytes(word);
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (((byte_mask >> i) & 1) == 0) continue;
    check(bytes.writer[i], word * 4 + i);
    for (int other = 0; changes && other < warps_; ++other) {
      check_reader(bytes.readers[i][static_cast<std::size_t>(other)], other, access, word * 4 + i);
    }
    bytes.writer[i] = fresh;
  }
}

void SharedShadow::check_reader(std::uint32_t reader, int warp, const Access& access,
                                std::uint32_t offset) const {
  if (ordered_read(reader, warp, access)) return;
  const Stamp as_stamp = (static_cast<Stamp>(warp) << kWarpShift) | (reader & 63u);
  report_at(FaultKind::kSharedRace, lane_or_none(access.lane),
            "{} of shared byte {}, which {} read with no {} in between", access.what,
            offset + kSharedBase, who(as_stamp, access.warp), missing(agent(warp) == access.warp));
}

void SharedShadow::check_compared(std::uint32_t word, const Access& access) const {
  if (compared_.empty() || access.atomic) return;
  const auto found = compared_.find(word);
  for (int other = 0; found != compared_.end() && other < warps_; ++other) {
    check_reader(found->second[static_cast<std::size_t>(other)], other, access, word * 4);
  }
}

void SharedShadow::check_readers(std::uint32_t word, const Access& access) const {
  auto rest = static_cast<std::uint32_t>(touched_[word >> kBlockShift]);
  for (; rest != 0; rest &= rest - 1) {
    const int other = lowest_lane(rest);
    check_reader(readers_[static_cast<std::size_t>(other) * words_ + word], other, access,
                 word * 4);
  }
}

namespace {

// Calls visit(word, byte mask) for each word of a range.
template <typename Visit>
inline void for_words(std::uint32_t offset, std::uint32_t bytes, Visit visit) {
  if (((offset | bytes) & 3u) == 0) {
    for (std::uint32_t word = offset / 4; word < (offset + bytes) / 4; ++word) {
      visit(word, kAllBytes);
    }
    return;
  }
  for (std::uint32_t at = offset; at < offset + bytes;) {
    const std::uint32_t word = at / 4;
    const std::uint32_t last = std::min(offset + bytes, word * 4 + 4);
    std::uint32_t mask = 0;
    for (; at < last; ++at) mask |= 1u << (at & 3u);
    visit(word, mask);
  }
}

}  // namespace

void SharedShadow::read_slowly(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
  bool written = strict_;
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    written = written || written_in_part(word, mask);
  });
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    // Compilers load whole structs of which only a part was written and is used.
    read_word(warp, lane, word, mask, !strict_ && written);
  });
}

void SharedShadow::read_compared(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
  const Access access{.warp = agent(warp), .lane = lane, .atomic = true, .what = "read"};
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    const Stamp writer = writer_[word];
    if (mask != kAllBytes || writer == kBytesStamp) return read_word(warp, lane, word, mask, false);
    if (writer == 0) uninitialized(access, word * 4);
    check_writer(writer, access, word * 4);
    note_read(compared_[word][static_cast<std::size_t>(warp)], warp, lane);
  });
}

bool SharedShadow::written_in_part(std::uint32_t word, std::uint32_t byte_mask) const {
  if (writer_[word] != kBytesStamp) return writer_[word] != 0;
  const auto found = bytes_.find(word);
  for (std::uint32_t i = 0; i < 4 && found != bytes_.end(); ++i) {
    if (((byte_mask >> i) & 1) != 0 && found->second.writer[i] != 0) return true;
  }
  return false;
}

bool SharedShadow::look_closer(Stamp writer, Agent warp, int lane) {
  if ((writer & kForeign) == 0 && plain(writer)) {
    const std::uint32_t other = (writer >> kWarpShift) & 31u;
    const std::uint32_t all = clocks_->all_before(first_ + other, warp);
    settled(warp, other) = std::max(settled(warp, other), all);
  }
  return plain_before(writer, warp, lane);
}

// The part of read_before for asynchronous readers and for readers of other CTAs.
template <bool kEnded>
bool SharedShadow::foreign_read_before(std::uint32_t word, Agent warp, int lane) const {
  const std::uint64_t touched = touched_[word >> kBlockShift];
  if ((touched >> kForeignBit) != 0) {
    const std::uint32_t reader = foreign_[word];
    if (!all_same(load_four(&foreign_[word]), reader)) return false;
    const Access access{.warp = warp, .lane = lane, .write = kEnded};
    if (reader != 0 && !ended(records_[reader - 1], access)) return false;
  }
  __m128i late = _mm_setzero_si128();
  constexpr std::uint64_t kGroups = (1u << kWarpgroups) - 1;
  for (auto rest = static_cast<std::uint32_t>((touched >> 32) & kGroups); rest != 0;
       rest &= rest - 1) {
    const int group = lowest_lane(rest);
    const __m128i groups = _mm_srli_epi32(load_four(&matrix_[group][word]), 3);
    late = _mm_or_si128(
        late, _mm_cmpgt_epi32(groups,
                              _mm_set1_epi32(static_cast<int>(matrix_done<kEnded>(group, warp)))));
  }
  return _mm_movemask_epi8(late) == 0;
}
template bool SharedShadow::foreign_read_before<false>(std::uint32_t, Agent, int) const;
template bool SharedShadow::foreign_read_before<true>(std::uint32_t, Agent, int) const;

bool SharedShadow::write_four(int warp, int lane, std::uint32_t word, Stamp fresh) {
  const Stamp first = writer_[word];
  if (!all_same(load_four(&writer_[word]), first)) return false;
  if (first != 0 && (first >> kClockShift) >= settled(agent(warp), (first >> kWarpShift) & 31u) &&
      !look_closer(first, agent(warp), lane)) {
    return false;
  }
  if (!read_before(word, agent(warp), lane)) return false;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&writer_[word]),
                   _mm_set1_epi32(static_cast<int>(fresh)));
  return true;
}

void SharedShadow::write(int warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                         bool changes) {
  const Stamp fresh = stamp(warp, lane);
  if (bytes == 16 && write_four(warp, lane, offset / 4, fresh)) return;
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    write_word(warp, lane, word, mask, changes, fresh);
  });
}

// The entry of the table for a byte with kAtomicStamp.
const SharedShadow::Atomics& SharedShadow::atomics_at(std::uint32_t offset) const {
  const auto half = atomics_.find(offset & ~1u);
  return half != atomics_.end() ? half->second : atomics_.at(offset & ~3u);
}

// Throws if an atomic on the byte does not come before the access. If the access is an atomic too,
// it needs no order with other atomics, but it must come after the writers that the first of them
// found.
void SharedShadow::check_atomics(const Access& access, std::uint32_t offset) const {
  const Atomics& atomics = atomics_at(offset);
  if (access.atomic) return check_writer(atomics.before[offset & 3u], access, offset);
  for (Agent other = 0; other < atomics.last.size(); ++other) {
    const std::uint32_t all = clocks_->all_before(other, access.warp);
    const bool own_product = access.matrix && other == access.warp;
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t clock = atomics.last[other][static_cast<std::size_t>(lane)];
      if (clock == 0) continue;
      if (clock >= all && !own_product &&
          !clocks_->before(other, clock, lane, access.warp, access.lane)) {
        const bool same = other == access.warp;
        const std::string whose = same ? "the same warp"
                                  : other - first_ < static_cast<Agent>(warps_)
                                      ? fmt::format("warp {}", other - first_)
                                      : std::string("a warp of another CTA of the cluster");
        report_at(FaultKind::kSharedRace, lane_or_none(access.lane),
                  "{} of shared byte {}, which lane {} of {} updated by an atomic with no {} in "
                  "between",
                  access.what, offset + kSharedBase, lane, whose, missing(same));
      }
      check_proxy(other, clock, lane, access, offset);
    }
  }
}

void SharedShadow::update_word(Atomics& atomics, std::uint32_t word, std::uint32_t byte_mask,
                               const Access& access) {
  check_foreign_readers(word, access);
  const auto update = [&](Stamp& writer, std::uint32_t offset) {
    if (writer == 0) {
      report_at(FaultKind::kUninitialized, lane_or_none(access.lane),
                "atomic on shared byte {}, which was never written", offset + kSharedBase);
    }
    check_writer(writer, access, offset);
    if (writer == kAtomicStamp) return;
    atomics.before[offset & 3u] = writer;
    atomics.last.clear();
    writer = kAtomicStamp;
  };
  if (byte_mask == kAllBytes && writer_[word] != kBytesStamp) {
    check_readers(word, access);
    update(writer_[word], word * 4);
    atomics.before.fill(atomics.before[0]);
  } else {
    ByteStamps& bytes = by_bytes(word);
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (((byte_mask >> i) & 1) == 0) continue;
      for (int other = 0; other < warps_; ++other) {
        check_reader(bytes.readers[i][static_cast<std::size_t>(other)], other, access,
                     word * 4 + i);
      }
      update(bytes.writer[i], word * 4 + i);
    }
  }
  if (atomics.last.empty()) atomics.last.resize(clocks_->warps());
  atomics.last[access.warp][static_cast<std::size_t>(access.lane)] = clocks_->clock(access.warp);
}

void SharedShadow::atomic(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                          bool learns) {
  const Access access{.warp = warp, .lane = lane, .atomic = true, .what = "atomic update"};
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
    update_word(atomics_[word * 4 + first], word, mask, access);
  });
  ClusterClocks::Vector& released = atomics_[offset].released;
  if (learns) clocks_->acquire_lane(released, warp, lane);
  clocks_->release_lane(released, warp, lane);
}

void SharedShadow::begin_flight(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
  const Stamp flight = (kFlightClock << kClockShift) |
                       (static_cast<std::uint32_t>(warp) << kWarpShift) |
                       static_cast<std::uint32_t>(lane);
  if (bytes == 16 && write_four(warp, lane, offset / 4, flight)) return;
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    write_word(warp, lane, word, mask, true, flight);
  });
}

void SharedShadow::put_writer(std::uint32_t offset, std::uint32_t bytes, Stamp fresh) {
  if (bytes == 16) {
    const __m128i writers = load_four(&writer_[offset / 4]);
    const __m128i split = _mm_cmpeq_epi32(writers, _mm_set1_epi32(static_cast<int>(kBytesStamp)));
    if (_mm_movemask_epi8(split) == 0) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(&writer_[offset / 4]),
                       _mm_set1_epi32(static_cast<int>(fresh)));
      return;
    }
  }
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    if (mask == kAllBytes && writer_[word] != kBytesStamp) {
      writer_[word] = fresh;
      return;
    }
    ByteStamps& stamps = by_bytes(word);
    for (std::uint32_t i = 0; i < 4; ++i) {
      if ((mask >> i) & 1) stamps.writer[i] = fresh;
    }
  });
}

}  // namespace annulus::simulator
