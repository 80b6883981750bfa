#include "simulator/ops/shared_address.h"

#include "simulator/machine/cta.h"

namespace annulus::simulator {

ShareSpace share_space(const Decoder& decoder, const Decoder::Address& address) {
  if (decoder.has("shared::cluster")) return ShareSpace::kCluster;
  if (decoder.has("shared") || decoder.has("shared::cta")) return ShareSpace::kCta;
  return address.symbol_space == ptx::Space::kShared ? ShareSpace::kCta : ShareSpace::kGeneric;
}

SharedPlace shared_place(const Warp& warp, std::uint32_t base_slot, bool wide, std::int64_t offset,
                         ShareSpace space, int lane) {
  std::uint64_t address = static_cast<std::uint64_t>(offset);
  if (wide) {
    address += warp.lanes<std::uint64_t>(base_slot)[lane];
  } else {
    address += warp.lanes<std::uint32_t>(base_slot)[lane];
  }
  if (space == ShareSpace::kGeneric && address / kWindowBytes != kSharedWindow / kWindowBytes) {
    raise_at(FaultKind::kOutOfBounds, lane, "generic address {:#x} is not in shared memory",
             address);
  }
  const auto low = static_cast<std::uint32_t>(address);
  if (space == ShareSpace::kCta) {
    return {warp.cta, low - kSharedBase};
  }
  return cluster_place(warp, low, lane);
}

SharedPlace cluster_bytes(const Warp& warp, std::uint32_t address, std::uint32_t bytes, int lane) {
  const SharedPlace place = cluster_place(warp, address, lane);
  const Cta& cta = *place.cta;
  if (place.offset % bytes != 0) {
    raise_at(FaultKind::kMisaligned, lane,
             "shared address {} is not a multiple of the {} bytes accessed",
             place.offset + kSharedBase, bytes);
  }
  if (place.offset > cta.shared.size() || bytes > cta.shared.size() - place.offset) {
    raise_at(FaultKind::kOutOfBounds, lane,
             "{} bytes at shared address {} of CTA {}, which has {} bytes from address {} on",
             bytes, place.offset + kSharedBase, cta.rank, cta.shared.size(), kSharedBase);
  }
  return place;
}

void note_remote(Warp& warp, Cta& cta, int lane) {
  if (!warp.cta->checked) return;
  check_started(warp, cta, lane);
  const Cta::Remote fresh{cta.cluster->clocks.clock(warp.agent), lane, &warp, warp.pc};
  for (Cta::Remote& remote : cta.remote) {
    if (remote.by != &warp) continue;
    remote = fresh;
    return;
  }
  cta.remote.push_back(fresh);
}

std::uint32_t record_remote(Warp& warp, Cta& cta, int lane) {
  note_remote(warp, cta, lane);
  return cta.shadow.add({.kind = SharedShadow::Foreign::kRemote,
                         .agent = warp.agent,
                         .clock = warp.cta->cluster->clocks.clock(warp.agent),
                         .lane = lane,
                         .pc = warp.pc,
                         .what = fmt::format("lane {} of warp {} of CTA {} of the cluster", lane,
                                             warp.index, warp.cta->rank)});
}

}  // namespace annulus::simulator
