#include "simulator/driver/objects/copies.h"

#include <cstring>

#include "simulator/driver/objects/accesses.h"
#include "simulator/driver/objects/host_memory.h"

namespace annulus::simulator::driver {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 62;

// The product and the sum of two numbers. Both throw Refusal if the result is larger than any
// memory.
std::uint64_t times(std::uint64_t one, std::uint64_t other) {
  if (other != 0 && one > kMost / other) throw Refusal{abi::kCudaInvalidValue};
  return one * other;
}
std::uint64_t plus(std::uint64_t one, std::uint64_t other) {
  if (one > kMost || other > kMost) throw Refusal{abi::kCudaInvalidValue};
  return one + other;
}

// The members that describe one side of a copy, which have other names for the source than for the
// destination.
struct Side {
  std::size_t x, y, z, level;
  int type;
  const void* host;
  abi::CUdeviceptr device;
  const void* array;
  std::size_t pitch, rows;
};

Place read_place(const Context& context, const Side& side, const Copy& copy) {
  if (side.level != 0) throw Refusal{abi::kCudaInvalidValue};
  if (side.type == kMemoryArray) throw Refusal{abi::kCudaNotSupported};
  const std::uint64_t row_end = plus(side.x, copy.width);
  const std::uint64_t pitch = side.pitch == 0 ? row_end : side.pitch;
  const std::uint64_t rows = side.rows == 0 ? plus(side.y, copy.height) : side.rows;
  if (pitch < row_end || (copy.depth > 1 && rows < plus(side.y, copy.height))) {
    throw Refusal{abi::kCudaInvalidValue};
  }
  Place place;
  place.pitch = pitch;
  place.plane = times(pitch, rows);
  const std::uint64_t offset = plus(plus(times(side.z, place.plane), times(side.y, pitch)), side.x);
  const std::uint64_t bytes =
      plus(plus(times(copy.depth - 1, place.plane), times(copy.height - 1, pitch)), copy.width);
  switch (side.type) {
    case kMemoryHost:
      place.address = plus(reinterpret_cast<std::uint64_t>(side.host), offset);
      break;
    case kMemoryDevice:
    case kMemoryUnified:
      place.address = plus(side.device, offset);
      break;
    default:
      throw Refusal{abi::kCudaInvalidValue};
  }
  if (place.address == offset) throw Refusal{abi::kCudaInvalidValue};
  if (side.type == kMemoryDevice || memory_at(place.address) != nullptr) {
    place.memory = &memory_with(context, place.address, bytes);
  }
  return place;
}

void copy_row(const OperationPointer& operation, const Place& to, const Place& from,
              std::uint64_t to_offset, std::uint64_t from_offset, std::uint64_t bytes) {
  const std::uint64_t target = to.address + to_offset;
  const std::uint64_t source = from.address + from_offset;
  if (from.memory != nullptr) note(operation, AccessKind::kRead, *from.memory, source, bytes);
  if (to.memory != nullptr) note(operation, AccessKind::kWrite, *to.memory, target, bytes);
  if (to.memory != nullptr && from.memory != nullptr) {
    to.memory->copy(target, *from.memory, source, bytes);
  } else if (to.memory != nullptr) {
    to.memory->write(target, reinterpret_cast<const void*>(source), bytes);
  } else if (from.memory != nullptr) {
    from.memory->read(reinterpret_cast<void*>(target), source, bytes);
  } else {
    std::memmove(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), bytes);
  }
}

// Rows that follow one another without a gap on both sides become one row.
Copy joined(Copy copy) {
  if (copy.to.pitch == copy.width && copy.from.pitch == copy.width) {
    copy.width *= copy.height;
    copy.height = 1;
    if (copy.to.plane == copy.width && copy.from.plane == copy.width) {
      copy.width *= copy.depth;
      copy.depth = 1;
    }
  }
  return copy;
}

}  // namespace

