#ifndef ANNULUS_SIMULATOR_CHECK_SHARED_SHADOW_H_
#define ANNULUS_SIMULATOR_CHECK_SHARED_SHADOW_H_

// The records of checked mode for the shared memory of a CTA: which warp or copy wrote each word,
// which warps read it, and at which clocks (simulator/check/cluster_clocks.h).
//
// A write leaves a stamp in each word:
//   | 0 | clock : 20 | warp : 5 | lane : 6 |   a warp of this CTA; all zero: nothing wrote the word
//   | 1 | index : 31                       |   an entry of the table of asynchronous accesses
// The clock kAtomicClock stands for atomics, whose details are in a separate table. Lane 62 stands
// for all lanes together (ldmatrix), 63 for several.
//
// Accesses of a warp are ordered for each lane: a lane sees what another lane wrote only after
// bar.warp.sync or a CTA barrier, as on hardware with independent thread scheduling. Words that are
// accessed by bytes or halves move to a table with a stamp for each byte. So accesses to different
// bytes of a word never look like a race.
//
// Two kinds of access are asynchronous. A bulk copy writes or reads a range at some moment between
// its issue and its completion. A matrix product (wgmma) reads its operands between its issue and
// the wait for it. Both come after everything that comes before their issue, but after writes of
// warps only if there is a proxy fence in between. An access comes after them only if its warp has
// learnt of their completion.

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/check/cluster_clocks.h"
#include "simulator/program/lanes.h"

namespace annulus::simulator {

// The number of a lane for messages, or -1 for accesses that belong to no single lane.
inline int lane_or_none(int lane) { return lane < kLanes ? lane : -1; }

class SharedShadow {
 public:
  static constexpr int kCollective = ClusterClocks::kCollective;
  static constexpr int kSeveral = ClusterClocks::kSeveral;
  using Agent = ClusterClocks::Agent;

  // Removes all records, for a new CTA whose warps are the agents from `first` on. `by_warp` means
  // that a wait for matrix products covers only the part of the waiting warp, not the whole
  // warpgroup's. With `strict` false, a product of a warpgroup begins when its last warp issues it,
  // after everything that the four warps have written and fenced. Also, matrices that were never
  // written may then be loaded or multiplied.
  void reset(std::uint32_t bytes, int warps, ClusterClocks& clocks, Agent first, bool by_warp,
             bool strict);

  // Checks and records an access of `bytes` bytes at `offset`, which must be in bounds. Throws
  // Fault.
  void read(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
    if (bytes == 16 && (offset & 15u) == 0 && read_four(warp, lane, offset / 4)) return;
    read_slowly(warp, lane, offset, bytes);
  }
  // A read of a value that the thread then compares by an atomic
  // (simulator/decode/compared_loads.h). It needs no order with the atomics on the word, only with
  // all other writes.
  void read_compared(int warp, int lane, std::uint32_t offset, std::uint32_t bytes);
  // `changes`: the stored bytes differ from the bytes in memory. Unordered writes of the same value
  // are common and harmless.
  void write(int warp, int lane, std::uint32_t offset, std::uint32_t bytes, bool changes);
  // A lane of `warp` (of any CTA of the cluster) updates the bytes by an atomic. Atomics on a word
  // need no order among themselves. They need one with all other accesses, including those of other
  // lanes of the warp. The lane's earlier accesses come before accesses of a lane that makes a
  // later atomic on the word and uses its result (`learns`). That does not order the update itself.
  // After all lanes of an instruction, the warp's clock has to advance.
  void atomic(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes, bool learns);

  // Begin and end of a cp.async into the bytes. The end is the wait of its warp.
  void begin_flight(int warp, int lane, std::uint32_t offset, std::uint32_t bytes);
  void end_flight(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
    put_writer(offset, bytes, stamp(warp, lane));
  }
  // An mbarrier counts the copy. The copy comes before everything after a wait for the mbarrier
  // (Foreign::kCopy).
  void end_flight(std::uint32_t offset, std::uint32_t bytes, std::uint32_t record) {
    put_writer(offset, bytes, kForeign | record);
  }

  // bar.warp.sync: earlier accesses of every lane come before later ones of every other lane.
  void tick(int warp) { clocks_->sync(first_ + static_cast<Agent>(warp)); }

  // --- Asynchronous accesses, and accesses of other CTAs of the cluster ---

