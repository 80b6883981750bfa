#ifndef ANNULUS_SIMULATOR_OPS_SHARED_ADDRESS_H_
#define ANNULUS_SIMULATOR_OPS_SHARED_ADDRESS_H_

// Addresses of shared memory in instructions for clusters: shared::cta, shared::cluster, or generic
// addresses in either window.

#include <cstdint>

#include "simulator/decode/decoder.h"
#include "simulator/machine/cluster.h"

namespace annulus::simulator {

enum class ShareSpace : std::uint8_t { kCta, kCluster, kGeneric };

// The space of an address, from the modifiers of the instruction or from the variable that the
// address names.
ShareSpace share_space(const Decoder& decoder, const Decoder::Address& address);

// The place of `lane`'s address. Throws Fault for a generic address of other memory.
SharedPlace shared_place(const Warp& warp, std::uint32_t base_slot, bool wide, std::int64_t offset,
                         ShareSpace space, int lane);

// The place of `bytes` bytes at an address in the shared memory of a CTA of the cluster. Throws
// Fault if they are misaligned or out of bounds.
SharedPlace cluster_bytes(const Warp& warp, std::uint32_t address, std::uint32_t bytes, int lane);

// Whether mapa made a generic address of shared memory, so that it names a CTA.
inline bool names_cta(std::uint64_t address) {
  return (static_cast<std::uint32_t>(address) >> kRankShift) != 0;
}

// Records that the running warp uses shared memory of another CTA. Throws Fault unless it is
// certain that this CTA has started. check_remote_seen checks later that the CTA did not exit
// before the access.
void note_remote(Warp& warp, Cta& cta, int lane);

// Calls note_remote, and makes a record of the lane's access for the shadow of the other CTA.
std::uint32_t record_remote(Warp& warp, Cta& cta, int lane);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_SHARED_ADDRESS_H_
