// Asynchronous accesses to shared memory, and accesses of other CTAs of the cluster: which accesses
// they must come after, and which must come after them.

#include <algorithm>

#include "simulator/check/shared_shadow.h"
#include "simulator/fault/fault.h"
#include "simulator/program/address_spaces.h"
#include "simulator/program/lanes.h"

namespace annulus::simulator {
namespace {

// The last matrix product that read a word:  | group : 29 | warp of the warpgroup : 3 |
// Warp 4 stands for all warps of the warpgroup, or for more than one.
constexpr std::uint32_t kReaderBits = 3;
constexpr std::uint32_t kAllWarps = 4;

}  // namespace

std::uint32_t SharedShadow::add(Record record) {
  records_.push_back(std::move(record));
  return static_cast<std::uint32_t>(records_.size()) - 1;
}

bool SharedShadow::ordered(const Record& record, Agent warp, int lane) const {
  if (record.clock == kPending) return false;
  return clocks_->before(record.agent, record.clock, record.lane, warp, lane);
}

// Whether a recorded access comes before this one. For an asynchronous write it is enough that the
// recorded access has ended.
bool SharedShadow::ended(const Record& record, const Access& access) const {
  if (!access.write) return ordered(record, access.warp, access.lane);
  if (record.clock == kPending) return false;
  return clocks_->ended(record.agent, record.clock, record.lane, access.warp, access.lane);
}

// If the wait of one warp covers the whole warpgroup's product, the largest group of its warps
// counts. With by_warp_ the wait covers only the warp's own part, so all warps must have waited and
// the smallest group counts.
template <bool kEnded>
std::uint32_t SharedShadow::matrix_done(int warpgroup, Agent warp) const {
  std::uint32_t done = by_warp_ ? ~0u : 0;
  for (int i = 0; i < 4; ++i) {
    const int reader = 4 * warpgroup + i;
    if (reader >= warps_) break;
    const std::uint32_t all =
        clocks_->all_before<kEnded>(clocks_->matrix_unit(agent(reader)), warp);
    const std::uint32_t groups = all == 0 ? 0 : all - 1;
    done = by_warp_ ? std::min(done, groups) : std::max(done, groups);
  }
  return done;
}

template std::uint32_t SharedShadow::matrix_done<false>(int, Agent) const;
template std::uint32_t SharedShadow::matrix_done<true>(int, Agent) const;

void SharedShadow::check_foreign_writer(const Record& record, const Access& access,
                                        std::uint32_t offset) const {
  const int lane = lane_or_none(access.lane);
  if (record.kind == Foreign::kMbarrier) {
    raise_at(FaultKind::kBarrierMisuse, lane,
             "{} of shared byte {}, which belongs to {}; mbarrier.inval makes it memory again",
             access.what, offset + kSharedBase, record.what);
  }
  // A bulk copy over another bulk copy needs only the end of the first one.
  const bool before = record.kind == Foreign::kBulkWrite
                          ? ended(record, access)
                          : ordered(record, access.warp, access.lane);
  if (!before) {
    raise_at(record.kind == Foreign::kRemote ? FaultKind::kSharedRace : FaultKind::kInFlight, lane,
             "{} of shared byte {}, which {} writes; the warp has waited for nothing that "
             "proves that the write has ended",
             access.what, offset + kSharedBase, record.what);
  }
  const bool copied = record.kind == Foreign::kCopy && strict_;
  if (record.kind == Foreign::kRemote || copied) {
    check_proxy(record.agent, record.clock, record.lane, access, offset);
  }
}

void SharedShadow::check_foreign_readers(std::uint32_t word, const Access& access) const {
  const std::uint64_t touched = touched_[word >> kBlockShift] >> 32;
  if (touched == 0) return;
  const int lane = lane_or_none(access.lane);
  const std::uint32_t address = word * 4 + kSharedBase;
  for (int group = 0; group < kWarpgroups; ++group) {
    if (((touched >> group) & 1) == 0) continue;
    const std::uint32_t product = matrix_[group][word] >> kReaderBits;
    const std::uint32_t reader = matrix_[group][word] & ((1u << kReaderBits) - 1);
    const std::uint32_t done = access.write ? matrix_done<true>(group, access.warp)
                                            : matrix_done<false>(group, access.warp);
    // `done` is the last group that is over. `all`, below, is the first group that is not over.
    if (product <= done) continue;
    if (by_warp_ && reader != kAllWarps) {
      const Agent unit = clocks_->matrix_unit(agent(4 * group + static_cast<int>(reader)));
      const std::uint32_t all = access.write ? clocks_->all_before<true>(unit, access.warp)
                                             : clocks_->all_before<false>(unit, access.warp);
      if (product < all) continue;
    }
    report_at(FaultKind::kSharedRace, lane,
              "{} of shared byte {}, which a matrix product of warps {} to {} may still read; "
              "{} wgmma.wait_group has to come first",
              access.what, address, 4 * group, 4 * group + 3, by_warp_ ? "each warp's" : "their");
  }
  if ((touched >> (kForeignBit - 32)) == 0 || foreign_[word] == 0) return;
  const Record& record = records_[foreign_[word] - 1];
  if (ended(record, access)) return;
  report_at(FaultKind::kSharedRace, lane, "{} of shared byte {}, which {} may still read",
            access.what, address, record.what);
}

// Compares the access with the writer of a word, or with the writers of its bytes.
void SharedShadow::check_all_writers(std::uint32_t word, const Access& access) {
  if (writer_[word] != kBytesStamp) {
    if (writer_[word] != 0) check_writer(writer_[word], access, word * 4);
    return;
  }
  const ByteStamps& bytes = bytes_[word];
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (bytes.writer[i] != 0) check_writer(bytes.writer[i], access, word * 4 + i);
  }
}

