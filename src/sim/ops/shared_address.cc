#include "sim/ops/shared_address.h"

#include "sim/context.h"

namespace annulus::sim {

ShareSpace share_space(const Decoder& decoder, const Decoder::Address& address) {
  if (decoder.has("shared::cluster")) return ShareSpace::kCluster;
  if (decoder.has("shared") || decoder.has("shared::cta")) return ShareSpace::kCta;
  return address.symbol_space == ptx::Space::kShared ? ShareSpace::kCta : ShareSpace::kGeneric;
}

SharedPlace shared_place(const Context& context, std::uint32_t base_slot, bool wide,
                         std::int64_t offset, ShareSpace space, int lane) {
  std::uint64_t address = static_cast<std::uint64_t>(offset);
  if (wide) {
    address += context.lanes<std::uint64_t>(base_slot)[lane];
  } else {
    address += context.lanes<std::uint32_t>(base_slot)[lane];
  }
  if (space == ShareSpace::kGeneric && address / kWindowBytes != kSharedWindow / kWindowBytes) {
    raise_at(FaultKind::kOutOfBounds, lane, "generic address {:#x} is not in shared memory",
             address);
  }
  const auto low = static_cast<std::uint32_t>(address);
  if (space == ShareSpace::kCta) {
    return {context.cluster->ctas[context.rank].get(), low - kSharedBase};
  }
  return cluster_place(context, low, lane);
}

void note_remote(Context& context, Context& cta, int lane) {
  if (!context.checked) return;
  check_started(context, cta, lane);
  const Context::Remote fresh{context.agent(), context.cluster->clocks.clock(context.agent()), lane,
                              &context, context.pc};
  for (Context::Remote& remote : cta.remote) {
    if (remote.agent != fresh.agent) continue;
    remote = fresh;
    return;
  }
  cta.remote.push_back(fresh);
}

}  // namespace annulus::sim
