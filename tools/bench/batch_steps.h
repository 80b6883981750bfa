#ifndef ANNULUS_TOOLS_BENCH_BATCH_STEPS_H_
#define ANNULUS_TOOLS_BENCH_BATCH_STEPS_H_

// Figures of batch_bench over many steps: what steps cost the host, and whether answers are right
// and the same bits.

#include <functional>

#include "harness.h"

namespace annulus::bench {

// A figure that is the same whenever it is measured, measured once.
std::function<double()> once(const std::function<double()>& measure);

void add_steps(Bench* bench);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_BATCH_STEPS_H_
