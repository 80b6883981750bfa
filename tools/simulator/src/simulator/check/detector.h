#ifndef ANNULUS_SIMULATOR_CHECK_DETECTOR_H_
#define ANNULUS_SIMULATOR_CHECK_DETECTOR_H_

// State of the search for races in global memory that all devices of a process share: the order of
// operations, the numbers of kernels in stamps, and the records of all allocations.
//
// Everything that uses records (a launch, a copy, a free) runs alone, because the driver's queue
// holds a lock during it. Order has a lock of its own.

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

  // Gives a kernel the number that stands for it in stamps. If all numbers are taken, the stamps of
  // settled operations are removed from all records. If that frees too few, the older half of the
  // operations is removed too. Races with those operations are then missed.
  std::uint32_t number(const OperationPointer& kernel);
  // The kernel with this number. Requires: the number is from a stamp.
  const OperationPointer& at(std::uint32_t number) const { return numbered_[number]; }

  void add(AccessRecord* record);
  void remove(AccessRecord* record);

 private:
  void sweep();
  // Removes the stamps of all operations for which `gone` holds, and frees their numbers.
  void forget(const std::function<bool(const Operation&)>& gone);

  std::vector<OperationPointer> numbered_;  // [number]; entry 0 stands for no operation
  std::vector<std::uint32_t> free_;
  std::mutex mutex_;  // guards records_
  std::set<AccessRecord*> records_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_DETECTOR_H_
