#ifndef ANNULUS_SIMULATOR_OPS_BULK_COPY_H_
#define ANNULUS_SIMULATOR_OPS_BULK_COPY_H_

// st.async, a form of the opcode st, and cp.async.bulk and cp.reduce.async.bulk (PTX ISA 9.0,
// sections 9.7.9.25.4 and 9.7.9.25.5), forms of the opcode cp. bulk_decode.cc decodes them,
// bulk_copy.cc issues them, and bulk_tensor.cc finds the box of a tensor.
// simulator/machine/bulk_copies.h describes when they take effect.

#include "simulator/decode/decoder.h"
#include "simulator/machine/bulk_copies.h"
#include "simulator/ops/access.h"

namespace annulus::simulator {

void decode_bulk(Decoder& decoder);
void decode_store_async(Decoder& decoder);

// Declarations that the three files share.
namespace bulk {

// The meaning of Program::slots from Inst::aux on. An address takes three words: a slot, 1 if the
// slot has 64 bits, and an offset.
enum : std::uint32_t {
  kShared = 0,        // the address in shared memory, target or source of the copy
  kOther = 3,         // global memory, a tensor map, or a source in shared memory
  kMbarrier = 6,      // the address of the mbarrier, for loads and copies between CTAs
  kSize = 9,          // the slot of the size, except in tensor copies
  kCtas = 10,         // the slot of a multicast's mask, or kNoSlot
  kCoordinates = 11,  // the slots of a tensor copy's coordinates, or of the values of st.async
};

// The meaning of small[] of these instructions.
enum : std::uint8_t {
  kKind = 0,    // Instruction
  kWhere = 1,   // the ShareSpace of kShared
  kRank = 2,    // the rank of a tensor copy, otherwise 0
  kReduce = 3,  // Reduction
  kType = 4,    // the TensorType of a reduction that is not a tensor copy
  kWidth = 3,   // bytes of a value of st.async
  kValues = 4,  // the number of values of st.async
};
enum class Instruction : std::uint8_t { kLoad, kStore, kShare, kPrefetch, kValue };

std::uint64_t address_at(const Warp& warp, const std::uint32_t* slots, std::uint32_t which,
                         int lane);

// Finds the box of a tensor copy from its map in memory and from the coordinates.
void take_box(Warp& warp, const Inst& inst, const std::uint32_t* slots, BulkCopy& copy);

// The handlers of a copy by each lane of the mask, of the end of its group, and of the wait for
// groups.
template <bool kChecked>
void run(Warp& warp, const Inst& inst, Mask mask);
// st.async by each lane of the mask.
void store_async(Warp& warp, const Inst& inst, Mask mask);
void commit(Warp& warp, const Inst& inst, Mask mask);
void wait(Warp& warp, const Inst& inst, Mask mask);

}  // namespace bulk
}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_BULK_COPY_H_
