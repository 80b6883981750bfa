#ifndef ANNULUS_PROGRAM_RUN_RING_RUN_H_
#define ANNULUS_PROGRAM_RUN_RING_RUN_H_

// The part of annulus run that knows rings: shards of the operands on the devices of all ranks,
// the run, and the answer put together again.

#include <string>

#include "annulus/ring.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"
#include "program/run/answer.h"
#include "program/run/operands.h"
#include "program/run/run.h"
#include "program/run/stream.h"

namespace annulus::program {

struct RingAnswer {
  Answer answer;
  RingInfo info;
  int processes = 1;
  // How often ranks in processes have begun, and what has happened to rank 0's communicators.
  std::int64_t generation = 0;
  std::vector<CommunicatorEvent> events = {};
  // What the library holds besides the operands: workspace, lists, positions, tables.
  std::int64_t peak_bytes_per_rank = 0;
  std::string picture;     // SVG of the schedule
  Counters counters = {};  // of all distinct devices, over all repetitions
};

// Whether --device, or where it is not given ANNULUS_DEVICE, names one device of several by its
// number.
bool names_one_device(const DeviceArguments& arguments);
// "cuda", or "sim:sm_80" of "sim:sm_80:3" as well.
std::string kind_of_device(const std::string& name);
Device numbered_device(const DeviceArguments& arguments, const std::string& kind, int number);

// The devices of `ranks` ranks: where one is named, that one for all; else those of its kind, GPUs
// or simulated ones, from the first on, in turn where there are fewer. `first` is the first.
std::vector<Device> ring_devices(const Device& first, const DeviceArguments& arguments, int ranks);

// The device of a rank that is so many-th on its host: that of the number, or the only one there
// is, as where a launcher shows each rank another GPU.
Device launched_device(const DeviceArguments& arguments, int on_host);

// The sum of the counters of all distinct devices.
Counters sum_counters(const std::vector<Device>& devices);

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

// `shard` is that of --shard.
ShardMap ring_shards(const std::string& shard, const Problem& problem, int ranks);
RingOptions ring_options(const RunArguments& arguments);

// The largest |a - b| over all elements of O; NaN where only one of the two is a number.
double largest_difference(const HostTensor& a, const HostTensor& b, Dtype dtype);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RING_RUN_H_
