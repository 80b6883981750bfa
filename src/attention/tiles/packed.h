#ifndef ANNULUS_ATTENTION_TILES_PACKED_H_
#define ANNULUS_ATTENTION_TILES_PACKED_H_

// Packs several arrays for one upload, and computes pointers to them on the device.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/math.h"
#include "device/buffer.h"

namespace annulus::attention {

class Packed {
 public:
  // The offset of an empty array, which becomes a null pointer.
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Returns the array's offset. The array must not change until it is uploaded.
  template <typename T>
  std::size_t add(const std::vector<T>& values) {
    if (values.empty()) return kNone;
    const std::size_t offset = base::round_up(bytes_, kAlignment);
    parts_.push_back({offset, std::as_bytes(std::span(values))});
    bytes_ = offset + parts_.back().bytes.size();
    return offset;
  }
  template <typename T>
  std::size_t add(std::vector<T>&&) = delete;

  // The bytes that the buffer would hold.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all(bytes_);
    for (const device::UploadPart& part : parts_) {
      std::ranges::copy(part.bytes, all.begin() + static_cast<std::ptrdiff_t>(part.offset));
    }
    return all;
  }
  device::Buffer upload(const device::ContextPointer& context, device::MemoryUse use) const {
    return device::upload(context, bytes_, parts_, use);
  }

 private:
  static constexpr std::size_t kAlignment = 256;

  std::size_t bytes_ = 0;
  std::vector<device::UploadPart> parts_;
};

template <typename T>
const T* pointer(const device::Buffer& buffer, std::size_t offset) {
  return offset == Packed::kNone
             ? nullptr
             : reinterpret_cast<const T*>(static_cast<std::uintptr_t>(buffer.address() + offset));
}

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_PACKED_H_
