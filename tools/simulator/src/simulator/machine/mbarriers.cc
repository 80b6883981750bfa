#include "simulator/machine/mbarriers.h"

#include "simulator/machine/cluster.h"
#include "simulator/machine/cta.h"

namespace annulus::simulator {
namespace {

constexpr std::uint32_t kBytes = 8;

void check_place(const Cta& owner, std::uint32_t offset, int lane) {
  if (offset % kBytes != 0) {
    raise_at(FaultKind::kMisaligned, lane,
             "shared address {} of an mbarrier is not a multiple of 8", offset + kSharedBase);
  }
  if (offset + kBytes > owner.shared.size() || offset > owner.shared.size()) {
    raise_at(FaultKind::kOutOfBounds, lane,
             "an mbarrier at shared address {}, but the CTA has {} bytes from address {} on",
             offset + kSharedBase, owner.shared.size(), kSharedBase);
  }
}

}  // namespace

void Mbarriers::reset(std::uint32_t shared_bytes) {
  for (const Mbarrier& mbarrier : all_) index_[mbarrier.offset / kBytes] = 0;
  index_.resize(shared_bytes / kBytes + 1);
  all_.clear();
}

std::string Mbarriers::describe(const Mbarrier& mbarrier) {
  return fmt::format(
      "the mbarrier at shared address {} (phase {}, {} of {} arrivals and {} bytes missing)",
      mbarrier.offset + kSharedBase, mbarrier.phase, mbarrier.pending, mbarrier.expected,
      mbarrier.bytes);
}

const Mbarrier* Mbarriers::find(std::uint32_t offset) const {
  const std::uint16_t index = offset % kBytes == 0 ? index_[offset / kBytes] : 0;
  return index == 0 ? nullptr : &all_[index - 1u];
}

void Mbarriers::init(const Warp& by, std::uint32_t offset, std::uint32_t count, int lane) {
  Cta& owner = *by.cta;
  check_place(owner, offset, lane);
  if (count == 0 || count > kMaxCount) {
    raise_at(FaultKind::kInvalidOperand, lane,
             "an mbarrier that expects {} arrivals; the number may be 1 to {}", count, kMaxCount);
  }
  std::uint16_t& index = index_[offset / kBytes];
  if (index == 0) {
    Mbarrier& made = all_.emplace_back();
    made.offset = offset;
    index = static_cast<std::uint16_t>(all_.size());
    if (owner.checked) made.agent = owner.cluster->clocks.add();
  }
  Mbarrier& mbarrier = all_[index - 1u];
  if (mbarrier.valid && owner.strict) {
    raise_at(FaultKind::kBarrierMisuse, lane,
             "mbarrier.init of {}, which is initialised already; mbarrier.inval has to come first",
             describe(mbarrier));
  }
  // ThunderKittens initialises an mbarrier again without mbarrier.inval. Between the two uses its
  // bytes are ordinary memory.
  if (mbarrier.valid && owner.checked) owner.shadow.end_object(by.index, lane, offset, kBytes);
  mbarrier.valid = true;
  mbarrier.expected = mbarrier.pending = count;
  mbarrier.bytes = 0;
  mbarrier.first_clock += mbarrier.phase + 1;  // keeps clocks from decreasing
  mbarrier.phase = 0;
  mbarrier.observed = 0;
  if (!owner.checked) return;
  mbarrier.near = mbarrier.far = {};
  mbarrier.init_warp = by.agent;
  mbarrier.init_clock = owner.cluster->clocks.clock(by.agent);
  mbarrier.init_lane = lane;
  mbarrier.fence_clock = 0;
  const std::uint32_t record = owner.shadow.add(
      {.kind = SharedShadow::Foreign::kMbarrier,
       .pc = by.pc,
       .what = fmt::format("the mbarrier at shared address {}", offset + kSharedBase)});
  owner.shadow.make_object(by.index, lane, offset, kBytes, record);
}

void Mbarriers::invalidate(const Warp& by, std::uint32_t offset, int lane) {
  Cta& owner = *by.cta;
  Mbarrier& mbarrier = use(owner, by, offset, lane, false);
  mbarrier.valid = false;
  if (owner.checked) owner.shadow.end_object(by.index, lane, offset, kBytes);
}

Mbarrier& Mbarriers::use(Cta& owner, const Warp& by, std::uint32_t offset, int lane, bool async) {
  check_place(owner, offset, lane);
  const std::uint16_t index = index_[offset / kBytes];
  if (index == 0 || !all_[index - 1u].valid) {
    raise_at(FaultKind::kBarrierMisuse, lane,
             "there is no mbarrier at shared address {}; mbarrier.init has to come first",
             offset + kSharedBase);
  }
  Mbarrier& mbarrier = all_[index - 1u];
  if (!owner.checked) return mbarrier;
  const ClusterClocks& clocks = owner.cluster->clocks;
  // fence.mbarrier_init makes the mbarrier known to all threads for which the fence has ended, for
  // example after a relaxed barrier of the cluster.
  const bool fenced =
      mbarrier.fence_clock != 0 &&
      clocks.ended(mbarrier.init_warp, mbarrier.fence_clock, mbarrier.init_lane, by.agent, lane);
  if (fenced) return mbarrier;
  if (!clocks.before(mbarrier.init_warp, mbarrier.init_clock, mbarrier.init_lane, by.agent, lane)) {
    report_at(FaultKind::kSharedRace, lane,
              "{} is used with no barrier between its mbarrier.init and this use",
              describe(mbarrier));
  }
  if (async && owner.strict && mbarrier.fence_clock == 0 &&
      !clocks.before_async(mbarrier.init_warp, mbarrier.init_clock, mbarrier.init_lane, by.agent)) {
    report_at(FaultKind::kMissingFence, lane,
              "{} is used by the asynchronous proxy with neither fence.mbarrier_init nor "
              "fence.proxy.async after its mbarrier.init",
              describe(mbarrier));
  }
  return mbarrier;
}

void Mbarriers::expect(Cta& owner, Mbarrier& mbarrier, std::uint32_t bytes, int lane) {
  mbarrier.bytes += bytes;
  if (bytes > kMaxCount || mbarrier.bytes > kMaxCount) {
    raise_at(FaultKind::kBarrierMisuse, lane, "{} more bytes expected by {}; the limit is {}",
             bytes, describe(mbarrier), kMaxCount);
  }
  end_phase_if_over(owner, mbarrier);
}

void Mbarriers::expect_one_more(Mbarrier& mbarrier, int lane) {
  if (mbarrier.pending == kMaxCount) {
    raise_at(FaultKind::kBarrierMisuse, lane, "one more arrival expected by {}; the limit is {}",
             describe(mbarrier), kMaxCount);
  }
  ++mbarrier.pending;
}

void Mbarriers::complete(Cta& owner, Mbarrier& mbarrier, std::uint32_t bytes, int lane) {
  mbarrier.bytes -= bytes;
  if (mbarrier.bytes < -static_cast<std::int64_t>(kMaxCount)) {
    raise_at(FaultKind::kBarrierMisuse, lane, "{} bytes complete that {} did not expect", bytes,
             describe(mbarrier));
  }
  end_phase_if_over(owner, mbarrier);
}

void Mbarriers::arrive(Cta& owner, Mbarrier& mbarrier, std::uint32_t count, bool drop,
                       bool may_complete, int lane) {
  if (count == 0 || count > kMaxCount) {
    raise_at(FaultKind::kInvalidOperand, lane,
             "an arrival with the count {}; the count may be 1 to {}", count, kMaxCount);
  }
  if (count > mbarrier.pending) {
    raise_at(FaultKind::kBarrierMisuse, lane, "{} arrivals are too many for {}", count,
             describe(mbarrier));
  }
  mbarrier.pending -= count;
  if (drop) mbarrier.expected -= count;
  if (!may_complete && mbarrier.pending == 0 && mbarrier.bytes == 0) {
    raise_at(FaultKind::kBarrierMisuse, lane, "an arrival with .noComplete ends the phase of {}",
             describe(mbarrier));
  }
  end_phase_if_over(owner, mbarrier);
}

void Mbarriers::end_phase_if_over(Cta& owner, Mbarrier& mbarrier) {
  ++owner.cluster->events;
  if (mbarrier.pending != 0 || mbarrier.bytes != 0) return;
  if (owner.checked) {
    mbarrier.near.end_phase();
    mbarrier.far.end_phase();
    ClusterClocks::Vector& over = mbarrier.near.over.shared;
    if (over.size() <= mbarrier.agent) over.resize(mbarrier.agent + 1u);
    over[mbarrier.agent].order.join({mbarrier.clock() + 1, 0, 0});
  }
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.expected;
  owner.wake({Wait::kMbarrier, mbarrier.offset});
}

void Mbarriers::check_landings_seen(Cluster& cluster) const {
  for (const Mbarrier& mbarrier : all_) {
    const Mbarrier::Landing& landed = mbarrier.landed;
    if (landed.issuer == nullptr || landed.clock < mbarrier.first_clock + mbarrier.observed) {
      continue;
    }
    cluster.running = landed.issuer;
    landed.issuer->pc = landed.pc;
    report_at(FaultKind::kUnwaited, landed.lane,
              "the CTA ends, and no thread waited for this bulk copy into its shared memory at {}",
              describe(mbarrier));
  }
}

void Mbarriers::fence_inits(ClusterClocks::Agent warp, std::uint32_t clock) {
  for (Mbarrier& mbarrier : all_) {
    if (mbarrier.init_warp == warp && mbarrier.fence_clock == 0) mbarrier.fence_clock = clock;
  }
}

}  // namespace annulus::simulator
