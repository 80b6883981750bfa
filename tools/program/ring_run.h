#ifndef ANNULUS_PROGRAM_RING_RUN_H_
#define ANNULUS_PROGRAM_RING_RUN_H_

// The part of annulus run that knows rings: shards of the operands on the devices of all ranks,
// the run, and the answer put together again.

#include <string>

#include "annulus/ring.h"
#include "program/answer.h"
#include "program/operands.h"
#include "program/options.h"
#include "program/problem_input.h"
#include "program/stream.h"

namespace annulus::program {

struct RingAnswer {
  Answer answer;
  RingInfo info;
  int processes = 1;
  // What the library holds besides the operands: workspace, lists, positions, tables.
  std::int64_t peak_bytes_per_rank = 0;
  std::string picture;  // SVG of the schedule
};

// The devices of `ranks` ranks: of one kind of simulated device the first that many, as far as
// there are so many; else one device for all, which `first` already is.
std::vector<Device> ring_devices(const Device& first, const DeviceArguments& arguments, int ranks);

RingAnswer compute_ring(const std::vector<Device>& devices, const RunArguments& arguments,
                        const ProblemInput& input);

// One rank's tensors on its device, and its call.
struct RankMemory {
  DeviceOperands operands;
  DeviceMemory workspace;
  Stream stream;
  HostTensor host_o;
};
RankMemory upload(const Device& device, const ProblemInput& input, const ShardMap& shards,
                  std::size_t rank, std::size_t workspace_bytes, RingCall* call);
// Fetches O, [B, rows of the shard, H, Dv], and LSE, [B, H, rows].
std::vector<float> fetch(const Device& device, RankMemory* memory);
// Brings O and LSE of a rank to their rows of the whole.
void place_rows(const std::vector<Segment>& shard, const HostTensor& o,
                const std::vector<float>& lse, Answer* answer);
// Room for O and LSE of the whole.
void make_room(const ProblemInput& input, Answer* answer);

ShardMap ring_shards(const RunArguments& arguments, const Problem& problem, int ranks);
RingOptions ring_options(const RunArguments& arguments);

// The largest |a - b| over all elements of O; NaN where only one of the two is a number.
double largest_difference(const HostTensor& a, const HostTensor& b, Dtype dtype);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RING_RUN_H_
