#ifndef ANNULUS_PROGRAM_RUN_RING_RUN_H_
#define ANNULUS_PROGRAM_RUN_RING_RUN_H_

// The part of annulus run for rings: it puts shards of the operands on the devices of all ranks,
// runs the ring, and puts the answer together.

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
  // The number of restarts of the ranks, if they are processes, and the events of rank 0's
  // communicators.
  std::int64_t generation = 0;
  std::vector<CommunicatorEvent> events = {};
  // The memory of the library in addition to the operands: workspace, lists, positions and tables.
  std::int64_t peak_bytes_per_rank = 0;
  std::string picture;     // SVG of the schedule
  Counters counters = {};  // the sum over all distinct devices and all repetitions
};

// Whether --device, or else ANNULUS_DEVICE, names one device of several by its number.
bool names_one_device(const DeviceArguments& arguments);
// "cuda" for "cuda:1", and "sim:sm_80" for "sim:sm_80:3".
std::string kind_of_device(const std::string& name);
Device numbered_device(const DeviceArguments& arguments, const std::string& kind, int number);

// The devices of the ranks. If --device names one device, all ranks use it. Otherwise they are the
// GPUs or the simulated devices in order of their numbers, and are used in turn if there are fewer
// devices than ranks. `first` is the first device.
std::vector<Device> ring_devices(const Device& first, const DeviceArguments& arguments, int ranks);

// The device of the rank with number `on_host` on its host. It is the device of that number, or the
// only GPU if the process sees just one, because some launchers show each rank a different GPU.
Device launched_device(const DeviceArguments& arguments, int on_host);

// The sum of the counters over all distinct devices.
Counters sum_counters(const std::vector<Device>& devices);

RingAnswer compute_ring(const std::vector<Device>& devices, const RunArguments& arguments,
                        const ProblemInput& input);

// The tensors of one rank on its device, and its call.
struct RankMemory {
  DeviceOperands operands;
  DeviceMemory workspace;
  Stream stream;
  HostTensor host_o;
};
RankMemory upload(const Device& device, const ProblemInput& input, const ShardMap& shards,
                  std::size_t rank, std::size_t workspace_bytes, RingCall* call);
// Copies O, [B, rows of the shard, H, Dv], to memory->host_o and returns LSE, [B, H, rows].
std::vector<float> fetch(const Device& device, RankMemory* memory);
// Copies O and LSE of a rank to their rows of the answer.
void place_rows(const std::vector<Segment>& shard, const HostTensor& o,
                const std::vector<float>& lse, Answer* answer);
// Allocates O and LSE of the whole answer.
void make_room(const ProblemInput& input, Answer* answer);

// `shard` is the value of --shard.
ShardMap ring_shards(const std::string& shard, const Problem& problem, int ranks);
RingOptions ring_options(const RunArguments& arguments);

// The largest |a - b| over all elements of O. NaN if exactly one of the two is a number.
double largest_difference(const HostTensor& a, const HostTensor& b, Dtype dtype);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RING_RUN_H_
