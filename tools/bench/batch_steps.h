#ifndef ANNULUS_TOOLS_BENCH_BATCH_STEPS_H_
#define ANNULUS_TOOLS_BENCH_BATCH_STEPS_H_

// Figures of batch_bench over many steps: the host cost of a step, and whether the answers are
// correct and always have the same bits.

#include <functional>

#include "harness.h"

namespace annulus::bench {

// Wraps a measurement that always gives the same figure. The result measures once and then repeats
// it.
std::function<double()> once(const std::function<double()>& measure);

void add_steps(Bench* bench);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_BATCH_STEPS_H_