// A write has to come after every earlier access to the word.
void SharedShadow::check_all(std::uint32_t word, const Access& access) {
  check_all_writers(word, access);
  check_foreign_readers(word, access);
  check_compared(word, access);
  if (writer_[word] != kBytesStamp) return check_readers(word, access);
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (int other = 0; other < warps_; ++other) {
      check_reader(bytes_[word].readers[i][static_cast<std::size_t>(other)], other, access,
                   word * 4 + i);
    }
  }
}

void SharedShadow::begin_write(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                               std::uint32_t record) {
  const Access access{
      .warp = warp, .lane = lane, .async = true, .write = true, .what = "asynchronous write"};
  const Stamp fresh = kForeign | record;
  Stamp good = 0;  // the stamp that was checked last, which most neighbouring words have too
  std::uint32_t word = offset / 4;
  const std::uint32_t end = (offset + bytes) / 4;
  for (; word + 4 <= end; word += 4) {
    const Stamp first = writer_[word];
    if (all_same(load_four(&writer_[word]), first) && names_writer(first) &&
        read_before<true>(word, warp, lane)) {
      if (first != good && first != 0) check_writer(first, access, word * 4);
      good = first;
    } else {
      for (std::uint32_t i = 0; i < 4; ++i) check_all(word + i, access);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&writer_[word]),
                     _mm_set1_epi32(static_cast<int>(fresh)));
  }
  for (; word < end; ++word) {
    check_all(word, access);
    writer_[word] = fresh;
  }
}

void SharedShadow::begin_read(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                              std::uint32_t record) {
  const Access access{.warp = warp, .lane = lane, .async = true, .what = "asynchronous read"};
  if (foreign_.empty()) foreign_.assign(words_, 0);
  Stamp good = 0;
  for (std::uint32_t word = offset / 4; word < (offset + bytes) / 4; ++word) {
    const Stamp writer = writer_[word];
    if (writer == 0) uninitialized(access, word * 4);
    if (writer != good) check_all_writers(word, access);
    good = names_writer(writer) ? writer : 0;
    foreign_[word] = record + 1;
    touched_[word >> kBlockShift] |= std::uint64_t{1} << kForeignBit;
  }
}

// The warp whose fence and issue of a product must come between the last write of the word and the
// product. It is `warp`. But if a product begins for its four warps together, it is the one of them
// that wrote the word.
ClusterClocks::Agent SharedShadow::issuer_for(int warpgroup, std::uint32_t word, Agent warp) const {
  const Stamp writer = writer_[word];
  const bool plain = writer != 0 && names_writer(writer) && (writer & kForeign) == 0;
  const auto of_cta = static_cast<int>((writer >> kWarpShift) & 31u);
  return !strict_ && !by_warp_ && plain && of_cta / 4 == warpgroup ? agent(of_cta) : warp;
}

