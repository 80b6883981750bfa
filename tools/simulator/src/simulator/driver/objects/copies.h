#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_COPIES_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_COPIES_H_

// Copies and fills of rows and planes, as work for calls and for nodes of graphs.

#include <string>

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// One side of a copy.
struct Place {
  GlobalMemory* memory = nullptr;  // null: memory of the host that the driver did not allocate or
                                   // register
  std::uint64_t address = 0;
  std::uint64_t pitch = 0;  // bytes from one row to the next
  std::uint64_t plane = 0;  // bytes from one plane to the next
};

struct Copy {
  Place to;
  Place from;
  std::uint64_t width = 0;  // bytes of a row; 0: nothing is copied
  std::uint64_t height = 0;
  std::uint64_t depth = 0;
  // Whether one side is host memory that the driver did not allocate or register. The call then
  // waits for the copy.
  bool pageable() const { return to.memory == nullptr || from.memory == nullptr; }
};

// Reads a program's description of a copy. Throws Refusal if the description is wrong or names an
// array.
Copy read_copy(const Context& context, const Copy3d& asked);
Copy3d widen(const Copy2d& asked);
// A copy of bytes. The types are CUmemorytype, kMemoryUnified if the address determines the type.
Copy3d bytes_copy(std::uint64_t to, int to_type, std::uint64_t from, int from_type,
                  std::size_t bytes);

Work copy_work(std::string what, const Copy& copy);

// `height` rows of `width` units of 1, 2 or 4 bytes.
struct Fill {
  abi::CUdeviceptr to = 0;
  std::uint64_t pitch = 0;  // ignored if there is one row
  std::uint32_t value = 0;
  int unit = 0;
  std::uint64_t width = 0;
  std::uint64_t height = 0;
};
// Throws Refusal if no memory holds all of the destination.
Work fill_work(std::string what, const Context& context, const Fill& fill);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_COPIES_H_