Copy3d widen(const Copy2d& asked) {
  Copy3d wide{};
  wide.from_x = asked.from_x;
  wide.from_y = asked.from_y;
  wide.from_type = asked.from_type;
  wide.from_host = asked.from_host;
  wide.from_device = asked.from_device;
  wide.from_array = asked.from_array;
  wide.from_pitch = asked.from_pitch;
  wide.to_x = asked.to_x;
  wide.to_y = asked.to_y;
  wide.to_type = asked.to_type;
  wide.to_host = asked.to_host;
  wide.to_device = asked.to_device;
  wide.to_array = asked.to_array;
  wide.to_pitch = asked.to_pitch;
  wide.width = asked.width;
  wide.height = asked.height;
  wide.depth = 1;
  return wide;
}

Copy3d bytes_copy(std::uint64_t to, int to_type, std::uint64_t from, int from_type,
                  std::size_t bytes) {
  Copy3d asked{};
  asked.from_type = from_type;
  asked.from_device = from_type == kMemoryHost ? 0 : from;
  asked.from_host = from_type == kMemoryHost ? reinterpret_cast<const void*>(from) : nullptr;
  asked.to_type = to_type;
  asked.to_device = to_type == kMemoryHost ? 0 : to;
  asked.to_host = to_type == kMemoryHost ? reinterpret_cast<void*>(to) : nullptr;
  asked.width = bytes;
  asked.height = asked.depth = 1;
  return asked;
}

Copy read_copy(const Context& context, const Copy3d& asked) {
  Copy copy;
  copy.width = asked.width;
  copy.height = asked.height;
  copy.depth = asked.depth;
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) {
    copy.width = 0;
    return copy;
  }
  const Side from{asked.from_x,     asked.from_y,     asked.from_z,      asked.from_level,
                  asked.from_type,  asked.from_host,  asked.from_device, asked.from_array,
                  asked.from_pitch, asked.from_height};
  const Side to{asked.to_x,    asked.to_y,      asked.to_z,     asked.to_level, asked.to_type,
                asked.to_host, asked.to_device, asked.to_array, asked.to_pitch, asked.to_height};
  copy.from = read_place(context, from, copy);
  copy.to = read_place(context, to, copy);
  return copy;
}

Work copy_work(std::string what, const Copy& copy) {
  return make_work(std::move(what), [copy = joined(copy)](const OperationPointer& operation) {
    for (std::uint64_t z = 0; z < copy.depth && copy.width != 0; ++z) {
      for (std::uint64_t y = 0; y < copy.height; ++y) {
        copy_row(operation, copy.to, copy.from, z * copy.to.plane + y * copy.to.pitch,
                 z * copy.from.plane + y * copy.from.pitch, copy.width);
      }
    }
  });
}

Work fill_work(std::string what, const Context& context, const Fill& fill) {
  const auto unit = static_cast<std::uint64_t>(fill.unit);
  const bool unit_fits = fill.unit == 1 || fill.unit == 2 || fill.unit == 4;
  if (!unit_fits || fill.to % unit != 0 || fill.width == 0 || fill.height == 0) {
    throw Refusal{abi::kCudaInvalidValue};
  }
  const std::uint64_t width = times(fill.width, unit);
  if (fill.height > 1 && (fill.pitch < width || fill.pitch % unit != 0)) {
    throw Refusal{abi::kCudaInvalidValue};
  }
  const std::uint64_t bytes = plus(times(fill.height - 1, fill.pitch), width);
  GlobalMemory& memory = memory_with(context, fill.to, bytes);
  return make_work(std::move(what), [&memory, fill, width](const OperationPointer& operation) {
    for (std::uint64_t y = 0; y < fill.height; ++y) {
      const std::uint64_t at = fill.to + y * fill.pitch;
      note(operation, AccessKind::kWrite, memory, at, width);
      memory.fill(at, fill.value, fill.unit, fill.width);
    }
  });
}

}  // namespace annulus::simulator::driver
