#ifndef ANNULUS_SIMULATOR_OPS_BULK_COPY_H_
#define ANNULUS_SIMULATOR_OPS_BULK_COPY_H_

#include "simulator/decode/decoder.h"
#include "simulator/ops/access.h"

namespace annulus::simulator {

// cp.async.bulk and cp.reduce.async.bulk, which are forms of the opcode cp.
void decode_bulk(Decoder& decoder);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_BULK_COPY_H_
