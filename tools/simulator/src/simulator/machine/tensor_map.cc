#include "simulator/machine/tensor_map.h"

#include <cstddef>
#include <cstring>

namespace annulus::simulator {
namespace {

// Limits from CUDA's documentation of cuTensorMapEncodeTiled.
constexpr std::uint64_t kMaxDim = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;
constexpr std::uint64_t kTensorAlignment = 16;  // bytes; for addresses, strides and rows of a box
constexpr std::uint32_t kMaxBox = 256;
constexpr std::uint32_t kMaxElementStride = 8;

// CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill
constexpr int kInterleave32 = 2;
constexpr int kSwizzle32 = 1;
constexpr int kSwizzle128 = 3;
constexpr int kPromotion256 = 3;
constexpr int kFillNan = 1;

bool is_float(TensorType type) { return type >= TensorType::kFloat16; }

bool dimensions_fit(const TensorMapRequest& request) {
  const std::uint64_t alignment =
      request.interleave == kInterleave32 ? 2 * kTensorAlignment : kTensorAlignment;
  if (request.address == 0 || request.address % alignment != 0) return false;
  for (std::uint32_t d = 0; d < request.rank; ++d) {
    if (request.dims[d] == 0 || request.dims[d] > kMaxDim) return false;
    if (request.box[d] == 0 || request.box[d] > kMaxBox) return false;
    if (request.element_strides[d] == 0 || request.element_strides[d] > kMaxElementStride) {
      return false;
    }
    if (d == 0) continue;
    const std::uint64_t stride = request.strides[d - 1];
    if (stride % alignment != 0 || stride >= kMaxStride) return false;
  }
  return true;
}

}  // namespace

std::uint32_t TensorMap::extent(int dimension) const {
  const auto d = static_cast<std::size_t>(dimension);
  // Without interleaving, dimension 0 has no element stride.
  if (d == 0) return box[0];
  return (box[d] + element_strides[d] - 1u) / element_strides[d];
}

std::uint32_t TensorMap::box_bytes() const {
  std::uint32_t bytes = row_bytes();
  for (int d = 1; d < rank; ++d) bytes *= extent(d);
  return bytes;
}

// FNV-1a, over words of eight bytes instead of bytes, and as two sums that do not wait for each
// other. Maps are made for every run and checked in every copy. With single bytes, this was half of
// the time that a run took on its host.
std::uint32_t TensorMap::make_digest() const {
  std::array<std::uint64_t, offsetof(TensorMap, digest) / sizeof(std::uint64_t)> words;
  static_assert(sizeof(words) == offsetof(TensorMap, digest));
  std::memcpy(words.data(), this, sizeof(words));
  constexpr std::uint64_t kBasis = 14695981039346656037u, kPrime = 1099511628211u;
  std::uint64_t even = kBasis;
  std::uint64_t odd = ~kBasis;
  std::size_t i = 0;
  for (; i + 1 < words.size(); i += 2) {
    even = (even ^ words[i]) * kPrime;
    odd = (odd ^ words[i + 1]) * kPrime;
  }
  if (i < words.size()) even = (even ^ words[i]) * kPrime;
  const std::uint64_t hash = (even ^ odd) * kPrime;
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

bool encode(const TensorMapRequest& request, TensorMap* map, bool* supported) {
  *supported = true;
  if (request.type < 0 || request.type >= kTensorTypes) return false;
  const auto type = static_cast<TensorType>(request.type);
  if (request.rank == 0 || request.rank > kMaxTensorRank) return false;
  if (request.interleave < 0 || request.interleave > kInterleave32) return false;
  if (request.interleave != 0 && request.rank < 3) return false;
  if (request.swizzle < 0 || request.swizzle > kSwizzle128) return false;
  if (request.promotion < 0 || request.promotion > kPromotion256) return false;
  if (request.fill < 0 || request.fill > kFillNan) return false;
  if (request.fill == kFillNan && !is_float(type)) return false;
  if (request.interleave == kInterleave32 && request.swizzle != kSwizzle32) return false;
  if (!dimensions_fit(request)) return false;
  if (request.interleave != 0) {
    *supported = false;
    return true;
  }
  const std::uint64_t row = std::uint64_t{request.box[0]} * bytes_of(type);
  const auto swizzle = static_cast<Swizzle>(request.swizzle);
  if (row % kTensorAlignment != 0) return false;
  if (swizzle != Swizzle::kNone && row > swizzle_span(swizzle)) return false;

  // A copy of a constant takes a few vector moves, while the compiler builds the object in place
  // with a slow `rep stos`.
  static const TensorMap kEmpty;
  *map = kEmpty;
  map->address = request.address;
  map->rank = static_cast<std::uint8_t>(request.rank);
  map->type = type;
  map->swizzle = swizzle;
  map->fill_nan = request.fill == kFillNan;
  for (std::uint32_t d = 0; d < request.rank; ++d) {
    map->last[d] = static_cast<std::uint32_t>(request.dims[d] - 1);
    map->box[d] = static_cast<std::uint16_t>(request.box[d]);
    map->element_strides[d] = static_cast<std::uint8_t>(request.element_strides[d]);
    if (d > 0) map->strides[d - 1] = request.strides[d - 1];
  }
  map->digest = map->make_digest();
  return true;
}

}  // namespace annulus::simulator
