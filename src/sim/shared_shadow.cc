#include "sim/shared_shadow.h"

#include <algorithm>

#include "sim/context.h"

namespace annulus::sim {
namespace {

// Who left a stamp, as `warp` would say it.
std::string who(int other_warp, std::uint32_t lane, int warp) {
  const std::string whose =
      other_warp == warp ? std::string("the same warp") : fmt::format("warp {}", other_warp);
  if (lane == SharedShadow::kCollective) return fmt::format("all lanes of {} at once", whose);
  if (lane == SharedShadow::kSeveral) return fmt::format("several lanes of {}", whose);
  return fmt::format("lane {} of {}", lane, whose);
}

// What would have ordered two accesses.
const char* what_is_missing(int other_warp, int warp) {
  return other_warp == warp ? "bar.warp.sync (__syncwarp) or barrier" : "barrier";
}

constexpr std::uint32_t kAllBytes = 15;

}  // namespace

void SharedShadow::reset(std::uint32_t bytes, int warps) {
  words_ = (bytes + 3) / 4;
  warps_ = warps;
  writer_.assign(words_, 0);
  readers_.assign(static_cast<std::size_t>(words_) * static_cast<std::size_t>(warps), 0);
  clock_.fill(1);
  for (auto& row : known_) row.fill(0);
  bytes_.clear();
  atomics_.clear();
}

bool SharedShadow::ordered_read(std::uint32_t reader, int reader_warp, int warp, int lane) const {
  if (reader == 0) return true;
  const std::uint32_t clock = reader >> kWarpShift;
  if (reader_warp != warp) {
    return clock <= known_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(reader_warp)];
  }
  const int other_lane = static_cast<int>(reader & 63u);
  // A collective read has been executed by every lane when any lane goes on.
  return clock < clock_[static_cast<std::size_t>(warp)] || other_lane == lane ||
         other_lane == kCollective;
}

void SharedShadow::check_written(std::uint32_t writer, int warp, int lane, std::uint32_t offset,
                                 const char* what) const {
  const int other = static_cast<int>((writer >> kWarpShift) & 31u);
  if ((writer >> kClockShift) == kFlightClock) {
    raise_at(FaultKind::kInFlight, lane < kLanes ? lane : -1,
             "{} of shared byte {}, into which {} copies asynchronously; wait for the copy first",
             what, offset + kSharedBase, who(other, writer & 63u, warp));
  }
  if (!ordered_write(writer, warp, lane)) {
    raise_at(FaultKind::kSharedRace, lane < kLanes ? lane : -1,
             "{} of shared byte {}, which {} wrote with no {} in between", what,
             offset + kSharedBase, who(other, writer & 63u, warp), what_is_missing(other, warp));
  }
}

void SharedShadow::note_read(std::uint32_t& reader, int warp, int lane) const {
  const std::uint32_t clock = clock_[static_cast<std::size_t>(warp)] << kWarpShift;
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

void SharedShadow::read_word(int warp, int lane, std::uint32_t word, std::uint32_t byte_mask) {
  const std::uint32_t writer = writer_[word];
  if (byte_mask == kAllBytes && writer != kBytesStamp) {
    if (writer == 0) {
      raise_at(FaultKind::kUninitialized, lane < kLanes ? lane : -1,
               "read of shared byte {}, which nothing wrote", word * 4 + kSharedBase);
    }
    check_written(writer, warp, lane, word * 4, "read");
    note_read(readers_[static_cast<std::size_t>(warp) * words_ + word], warp, lane);
    return;
  }
  ByteStamps& bytes = by_bytes(word);
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (((byte_mask >> i) & 1) == 0) continue;
    if (bytes.writer[i] == 0) {
      raise_at(FaultKind::kUninitialized, lane < kLanes ? lane : -1,
               "read of shared byte {}, which nothing wrote", word * 4 + i + kSharedBase);
    }
    check_written(bytes.writer[i], warp, lane, word * 4 + i, "read");
    note_read(bytes.readers[i][static_cast<std::size_t>(warp)], warp, lane);
  }
}

void SharedShadow::write_word(int warp, int lane, std::uint32_t word, std::uint32_t byte_mask,
                              bool changes, std::uint32_t new_stamp) {
  const auto check = [&](std::uint32_t writer, const auto& reader_of, std::uint32_t offset) {
    if (writer != 0 && (changes || (writer >> kClockShift) == kFlightClock)) {
      check_written(writer, warp, lane, offset, "write");
    }
    for (int other = 0; changes && other < warps_; ++other) {
      const std::uint32_t reader = reader_of(static_cast<std::size_t>(other));
      if (!ordered_read(reader, other, warp, lane)) {
        raise_at(FaultKind::kSharedRace, lane < kLanes ? lane : -1,
                 "write of shared byte {}, which {} read with no {} in between",
                 offset + kSharedBase, who(other, reader & 63u, warp),
                 what_is_missing(other, warp));
      }
    }
  };
  if (byte_mask == kAllBytes && writer_[word] != kBytesStamp) {
    check(
        writer_[word], [&](std::size_t other) { return readers_[other * words_ + word]; },
        word * 4);
    writer_[word] = new_stamp;
    return;
  }
  ByteStamps& bytes = by_bytes(word);
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (((byte_mask >> i) & 1) == 0) continue;
    check(
        bytes.writer[i], [&](std::size_t other) { return bytes.readers[i][other]; }, word * 4 + i);
    bytes.writer[i] = new_stamp;
  }
}

