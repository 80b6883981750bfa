#ifndef ANNULUS_SIM_OPS_SHARED_ADDRESS_H_
#define ANNULUS_SIM_OPS_SHARED_ADDRESS_H_

// Addresses of shared memory as instructions of a cluster name it: of the CTA, of any CTA of the
// cluster, or generic ones that point there.

#include <cstdint>

#include "sim/cluster.h"
#include "sim/decode.h"

namespace annulus::sim {

enum class ShareSpace : std::uint8_t { kCta, kCluster, kGeneric };

// By the modifiers of the instruction, or the variable that the address names.
ShareSpace share_space(const Decoder& decoder, const Decoder::Address& address);

// Where `lane`'s address points. Throws Fault for a generic address of other memory.
SharedPlace shared_place(const Context& context, std::uint32_t base_slot, bool wide,
                         std::int64_t offset, ShareSpace space, int lane);

// Remembers that the running warp uses shared memory of another CTA, which has to be there before
// and after.
void note_remote(Context& context, Context& cta, int lane);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_OPS_SHARED_ADDRESS_H_
