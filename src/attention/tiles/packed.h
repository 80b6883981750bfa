#ifndef ANNULUS_ATTENTION_TILES_PACKED_H_
#define ANNULUS_ATTENTION_TILES_PACKED_H_

// Several arrays packed for one upload, and pointers to them on the device.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/math.h"
#include "device/buffer.h"

namespace annulus::attention {

class Packed {
 public:
  // The offset of an empty array, which becomes a null pointer.
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Returns the array's offset.
  template <typename T>
  std::size_t add(const std::vector<T>& values) {
    if (values.empty()) return kNone;
    const std::size_t offset = base::round_up(bytes_.size(), kAlignment);
    bytes_.resize(offset + values.size() * sizeof(T));
    std::memcpy(bytes_.data() + offset, values.data(), values.size() * sizeof(T));
    return offset;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 256;

  std::vector<std::byte> bytes_;
};

template <typename T>
const T* pointer(const device::Buffer& buffer, std::size_t offset) {
  return offset == Packed::kNone
             ? nullptr
             : reinterpret_cast<const T*>(static_cast<std::uintptr_t>(buffer.address() + offset));
}

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_PACKED_H_
