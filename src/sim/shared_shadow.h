#ifndef ANNULUS_SIM_SHARED_SHADOW_H_
#define ANNULUS_SIM_SHARED_SHADOW_H_

// What the checked twin knows about shared memory: for every word who wrote it and who read it, and
// when. Races are found with vector clocks (FastTrack, Flanagan and Freund, PLDI 2009): each warp
// has a clock that ticks at every synchronisation it takes part in, and a vector of the clocks of
// the other warps that it is known to come after.
//
// A stamp is what an access leaves behind in a word:
//   | clock : 21 | warp : 5 | lane : 6 |      0: nothing wrote the word
// Lane 62 stands for all lanes together (ldmatrix), 63 for several.
//
// Accesses of one warp are ordered lane by lane: what one lane wrote another lane sees only after
// bar.warp.sync or a CTA barrier, as on hardware with independent thread scheduling. Words that are
// accessed by bytes or halves move to a table of their own with a stamp per byte, so neighbours in
// a word never look like a race.

#include <immintrin.h>

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace annulus::sim {

class SharedShadow {
 public:
  static constexpr int kCollective = 62;
  static constexpr int kSeveral = 63;

  // Forgets everything; for a new CTA.
  void reset(std::uint32_t bytes, int warps);

  // Checks and records an access of `bytes` at byte `offset` (in bounds). Throws Fault.
  void read(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
    if (bytes == 16 && (offset & 15u) == 0 && read_four(warp, lane, offset / 4)) return;
    read_slowly(warp, lane, offset, bytes);
  }
  // `changes` says whether the stored bytes differ from what is there: unordered writes of the
  // same value are common and harmless.
  void write(int warp, int lane, std::uint32_t offset, std::uint32_t bytes, bool changes);
  // An atomic access: ordered with other atomics on the word, which also order their warps.
  void atomic(int warp, int lane, std::uint32_t offset, std::uint32_t bytes);

  // An asynchronous copy into the bytes starts / has been waited for by its warp.
  void begin_flight(int warp, int lane, std::uint32_t offset, std::uint32_t bytes);
  void end_flight(int warp, int lane, std::uint32_t offset, std::uint32_t bytes);

  // What a barrier has seen: of each warp, the accesses that came before its arrival.
  using Times = std::array<std::uint32_t, 32>;

  // bar.warp.sync: earlier accesses of every lane come before later ones of every other.
  void tick(int warp);
  // The warp arrives at a barrier (release) / goes on from a completed one (acquire).
  void arrive(Times& times, int warp);
  void acquire(const Times& times, int warp);

 private:
  static constexpr std::uint32_t kClockShift = 11;
  static constexpr std::uint32_t kWarpShift = 6;
  static constexpr std::uint32_t kClockMax = (1u << 21) - 1;
  static constexpr std::uint32_t kFlightClock = kClockMax;     // in flight
  static constexpr std::uint32_t kBytesClock = kClockMax - 1;  // see bytes_
  static constexpr std::uint32_t kBytesStamp = kBytesClock << kClockShift;

  static __m128i load_four(const std::uint32_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }

  struct ByteStamps {
    std::array<std::uint32_t, 4> writer{};
    std::array<std::array<std::uint32_t, 32>, 4> readers{};  // clock << 6 | lane
  };

  // The usual cases, four words at once: true when nothing was wrong and all is recorded. False
  // decides nothing; the slow way then finds the reason or the rare case.
  bool read_four(int warp, int lane, std::uint32_t word);
  bool write_four(int warp, int lane, std::uint32_t word, std::uint32_t new_stamp);
  void read_slowly(int warp, int lane, std::uint32_t offset, std::uint32_t bytes);

  std::uint32_t stamp(int warp, int lane) const {
    return (clock_[static_cast<std::size_t>(warp)] << kClockShift) |
           (static_cast<std::uint32_t>(warp) << kWarpShift) | static_cast<std::uint32_t>(lane);
  }
  bool ordered_write(std::uint32_t writer, int warp, int lane) const;
  bool ordered_read(std::uint32_t reader, int reader_warp, int warp, int lane) const;
  void check_written(std::uint32_t writer, int warp, int lane, std::uint32_t offset,
                     const char* what) const;
  void note_read(std::uint32_t& reader, int warp, int lane) const;
  ByteStamps& by_bytes(std::uint32_t word);
  void read_word(int warp, int lane, std::uint32_t word, std::uint32_t byte_mask);
  void write_word(int warp, int lane, std::uint32_t word, std::uint32_t byte_mask, bool changes,
                  std::uint32_t new_stamp);

  int warps_ = 0;
  std::uint32_t words_ = 0;
  std::vector<std::uint32_t> writer_;   // [word]
  std::vector<std::uint32_t> readers_;  // [warp][word], clock << 6 | lane
  Times clock_{};                       // [warp]
  std::array<Times, 32> known_{};       // [warp][other]
  std::unordered_map<std::uint32_t, ByteStamps> bytes_;
  std::unordered_map<std::uint32_t, Times> atomics_;
};

inline bool SharedShadow::ordered_write(std::uint32_t writer, int warp, int lane) const {
  const int other = static_cast<int>((writer >> kWarpShift) & 31u);
  const std::uint32_t clock = writer >> kClockShift;
  if (other != warp) {
    return clock <= known_[static_cast<std::size_t>(warp)][static_cast<std::size_t>(other)];
  }
  const int other_lane = static_cast<int>(writer & 63u);
  return clock < clock_[static_cast<std::size_t>(warp)] || other_lane == lane;
}

inline bool SharedShadow::read_four(int warp, int lane, std::uint32_t word) {
  const __m128i writers = load_four(&writer_[word]);
  const std::uint32_t first = writer_[word];
  const __m128i same = _mm_cmpeq_epi32(writers, _mm_set1_epi32(static_cast<int>(first)));
  if (_mm_movemask_epi8(same) != 0xffff || first == 0 || (first >> kClockShift) >= kBytesClock ||
      !ordered_write(first, warp, lane)) {
    return false;
  }
  std::uint32_t* reader = &readers_[static_cast<std::size_t>(warp) * words_ + word];
  const std::uint32_t clock = clock_[static_cast<std::size_t>(warp)] << kWarpShift;
  const __m128i fresh = _mm_set1_epi32(static_cast<int>(clock | static_cast<std::uint32_t>(lane)));
  const __m128i known = load_four(reader);
  if (_mm_movemask_epi8(_mm_cmpeq_epi32(known, fresh)) == 0xffff) return true;
  // Read at this time before, by another lane: the records have to be merged.
  const __m128i times = _mm_and_si128(known, _mm_set1_epi32(~63));
  if (_mm_movemask_epi8(_mm_cmpeq_epi32(times, _mm_set1_epi32(static_cast<int>(clock)))) != 0) {
    return false;
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(reader), fresh);
  return true;
}

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_SHARED_SHADOW_H_
