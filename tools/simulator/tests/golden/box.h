#ifndef ANNULUS_SIMULATOR_TESTS_GOLDEN_BOX_H_
#define ANNULUS_SIMULATOR_TESTS_GOLDEN_BOX_H_

// The bytes that bulk tensor copies move. The definitions visit the elements of a box. The
// coordinates of an element determine its place in the tensor and its place in shared memory.
//
// In shared memory the elements of a box are dense, dimension 0 first. A swizzle moves the
// 16-byte chunks of a line within it (PTX ISA 9.0, section 5.5.6): with rows of 128, 64 or 32
// bytes,
//   128 B: chunk c of row r is at c ^ (r % 8)
//   64 B:  at c ^ (r / 2 % 4)
//   32 B:  at c ^ (r / 4 % 2)

#include <cstring>
#include <string>
#include <vector>

#include "golden/bulk.h"

namespace annulus::golden {

// CUtensorMapDataType
enum TensorType : int { kU8, kU16, kU32, kS32, kU64, kS64, kF16, kF32, kF64, kBf16 };

inline u64 bytes_of_type(int type) {
  return std::array<u64, 10>{1, 2, 4, 4, 8, 8, 2, 4, 8, 2}[static_cast<std::size_t>(type)];
}

struct Box {
  const Tensor& tensor;
  std::vector<i64> start;  // the coordinates of the box

  u64 element() const { return bytes_of_type(tensor.type); }
  u64 stride(std::size_t d) const {
    return d == 0 || tensor.element_strides.empty() ? 1 : tensor.element_strides[d];
  }
  u64 extent(std::size_t d) const { return (tensor.box[d] + stride(d) - 1) / stride(d); }
  u64 elements() const {
    u64 count = 1;
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) count *= extent(d);
    return count;
  }
  u64 bytes() const { return elements() * element(); }

  // Calls visit(byte in shared memory, byte in the tensor). The second is -1 if the element is
  // outside.
  template <typename Visit>
  void for_elements(Visit visit) const {
    for (u64 i = 0; i < elements(); ++i) {
      u64 rest = i;
      i64 from = 0;
      bool inside = true;
      for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
        const i64 at = start[d] + static_cast<i64>(rest % extent(d) * stride(d));
        rest /= extent(d);
        inside = inside && at >= 0 && at < static_cast<i64>(tensor.dims[d]);
        from += at * static_cast<i64>(d == 0 ? element() : tensor.strides[d - 1]);
      }
      visit(place(i * element()), inside ? from : -1);
    }
  }

  u64 place(u64 byte) const {
    const u64 row_bytes = extent(0) * element();
    const u64 row = byte / row_bytes;
    const u64 chunk = byte % row_bytes / 16;
    const u64 exchanged = tensor.swizzle == 3   ? chunk ^ row % 8
                          : tensor.swizzle == 2 ? chunk ^ row / 2 % 4
                          : tensor.swizzle == 1 ? chunk ^ row / 4 % 2
                                                : chunk;
    return row * row_bytes + exchanged * 16 + byte % 16;
  }
};

inline Box box_of(const Golden& self) {
  return {self.tensors[0], {self.facts.begin(), self.facts.end()}};
}

// The number of bytes from the first element of the tensor to the end of the last one.
inline u64 span_of(const Tensor& tensor) {
  u64 span = tensor.dims[0] * bytes_of_type(tensor.type);
  for (std::size_t d = 1; d < tensor.dims.size(); ++d) {
    span += (tensor.dims[d] - 1) * tensor.strides[d - 1];
  }
  return span;
}

inline Tensor tensor(int type, std::vector<u64> dims, std::vector<u64> strides,
                     std::vector<u32> box, int swizzle = 0) {
  Tensor made;
  made.type = type;
  made.dims = std::move(dims);
  made.strides = std::move(strides);
  made.box = std::move(box);
  made.swizzle = swizzle;
  return made;
}

// "{1, 2}"
std::string coordinates(const std::vector<int>& start);

// Converts the words of `expected` to bytes, and back.
std::vector<std::uint8_t> to_bytes(const Golden& self, Expected expected);
void from_bytes(const Golden& self, const std::vector<std::uint8_t>& bytes, Expected expected);

void add_tensor_stores(Set& set);  // tensor_store.cc

}  // namespace annulus::golden

#endif  // ANNULUS_SIMULATOR_TESTS_GOLDEN_BOX_H_