// Writers are compared for each of the warps, because each must have executed its own proxy fence.
// The comparison is skipped if the stamp equals the last one that passed (`good`). Readers need no
// comparison, because two reads do not conflict.
void SharedShadow::matrix_read(int warpgroup, std::uint32_t warps,
                               std::span<const std::uint32_t> offsets, std::uint32_t group) {
  std::vector<std::uint32_t>& readers = matrix_[warpgroup];
  if (readers.empty()) readers.assign(words_, 0);
  Stamp good = 0;
  const bool several = (warps & (warps - 1)) != 0;
  const std::uint32_t reader = several ? kAllWarps : static_cast<std::uint32_t>(lowest_lane(warps));
  const auto four_of = [group](std::uint32_t who) {
    return _mm_set1_epi32(static_cast<int>((group << kReaderBits) | who));
  };
  const __m128i fresh = four_of(reader);
  const __m128i shared = four_of(kAllWarps);
  const __m128i mine = _mm_set1_epi32(static_cast<int>(reader));
  const __m128i reader_mask = _mm_set1_epi32((1 << kReaderBits) - 1);
  for (const std::uint32_t offset : offsets) {
    const std::uint32_t word = offset / 4;
    if (good == 0 || !all_same(load_four(&writer_[word]), good)) {
      for (std::uint32_t rest = warps; rest != 0; rest &= rest - 1) {
        const Agent warp = agent(4 * warpgroup + lowest_lane(rest));
        for (std::uint32_t i = 0; i < 4; ++i) {
          const Access access{.warp = issuer_for(warpgroup, word + i, warp),
                              .lane = kCollective,
                              .async = true,
                              .matrix = true,
                              .what = "read by a matrix product"};
          if (writer_[word + i] == 0) uninitialized(access, (word + i) * 4);
          check_all_writers(word + i, access);
        }
      }
      good = all_same(load_four(&writer_[word]), writer_[word]) && names_writer(writer_[word])
                 ? writer_[word]
                 : 0;
    }
    touched_[word >> kBlockShift] |= std::uint64_t{1} << (32 + warpgroup);
    // If another warp of the warpgroup has read the word before, the word is marked as read by all.
    // Groups have the same numbers in all warps and ascend, so a wait of all warps for this group
    // covers the earlier read as well.
    const __m128i before = load_four(&readers[word]);
    const __m128i alone = _mm_or_si128(_mm_cmpeq_epi32(before, _mm_setzero_si128()),
                                       _mm_cmpeq_epi32(_mm_and_si128(before, reader_mask), mine));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&readers[word]),
                     _mm_blendv_epi8(shared, fresh, alone));
  }
}

void SharedShadow::remote_read(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                               std::uint32_t record) {
  const Access access{.warp = warp, .lane = lane, .what = "read"};
  if (foreign_.empty()) foreign_.assign(words_, 0);
  for (std::uint32_t word = offset / 4; word * 4 < offset + bytes; ++word) {
    if (writer_[word] == 0) uninitialized(access, word * 4);
    check_all_writers(word, access);
    foreign_[word] = record + 1;
    touched_[word >> kBlockShift] |= std::uint64_t{1} << kForeignBit;
  }
}

void SharedShadow::remote_write(Agent warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                                std::uint32_t record) {
  const Access access{.warp = warp, .lane = lane, .what = "write"};
  for (std::uint32_t word = offset / 4; word * 4 < offset + bytes; ++word) {
    check_all(word, access);
    writer_[word] = kForeign | record;
  }
}

void SharedShadow::make_object(int warp, int lane, std::uint32_t offset, std::uint32_t bytes,
                               std::uint32_t record) {
  const Access access{.warp = agent(warp), .lane = lane, .what = "initialisation"};
  for (std::uint32_t word = offset / 4; word < (offset + bytes) / 4; ++word) {
    check_all(word, access);
    writer_[word] = kForeign | record;
  }
}

void SharedShadow::end_object(int warp, int lane, std::uint32_t offset, std::uint32_t bytes) {
  for (std::uint32_t word = offset / 4; word < (offset + bytes) / 4; ++word) {
    writer_[word] = stamp(warp, lane);
  }
}

}  // namespace annulus::simulator
