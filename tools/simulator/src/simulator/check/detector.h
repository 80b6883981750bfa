#ifndef ANNULUS_SIMULATOR_CHECK_DETECTOR_H_
#define ANNULUS_SIMULATOR_CHECK_DETECTOR_H_

// What the search for races in global memory shares among all devices of a process: the order of
// operations, the numbers that kernels have in stamps, and the records of all allocations.
//
// Everything that touches records (a launch, a copy, a free) runs alone, because the driver's queue
// holds a lock meanwhile. Order has a lock of its own.

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include "simulator/check/access_plane.h"
#include "simulator/check/operation.h"

namespace annulus::simulator {

class AccessRecord;

class Detector {
 public:
  Order order;

  // Gives a kernel the number that it has in stamps. Where all numbers are taken, the stamps of
  // settled operations are swept out of all records. Where that frees too few, the older half of
  // the operations is swept out too, whose races go unseen from then on.
  std::uint32_t number(const OperationPointer& kernel);
  // Requires: a number from a stamp.
  const OperationPointer& at(std::uint32_t number) const { return numbered_[number]; }

  void add(AccessRecord* record);
  void remove(AccessRecord* record);

 private:
  void sweep();
  // Forgets all operations for which `gone` holds, and takes back their numbers.
  void forget(const std::function<bool(const Operation&)>& gone);

  std::vector<OperationPointer> numbered_;  // [number]; [0] stands for no operation
  std::vector<std::uint32_t> free_;
  std::mutex mutex_;  // guards records_
  std::set<AccessRecord*> records_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_DETECTOR_H_