  enum class Foreign : std::uint8_t {
    kBulkWrite,
    kBulkRead,
    kRemote,   // an ordinary access by a warp of another CTA
    kCopy,     // a cp.async that an mbarrier counts
    kMbarrier  // not an access: the word is part of an mbarrier
  };
  static constexpr std::uint32_t kPending = 0xffffffffu;
  struct Record {
    Foreign kind = Foreign::kBulkWrite;
    // A warp for which `agent` is known up to and including `clock` comes after the access.
    Agent agent = 0;
    std::uint32_t clock = kPending;
    int lane = kCollective;  // the lane of the agent, if the agent is a warp
    std::uint32_t pc = 0;    // the place of the instruction
    std::string what;        // a description for messages: "a bulk copy for the mbarrier at 1032"
  };
  // Adds a record and returns its index.
  std::uint32_t add(Record record);
  // The access is over. From now on it counts as made at this clock of its agent.
  void complete(std::uint32_t record, std::uint32_t clock) { records_[record].clock = clock; }
  std::uint32_t clock_of(std::uint32_t record) const { return records_[record].clock; }

  // `warp` (of any CTA of the cluster) starts an asynchronous write or read of the range.
  void begin_write(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                   std::uint32_t record);
  void begin_read(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                  std::uint32_t record);
  // The warps of `warps` (bits, relative to the warpgroup's first warp) start a matrix product. It
  // reads 16 bytes at each of `offsets`. It is part of each warp's `group`-th group, counted from
  // 1.
  void matrix_read(int warpgroup, std::uint32_t warps, std::span<const std::uint32_t> offsets,
                   std::uint32_t group);
  // A warp of another CTA reads or writes. `record` is of kind kRemote and complete.
  void remote_read(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                   std::uint32_t record);
  void remote_write(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                    std::uint32_t record);
  // make_object() makes the words an mbarrier. end_object() makes them memory again, which counts
  // as written by this lane.
  void make_object(int warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                   std::uint32_t record);
  void end_object(int warp, int lane, std::uint32_t offset, std::uint32_t bytes);

 private:
  using Stamp = std::uint32_t;
  static constexpr std::uint32_t kForeign = 1u << 31;
  static constexpr std::uint32_t kClockShift = 11;
  static constexpr std::uint32_t kWarpShift = 6;
  // marks words with stamps in bytes_
  static constexpr std::uint32_t kBytesClock = ClusterClocks::kMax + 1;
  // marks words into which a copy is in flight
  static constexpr std::uint32_t kFlightClock = ClusterClocks::kMax + 2;
  // marks words with entries in atomics_
  static constexpr std::uint32_t kAtomicClock = ClusterClocks::kMax + 3;
  static constexpr Stamp kBytesStamp = kBytesClock << kClockShift;
  static constexpr Stamp kAtomicStamp = kAtomicClock << kClockShift;
  // For each block of 64 words there is a bit for each reader that ever read a word of it: bits 0
  // to 31 for the warps, bits 32 to 39 for products of the warpgroups, and bit 40 for bulk copies
  // and other CTAs.
  static constexpr std::uint32_t kBlockShift = 6;
  static constexpr int kWarpgroups = 8;
  static constexpr int kForeignBit = 40;

  // The access that is being checked now.
  struct Access {
    Agent warp;
    int lane;
    bool async = false;   // uses the asynchronous proxy
    bool matrix = false;  // a matrix product, which all lanes of the warp execute together
    bool write = false;   // an asynchronous write: reads before it need only have ended
    bool atomic = false;
    const char* what = "";  // a description for messages
  };
  struct ByteStamps {
    std::array<Stamp, 4> writer{};
    std::array<std::array<std::uint32_t, 32>, 4> readers{};  // clock << 6 | lane
  };
  // The atomics on a word, or on a half of it.
  struct Atomics {
    ClusterClocks::Vector released;  // the accesses that all of them released
    std::array<Stamp, 4> before{};   // the writers of the bytes before the first atomic
    // [warp of the cluster][lane]: clocks of the last atomic
    std::vector<std::array<std::uint32_t, kLanes>> last;
  };

