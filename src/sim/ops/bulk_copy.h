#ifndef ANNULUS_SIM_OPS_BULK_COPY_H_
#define ANNULUS_SIM_OPS_BULK_COPY_H_

#include "sim/decode.h"
#include "sim/ops/access.h"

namespace annulus::sim {

// cp.async.bulk and cp.reduce.async.bulk, which are forms of the opcode cp.
void decode_bulk(Decoder& decoder);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_OPS_BULK_COPY_H_
