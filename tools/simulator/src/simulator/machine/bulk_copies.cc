#include "simulator/machine/bulk_copies.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "simulator/machine/cluster.h"
#include "simulator/machine/cta.h"
#include "simulator/machine/reduce.h"

namespace annulus::simulator {
namespace {

// Makes a fault in the effect of a copy appear at the instruction that started the copy.
void blame(Cluster& cluster, const BulkCopy& copy) {
  cluster.running = copy.issuer;
  copy.issuer->pc = copy.pc;
}

// Fills elements outside the tensor with zeros or with NaNs. The ISA does not define the payload of
// the NaNs; here its bits are all ones.
void fill_outside(const TensorMap& map, std::byte* row, std::uint32_t bytes) {
  std::memset(row, map.fill_nan != 0 ? 0xff : 0, bytes);
  const std::uint32_t element = map.element_bytes();
  for (std::uint32_t at = element; map.fill_nan != 0 && at <= bytes; at += element) {
    row[at - 1] = std::byte{0x7f};
  }
}

// An fp32 value as a tensor copy of the type writes it. CUTLASS (collective_builder.hpp) states
// that the hardware rounds to tf32. It is a guess that it rounds to nearest with ties away from
// zero, as cvt.rna does.
std::uint32_t converted(TensorType type, std::uint32_t bits) {
  const std::uint32_t exponent = bits & 0x7f800000u;
  if (exponent == 0x7f800000u) return bits;  // infinity and NaN
  const bool flush = type == TensorType::kFloat32Flush || type == TensorType::kTf32Flush;
  if (flush && exponent == 0) return bits & 0x80000000u;
  return type == TensorType::kFloat32Flush ? bits : (bits + 0x1000u) & 0xffffe000u;
}

void convert(TensorType type, std::byte* data, std::uint32_t bytes) {
  for (std::uint32_t at = 0; at < bytes; at += 4) {
    std::uint32_t bits;
    std::memcpy(&bits, data + at, 4);
    bits = converted(type, bits);
    std::memcpy(data + at, &bits, 4);
  }
}

// Reads the box from global memory into the order that it has in shared memory before swizzling.
void read_box(const BulkCopy& copy, std::byte* data) {
  const std::uint32_t row_bytes = copy.map.row_bytes();
  for_rows(copy.map, copy.start, [&](const BoxRow& row) {
    std::byte* to = data + row.offset;
    if (row.bytes != row_bytes) fill_outside(copy.map, to, row_bytes);
    if (row.bytes == 0) return;
    std::memcpy(to + row.skip, reinterpret_cast<const void*>(row.address), row.bytes);
  });
  if (copy.map.type >= TensorType::kFloat32Flush) convert(copy.map.type, data, copy.bytes);
}

// Moves bytes, one chunk after another, between data in the order of the box and shared memory at
// `offset`.
template <bool kToShared>
void exchange(const BulkCopy& copy, std::byte* shared, std::uint32_t offset, std::byte* data) {
  const Swizzle swizzle = copy.tensor ? copy.map.swizzle : Swizzle::kNone;
  if (swizzle == Swizzle::kNone) {
    return static_cast<void>(kToShared ? std::memcpy(shared + offset, data, copy.bytes)
                                       : std::memcpy(data, shared + offset, copy.bytes));
  }
  for (std::uint32_t at = 0; at < copy.bytes; at += 16) {
    // Shared addresses start at a multiple of the period of every swizzle, so offsets can be
    // swizzled like addresses.
    static_assert(kSharedBase % 1024 == 0);
    std::byte* chunk = shared + swizzled(swizzle, offset + at);
    std::memcpy(kToShared ? chunk : data + at, kToShared ? data + at : chunk, 16);
  }
}

void write_global(const BulkCopy& copy, std::uint64_t address, const std::byte* data,
                  std::uint32_t bytes) {
  if (copy.reduction == Reduction::kNone) {
    std::memcpy(reinterpret_cast<void*>(address), data, bytes);
  } else {
    reduce_global(copy.reduction, copy.type, address, data, bytes);
  }
}

void write_box(const BulkCopy& copy) {
  for_rows(copy.map, copy.start, [&](const BoxRow& row) {
    if (row.bytes == 0) return;
    write_global(copy, row.address, copy.data.data() + row.offset + row.skip, row.bytes);
  });
}

void read_source(BulkCopy& copy) {
  copy.data.resize(copy.bytes);
  exchange<false>(copy, copy.issuer->cta->shared.data(), copy.source, copy.data.data());
  copy.read = true;
}

void write_target(Cluster& cluster, BulkCopy& copy) {
  std::size_t index = 0;
  for (std::uint32_t rest = copy.ctas; rest != 0; rest &= rest - 1, ++index) {
    Cta& cta = *cluster.ctas[static_cast<std::size_t>(lowest_lane(rest))];
    exchange<true>(copy, cta.shared.data(), copy.target, copy.data.data());
    // use() and the reading of the mbarrier's clock come before the bytes are counted, because the
    // count may begin the next phase. The copy belongs to the phase in which its bytes are counted.
    Mbarrier& mbarrier = cta.mbarriers.use(cta, *copy.issuer, copy.mbarrier, copy.lane, true);
    if (cta.checked) {
      cta.shadow.complete(copy.records[index], mbarrier.clock());
      if (copy.kind == BulkCopy::Kind::kShare) {
        copy.issuer->cta->shadow.complete(copy.source_record, mbarrier.clock());
      }
      mbarrier.landed = {mbarrier.clock(), copy.issuer, copy.lane, copy.pc};
    }
    cta.mbarriers.complete(cta, mbarrier, copy.bytes, copy.lane);
  }
  copy.done = true;
}

}  // namespace

// Performs the next step of a copy. A store has two steps: one reads its source and one writes
// global memory. Other copies have one step.
void BulkCopies::step(Cluster& cluster, BulkCopy& copy) {
  if (copy.done) return;
  blame(cluster, copy);
  ++cluster.events;
  switch (copy.kind) {
    case BulkCopy::Kind::kLoad:
      copy.data.resize(copy.bytes);
      if (copy.tensor) {
        read_box(copy, copy.data.data());
      } else {
        std::memcpy(copy.data.data(), reinterpret_cast<const void*>(copy.address), copy.bytes);
      }
      return write_target(cluster, copy);
    case BulkCopy::Kind::kShare:
      read_source(copy);
      return write_target(cluster, copy);
    case BulkCopy::Kind::kValue:
      return write_target(cluster, copy);
    case BulkCopy::Kind::kStore:
      if (!copy.read) return read_source(copy);
      if (copy.tensor) {
        write_box(copy);
      } else {
        write_global(copy, copy.address, copy.data.data(), copy.bytes);
      }
      copy.done = true;
  }
}

void BulkCopies::erase_done() {
  std::erase_if(pending_, [](const BulkCopy& copy) {
    return copy.done && (copy.kind != BulkCopy::Kind::kStore || copy.waited);
  });
}

// If moments are drawn, every fourth copy on average takes its first step at once. If effects land
// early, the copy takes both steps at once.
void BulkCopies::issue(Cluster& cluster, BulkCopy copy) {
  Cta& cta = *copy.issuer->cta;
  cta.counts.bulk_bytes += copy.bytes * std::max(1, std::popcount(copy.ctas));
  pending_.push_back(std::move(copy));
  if (cta.landing == 2 || (cta.landing == 0 && (cta.random.next() & 3) != 0)) return;
  BulkCopy& fresh = pending_.back();
  step(cluster, fresh);
  if (cta.landing == 1) step(cluster, fresh);
  erase_done();
}

void BulkCopies::wait(Cluster& cluster, Warp& warp, int lane, std::uint32_t left, bool read_only) {
  Cta& cta = *warp.cta;
  const std::uint32_t committed = warp.bulk_groups[static_cast<std::size_t>(lane)];
  const std::uint32_t pc = warp.pc;
  for (BulkCopy& copy : pending_) {
    if (copy.kind != BulkCopy::Kind::kStore || copy.issuer != &warp || copy.lane != lane ||
        copy.group + left >= committed) {
      continue;
    }
    if (!copy.read) step(cluster, copy);
    if (!read_only) step(cluster, copy);
    if (!copy.waited && cta.checked) {
      cta.shadow.complete(copy.source_record, cluster.clocks.clock(warp.agent));
    }
    copy.waited = true;
  }
  warp.pc = pc;
  erase_done();
}

void BulkCopies::land_some(Cluster& cluster) {
  if (pending_.empty()) return;
  for (BulkCopy& copy : pending_) {
    if ((copy.issuer->cta->random.next() & 3) == 0) step(cluster, copy);
  }
  erase_done();
}

bool BulkCopies::under_way() const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const BulkCopy& copy) { return !copy.done; });
}

