#ifndef ANNULUS_PROGRAM_RING_RUN_H_
#define ANNULUS_PROGRAM_RING_RUN_H_

// The part of annulus run that knows rings: shards of the operands on the devices of all ranks,
// the run, and the answer put together again.

#include <string>

#include "annulus/ring.h"
#include "program/answer.h"
#include "program/options.h"
#include "program/problem_input.h"

namespace annulus::program {

struct RingAnswer {
  Answer answer;
  RingInfo info;
  // What the library holds besides the operands: workspace, lists, positions, tables.
  std::int64_t peak_bytes_per_rank = 0;
  std::string picture;  // SVG of the schedule
};

// The devices of `ranks` ranks: of one kind of simulated device the first that many, as far as
// there are so many; else one device for all, which `first` already is.
std::vector<Device> ring_devices(const Device& first, const DeviceArguments& arguments, int ranks);

RingAnswer compute_ring(const std::vector<Device>& devices, const RunArguments& arguments,
                        const ProblemInput& input);

// The largest |a - b| over all elements of O; NaN where only one of the two is a number.
double largest_difference(const HostTensor& a, const HostTensor& b, Dtype dtype);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RING_RUN_H_
