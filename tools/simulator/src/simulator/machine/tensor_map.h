#ifndef ANNULUS_SIMULATOR_MACHINE_TENSOR_MAP_H_
#define ANNULUS_SIMULATOR_MACHINE_TENSOR_MAP_H_

// The content that cuTensorMapEncodeTiled writes into its 128 opaque bytes, and the bytes that a
// bulk tensor copy moves between a box of the tensor and shared memory (PTX ISA 9.0, section 5.5).
//
// In shared memory, dimension 0 of a box is contiguous, then comes dimension 1, and so on. A
// swizzle exchanges 16-byte chunks by bits of their shared address:
//   128 B: bits 4-6 ^= bits 7-9     64 B: bits 4-5 ^= bits 7-8     32 B: bit 4 ^= bit 7

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace annulus::simulator {

inline constexpr int kMaxTensorRank = 5;

// CUtensorMapDataType. The last three change values on the way into shared memory.
enum class TensorType : std::uint8_t {
  kUint8,
  kUint16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBf16,
  kFloat32Flush,
  kTf32,
  kTf32Flush
};
constexpr int kTensorTypes = 13;
constexpr std::uint32_t bytes_of(TensorType type) {
  constexpr std::uint8_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return kBytes[static_cast<int>(type)];
}

// CUtensorMapSwizzle
enum class Swizzle : std::uint8_t { kNone, k32, k64, k128 };

// The number of bytes of a row within which the swizzle exchanges chunks; 16 for kNone.
constexpr std::uint32_t swizzle_span(Swizzle swizzle) {
  return 16u << static_cast<std::uint32_t>(swizzle);
}
constexpr std::uint32_t swizzled(Swizzle swizzle, std::uint32_t shared_address) {
  const std::uint32_t bits = (1u << static_cast<std::uint32_t>(swizzle)) - 1;
  return shared_address ^ (((shared_address >> 7) & bits) << 4);
}

struct alignas(64) TensorMap {
  static constexpr std::uint64_t kMagic = 0x70616d726f736e74;  // "tnsormap"

  std::uint64_t magic = kMagic;
  // Bit 21 of these eight bytes is always 0, because CUTLASS clears it in the maps of small tensors
  // if the driver is 13.1 or older.
  std::uint8_t rank = 0;
  TensorType type = TensorType::kUint8;
  Swizzle swizzle = Swizzle::kNone;
  std::uint8_t fill_nan = 0;
  std::uint32_t zero = 0;
  std::uint64_t address = 0;
  std::array<std::uint64_t, 4> strides{};  // in bytes, for dimensions 1 to 4
  std::array<std::uint32_t, 5> last{};     // the index of the last element of each dimension
  std::array<std::uint16_t, 5> box{};      // in elements, before element strides apply
  std::array<std::uint8_t, 5> element_strides{1, 1, 1, 1, 1};
  std::array<std::uint8_t, 5> zeros{};
  std::uint32_t digest = 0;  // digest of all members before it; a map that was changed is invalid

  std::uint32_t element_bytes() const { return bytes_of(type); }
  // The number of elements of a box along a dimension.
  std::uint32_t extent(int dimension) const;
  std::uint32_t row_bytes() const { return extent(0) * element_bytes(); }
  std::uint32_t box_bytes() const;
  std::uint32_t make_digest() const;
  bool valid() const { return magic == kMagic && digest == make_digest(); }
};
static_assert(sizeof(TensorMap) == 128);

using Coordinates = std::array<std::int32_t, kMaxTensorRank>;

// One row of a box. The `bytes` bytes after the first `skip` bytes are elements of the tensor. The
// rest is outside of the tensor and reads as zero, or as NaN.
struct BoxRow {
  std::uint32_t offset = 0;  // in the box, before swizzling
  std::uint64_t address = 0;
  std::uint32_t skip = 0;
  std::uint32_t bytes = 0;  // 0: the whole row is outside
};

// Visits the rows of the box whose first element has these coordinates.
template <typename Visit>
void for_rows(const TensorMap& map, const Coordinates& start, Visit visit) {
  const auto element = static_cast<std::int64_t>(map.element_bytes());
  // Along dimension 0, the same part of every row is inside.
  const std::int64_t first = std::max<std::int64_t>(0, -std::int64_t{start[0]});
  const std::int64_t end =
      std::min<std::int64_t>(map.extent(0), std::int64_t{map.last[0]} + 1 - std::int64_t{start[0]});
  BoxRow row;
  row.skip = static_cast<std::uint32_t>(first * element);
  const std::uint32_t inside =
      end > first ? static_cast<std::uint32_t>((end - first) * element) : 0;
  const std::uint32_t row_bytes = map.row_bytes();
  std::array<std::uint32_t, kMaxTensorRank> index{};
  while (true) {
    row.bytes = inside;
    auto address = static_cast<std::uint64_t>((std::int64_t{start[0]} + first) * element);
    for (int d = 1; d < map.rank; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const std::int64_t coordinate =
          std::int64_t{start[at]} + std::int64_t{index[at]} * map.element_strides[at];
      if (coordinate < 0 || coordinate > std::int64_t{map.last[at]}) row.bytes = 0;
      // A negative coordinate wraps around, and the sum wraps back.
      address += static_cast<std::uint64_t>(coordinate) * map.strides[at - 1];
    }
    row.address = map.address + address;
    visit(row);
    row.offset += row_bytes;
    std::size_t d = 1;
    for (; d < map.rank; ++d) {
      if (++index[d] < map.extent(static_cast<int>(d))) break;
      index[d] = 0;
    }
    if (d >= map.rank) return;
  }
}

// The arguments of cuTensorMapEncodeTiled, with CUDA's numbers.
struct TensorMapRequest {
  int type = 0;
  std::uint32_t rank = 0;
  std::uint64_t address = 0;
  std::span<const std::uint64_t> dims;
  std::span<const std::uint64_t> strides;  // in bytes, for dimensions 1 and up
  std::span<const std::uint32_t> box;
  std::span<const std::uint32_t> element_strides;
  int interleave = 0;
  int swizzle = 0;
  int promotion = 0;
  int fill = 0;
};

// Returns false if the driver refuses the arguments. `*supported` becomes false if the driver
// accepts them, but the simulator does not model them.
bool encode(const TensorMapRequest& request, TensorMap* map, bool* supported);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_TENSOR_MAP_H_
