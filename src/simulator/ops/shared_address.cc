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

}  // namespace annulus::simulator