  static __m128i load_four(const std::uint32_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static bool all_same(__m128i four, std::uint32_t value) {
    const __m128i same = _mm_cmpeq_epi32(four, _mm_set1_epi32(static_cast<int>(value)));
    return _mm_movemask_epi8(same) == 0xffff;
  }
  static bool plain(Stamp stamp) { return (stamp >> kClockShift) < kBytesClock; }
  // Whether equal stamps of two words mean the same writer.
  static bool names_writer(Stamp stamp) { return stamp != kBytesStamp && stamp != kAtomicStamp; }

  Agent agent(int warp) const { return first_ + static_cast<Agent>(warp); }
  Stamp stamp(int warp, int lane) const {
    return (clocks_->clock(agent(warp)) << kClockShift) |
           (static_cast<std::uint32_t>(warp) << kWarpShift) | static_cast<std::uint32_t>(lane);
  }
  // Whether the stamped write comes before an access that `lane` of `warp` makes now.
  bool ordered_write(Stamp writer, Agent warp, int lane) const {
    return clocks_->before(first_ + ((writer >> kWarpShift) & 31u), writer >> kClockShift,
                           static_cast<int>(writer & 63u), warp, lane);
  }
  bool ordered_read(std::uint32_t reader, int reader_warp, const Access& access) const;
  bool ordered(const Record& record, Agent warp, int lane) const;
  bool ended(const Record& record, const Access& access) const;
  // Whether the stamp is of a usual kind, a warp's write or a bulk copy, and the write comes before
  // an access that `lane` of `warp` makes now.
  bool plain_before(Stamp writer, Agent warp, int lane) const {
    if ((writer & kForeign) == 0) return plain(writer) && ordered_write(writer, warp, lane);
    const Record& record = records_[writer & ~kForeign];
    return record.kind == Foreign::kBulkWrite && ordered(record, warp, lane);
  }
  // plain_before() for a stamp that `settled_` does not cover. Updates `settled_`, so that it
  // covers the stamp the next time.
  bool look_closer(Stamp writer, Agent warp, int lane);
  template <bool kEnded = false>
  std::uint32_t& settled(Agent warp, std::uint32_t other) {
    return kEnded ? ended_[warp][other] : settled_[warp][other];
  }
  // The last group of matrix products of the warpgroup that has ended. The groups up to and
  // including it come before what the warp does now. With kEnded they have ended.
  template <bool kEnded = false>
  std::uint32_t matrix_done(int warpgroup, Agent warp) const;

  // Fast paths for the usual cases, four words at once. True: there was no fault, and the access is
  // recorded. False: undecided, and the slow path finds the fault or the rare case.
  bool read_four(int warp, int lane, std::uint32_t word);
  bool write_four(int warp, int lane, std::uint32_t word, Stamp fresh);
  // Whether all reads of four words come before what the lane does now. With kEnded: whether they
  // have ended, which is enough for an asynchronous write. False means undecided.
  template <bool kEnded = false>
  bool read_before(std::uint32_t word, Agent warp, int lane) {
    const std::uint64_t touched = touched_[word >> kBlockShift];
    const auto readers = static_cast<std::uint32_t>(touched);
    return compared_.empty() &&
           (warps_read_before<false, kEnded>(word, readers, warp) ||
            warps_read_before<true, kEnded>(word, readers, warp)) &&
           ((touched >> 32) == 0 || foreign_read_before<kEnded>(word, warp, lane));
  }
  template <bool kCloser, bool kEnded>
  bool warps_read_before(std::uint32_t word, std::uint32_t readers, Agent warp);
  template <bool kEnded>
  bool foreign_read_before(std::uint32_t word, Agent warp, int lane) const;
  void read_slowly(int warp, int lane, std::uint32_t offset, std::uint32_t bytes);

  void put_writer(std::uint32_t offset, std::uint32_t bytes, Stamp fresh);
  Agent issuer_for(int warpgroup, std::uint32_t word, Agent warp) const;

  // Each of these throws Fault if an earlier access does not come before this one.
  void check_writer(Stamp writer, const Access& access, std::uint32_t offset) const;
  void check_foreign_writer(const Record& record, const Access& access, std::uint32_t offset) const;
  void check_proxy(Agent agent, std::uint32_t clock, int lane, const Access& access,
                   std::uint32_t offset) const;
  void check_reader(std::uint32_t reader, int warp, const Access& access,
                    std::uint32_t offset) const;
  void check_readers(std::uint32_t word, const Access& access) const;
  void check_compared(std::uint32_t word, const Access& access) const;
  const Atomics& atomics_at(std::uint32_t offset) const;
  void check_atomics(const Access& access, std::uint32_t offset) const;
  void update_word(Atomics& atomics, std::uint32_t word, std::uint32_t byte_mask,
                   const Access& access);
  void check_foreign_readers(std::uint32_t word, const Access& access) const;
  void check_all_writers(std::uint32_t word, const Access& access);
  void check_all(std::uint32_t word, const Access& access);
  void uninitialized(const Access& access, std::uint32_t offset) const;

  void note_read(std::uint32_t& reader, int warp, int lane) const;
  ByteStamps& by_bytes(std::uint32_t word);
  // With `in_part`, some of the bytes may be unwritten.
  void read_word(int warp, int lane, std::uint32_t word, std::uint32_t byte_mask, bool in_part);
  bool written_in_part(std::uint32_t word, std::uint32_t byte_mask) const;
  void write_word(int warp, int lane, std::uint32_t word, std::uint32_t byte_mask, bool changes,
                  Stamp fresh);
  std::string who(Stamp stamp, Agent asking) const;

  int warps_ = 0;
  std::uint32_t words_ = 0;
  ClusterClocks* clocks_ = nullptr;
  Agent first_ = 0;
  bool by_warp_ = false;
  bool strict_ = true;
  // [warp A of the cluster][warp B of this CTA]: accesses of all lanes of B before this clock are
  // known to come before what A does now. It is a cache of ClusterClocks::all_before, whose value
  // may be larger by now, but never smaller.
  std::array<std::array<std::uint32_t, 32>, ClusterClocks::kMaxWarps> settled_{};
  // A cache of all_before<true> in the same way: these accesses are known to have ended.
  std::array<std::array<std::uint32_t, 32>, ClusterClocks::kMaxWarps> ended_{};
  std::vector<Stamp> writer_;                       // [word]
  std::vector<std::uint32_t> readers_;              // [warp][word], clock << 6 | lane
  std::vector<std::uint64_t> touched_;              // [block]
  std::vector<std::uint32_t> matrix_[kWarpgroups];  // [word]: the last matrix product that read it
  // [word]: record + 1 of the last read by a bulk copy or another CTA; empty until needed. An
  // earlier such read that is still under way is forgotten. So a write that waits only for the last
  // read is not found.
  std::vector<std::uint32_t> foreign_;
  std::vector<Record> records_;
  std::unordered_map<std::uint32_t, ByteStamps> bytes_;
  std::unordered_map<std::uint32_t, Atomics> atomics_;  // by the offset of the word or of its half
  // [word][warp]: the reads of read_compared, in the form of readers_.
  std::unordered_map<std::uint32_t, std::array<std::uint32_t, 32>> compared_;
};

inline bool SharedShadow::read_four(int warp, int lane, std::uint32_t word) {
  const __m128i writers = load_four(&writer_[word]);
  const Stamp first = writer_[word];
  if (!all_same(writers, first) || first == 0) return false;
  // Every stamp other than a warp's write is larger than any clock, so it takes the slow path of
  // look_closer().
  if ((first >> kClockShift) >= settled(agent(warp), (first >> kWarpShift) & 31u) &&
      !look_closer(first, agent(warp), lane)) {
    return false;
  }
  std::uint64_t& touched = touched_[word >> kBlockShift];
  if (((touched >> warp) & 1) == 0) touched |= std::uint64_t{1} << warp;
  std::uint32_t* reader = &readers_[static_cast<std::size_t>(warp) * words_ + word];
  const std::uint32_t clock = clocks_->clock(agent(warp)) << kWarpShift;
  const __m128i fresh = _mm_set1_epi32(static_cast<int>(clock | static_cast<std::uint32_t>(lane)));
  const __m128i known = load_four(reader);
  if (_mm_movemask_epi8(_mm_cmpeq_epi32(known, fresh)) == 0xffff) return true;
  // Another lane has read a word at this clock already; note_read merges the two.
  const __m128i times = _mm_and_si128(known, _mm_set1_epi32(~63));
  if (_mm_movemask_epi8(_mm_cmpeq_epi32(times, _mm_set1_epi32(static_cast<int>(clock)))) != 0) {
    return false;
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(reader), fresh);
  return true;
}

// Whether all reads by the warps `readers` come before, according to `settled_` (or `ended_`). With
// kCloser that cache is updated first.
template <bool kCloser, bool kEnded>
inline bool SharedShadow::warps_read_before(std::uint32_t word, std::uint32_t readers, Agent warp) {
  __m128i late = _mm_setzero_si128();
  for (; readers != 0; readers &= readers - 1) {
    const auto other = static_cast<std::uint32_t>(__builtin_ctz(readers));
    const __m128i times =
        _mm_srli_epi32(load_four(&readers_[std::size_t{other} * words_ + word]), kWarpShift);
    std::uint32_t& limit = settled<kEnded>(warp, other);
    if (kCloser) limit = std::max(limit, clocks_->all_before<kEnded>(first_ + other, warp));
    // Clocks have 20 bits, so a signed comparison is right. Limits start at 1 (reset).
    late = _mm_or_si128(late, _mm_cmpgt_epi32(times, _mm_set1_epi32(static_cast<int>(limit - 1))));
  }
  return _mm_movemask_epi8(late) == 0;
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_SHARED_SHADOW_H_
