#ifndef ANNULUS_SIMULATOR_RUN_LAUNCH_H_
#define ANNULUS_SIMULATOR_RUN_LAUNCH_H_

// Runs a decoded kernel over a grid.

#include <cstdint>
#include <span>

#include "abi/cuda_types.h"
#include "simulator/check/detector.h"
#include "simulator/check/operation.h"
#include "simulator/fault/fault.h"
#include "simulator/machine/memory.h"
#include "simulator/program/program.h"

namespace annulus::base {
class ThreadPool;
}

namespace annulus::simulator {

class DeviceHeap;
class PrintBuffer;

// Global memory that the driver gives a cooperative launch: the size of this struct, and the word
// of the grid-wide barrier of CUDA's cooperative groups.
struct GridWorkspace {
  std::uint32_t bytes = sizeof(GridWorkspace);
  std::uint32_t barrier = 0;
};

struct LaunchRequest {
  const Program* program = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t cluster[3] = {1, 1, 1};  // divides the grid
  std::uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;    // parameter_bytes of them
  std::uint32_t shared_limit = 0;           // bytes of a CTA; the caller refuses a launch above it
  std::uint64_t max_warp_instructions = 0;  // limit of a CTA; 0: unlimited
  std::span<const PeerMemory> peers;        // the memories of all other devices that have memory
  std::uint64_t resident_ctas = 0;   // the number that fits on the device at a time; 0: any number
  bool cooperative = false;          // all CTAs are co-resident; requires that they fit
  std::uint64_t grid_workspace = 0;  // the address of a GridWorkspace, for a cooperative launch
  bool has_company = true;           // other work may write the memory during the launch
  // Checked mode uses these to search for races in global memory. If both are null, it does not
  // search.
  OperationPointer operation;
  Detector* detector = nullptr;
  PrintBuffer* prints = nullptr;  // receives the text that the kernel prints
  DeviceHeap* heap = nullptr;     // the heap of the context; null: malloc finds no room
};

// Runs all CTAs and adds to *counters. Throws the Fault of the lowest cluster that has one, in
// whichever order the host threads ran them. For co-resident clusters it throws the first Fault.
void execute(const LaunchRequest& request, GlobalMemory& memory, base::ThreadPool& pool,
             const abi::SimulatorOptions& options, abi::SimulatorCounters* counters);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_LAUNCH_H_