namespace {

// Calls visit(word, byte mask) for the words of a range.
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
  for_words(offset, bytes,
            [&](std::uint32_t word, std::uint32_t mask) { read_word(warp, lane, word, mask); });
}

bool SharedShadow::write_four(int warp, int lane, std::uint32_t word, std::uint32_t new_stamp) {
  const __m128i writers = load_four(&writer_[word]);
  const std::uint32_t first = writer_[word];
  const __m128i same = _mm_cmpeq_epi32(writers, _mm_set1_epi32(static_cast<int>(first)));
  if (_mm_movemask_epi8(same) != 0xffff || (first >> kClockShift) >= kBytesClock ||
      (first != 0 && !ordered_write(first, warp, lane))) {
    return false;
  }
  const auto self = static_cast<std::size_t>(warp);
  __m128i late = _mm_setzero_si128();
  for (std::size_t other = 0; other < static_cast<std::size_t>(warps_); ++other) {
    const __m128i times = _mm_srli_epi32(load_four(&readers_[other * words_ + word]), kWarpShift);
    // Own reads must be from before the last synchronisation; the slow way knows the exceptions.
    const std::uint32_t limit = other == self ? clock_[self] - 1 : known_[self][other];
    late = _mm_or_si128(late, _mm_cmpgt_epi32(times, _mm_set1_epi32(static_cast<int>(limit))));
  }
  if (_mm_movemask_epi8(late) != 0) return false;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&writer_[word]),
                   _mm_set1_epi32(static_cast<int>(new_stamp)));
  return true;
}

void SharedShadow::write(int warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                         bool changes) {
  const std::uint32_t fresh = stamp(warp, lane);
  if (bytes == 16 && write_four(warp, lane, offset / 4, fresh)) return;
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    write_word(warp, lane, word, mask, changes, fresh);
  });
}

void SharedShadow::atomic(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
  const auto self = static_cast<std::size_t>(warp);
  auto [place, fresh] = atomics_.try_emplace(offset / 4);
  Times& seen = place->second;
  if (fresh) seen.fill(0);
  acquire(seen, warp);  // what earlier atomics on this word released
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    if (writer_[word] == 0) {
      raise_at(FaultKind::kUninitialized, lane, "atomic on shared byte {}, which nothing wrote",
               offset + kSharedBase);
    }
    // Atomics of one instruction hit a word lane after lane; that order is theirs to have.
    const int as = fresh ? lane : kCollective;
    if (fresh || ((writer_[word] >> kWarpShift) & 31u) != self) {
      write_word(warp, as, word, mask, true, stamp(warp, kCollective));
    } else {
      writer_[word] = stamp(warp, kCollective);
    }
  });
  arrive(seen, warp);
}

void SharedShadow::begin_flight(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
  const std::uint32_t flight = (kFlightClock << kClockShift) |
                               (static_cast<std::uint32_t>(warp) << kWarpShift) |
                               static_cast<std::uint32_t>(lane);
  if (bytes == 16 && write_four(warp, lane, offset / 4, flight)) return;
  for_words(offset, bytes, [&](std::uint32_t word, std::uint32_t mask) {
    write_word(warp, lane, word, mask, true, flight);
  });
}

void SharedShadow::end_flight(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
  const std::uint32_t fresh = stamp(warp, lane);
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

void SharedShadow::tick(int warp) {
  std::uint32_t& clock = clock_[static_cast<std::size_t>(warp)];
  // At the end of its range the clock stands still: later races go unseen, none is invented.
  if (clock + 1 < kBytesClock) ++clock;
}

void SharedShadow::arrive(Times& times, int warp) {
  const auto self = static_cast<std::size_t>(warp);
  for (std::size_t other = 0; other < 32; ++other) {
    times[other] = std::max(times[other], known_[self][other]);
  }
  times[self] = std::max(times[self], clock_[self]);
  tick(warp);
}

void SharedShadow::acquire(const Times& times, int warp) {
  Times& known = known_[static_cast<std::size_t>(warp)];
  for (std::size_t other = 0; other < 32; ++other)
    known[other] = std::max(known[other], times[other]);
}

}  // namespace annulus::sim