bool BulkCopies::land_one(Cluster& cluster) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (!pending_[i].done) open.push_back(i);
  }
  if (open.empty()) return false;
  Xoshiro256& random = pending_[open[0]].issuer->cta->random;
  step(cluster, pending_[open[random.below(static_cast<std::uint32_t>(open.size()))]]);
  erase_done();
  return true;
}

void BulkCopies::check_exit(Warp& warp, std::uint32_t lanes) {
  if (!warp.cta->strict) return;
  for (const BulkCopy& copy : pending_) {
    if (copy.kind != BulkCopy::Kind::kStore || copy.issuer != &warp || copy.waited ||
        ((lanes >> copy.lane) & 1) == 0) {
      continue;
    }
    report_at(FaultKind::kUnwaited, copy.lane,
              "a thread exits while a bulk copy that it issued may still read shared memory; "
              "cp.async.bulk.wait_group.read has to come first");
  }
}

void BulkCopies::check_end(Cluster& cluster, const Cta& cta) {
  for (BulkCopy& copy : pending_) {
    if (copy.kind == BulkCopy::Kind::kStore) continue;
    if (cta.checked && ((copy.ctas >> cta.rank) & 1) != 0) {
      blame(cluster, copy);
      report_at(FaultKind::kUnwaited, copy.lane,
                "a bulk copy writes to shared memory of a CTA whose threads have all exited; a "
                "thread has to wait for its mbarrier");
    }
  }
  for (BulkCopy& copy : pending_) {
    if (copy.issuer->cta != &cta) continue;
    while (!copy.done) step(cluster, copy);
    copy.waited = true;
  }
  erase_done();
  if (cta.checked) cta.mbarriers.check_landings_seen(cluster);
}

}  // namespace annulus::simulator
