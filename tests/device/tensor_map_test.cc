// The arguments of cuTensorMapEncodeTiled. The functions of the table record them.

#include "device/tensor_map.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "support/simulator.h"

namespace annulus::device {
namespace {

struct Given {
  std::array<std::uint64_t, 3> strides = {};
  std::uint32_t box_columns = 0;
  int swizzle = 0;
};
Given given;

ContextPointer recording() {
  abi::CudaTable table = test::simulator_table();
  table.tensor_map_encode_tiled = [](abi::CUtensorMap*, int, std::uint32_t, void*,
                                     const std::uint64_t*, const std::uint64_t* strides,
                                     const std::uint32_t* box, const std::uint32_t*, int,
                                     int swizzle, int, int) -> abi::CUresult {
    std::copy_n(strides, 3, given.strides.begin());
    given.box_columns = box[0];
    given.swizzle = swizzle;
    return abi::kCudaSuccess;
  };
  return Context::retain(std::make_shared<Driver>(table, "recording"), 0);
}

// A tensor of 96 columns of 16 bits. Strides are in elements.
BoxedTensor tensor(std::array<std::int64_t, 3> extents, std::array<std::int64_t, 3> strides) {
  return {.columns = 96,
          .rows = extents[0],
          .heads = extents[1],
          .batches = extents[2],
          .row_stride = strides[0],
          .head_stride = strides[1],
          .batch_stride = strides[2],
          .box_rows = 64};
}

using Strides = std::array<std::uint64_t, 3>;

// A driver must never get a stride that is smaller than the extent in bytes that it steps over.
TEST_CASE("dimensions of one entry get the stride that a dense tensor would have") {
  const ContextPointer context = recording();
  const auto strides_of = [&](const BoxedTensor& of) {
    encode_tensor_map(*context, of);
    return given.strides;
  };
  const std::int64_t kAny = -7;  // a stride that is never used
  CHECK(strides_of(tensor({40, 3, 2}, {300, 100, 12000})) == Strides{600, 200, 24000});
  CHECK(strides_of(tensor({40, 1, 1}, {96, kAny, kAny})) == Strides{192, 192 * 40, 192 * 40});
  CHECK(strides_of(tensor({40, 1, 2}, {96, kAny, 4000})) == Strides{192, 192 * 40, 8000});
  CHECK(strides_of(tensor({1, 3, 1}, {0, 104, 8})) == Strides{192, 208, 624});
  CHECK(strides_of(tensor({0, 1, 1}, {kAny, kAny, kAny})) == Strides{192, 192, 192});
  // The heads are within rows, so the next larger dimension of both is the row.
  CHECK(strides_of(tensor({40, 3, 1}, {300, 96, kAny})) == Strides{600, 192, 24000});
  // Strides stay below 2^40, and are multiples of 16.
  constexpr std::int64_t kLarge = (std::int64_t{1} << 39) - 8;
  const Strides large = strides_of(tensor({4, 1, 1}, {kLarge, kAny, kAny}));
  CHECK(large[1] == (std::uint64_t{1} << 40) - 16);
  CHECK(large[2] == large[1]);
}

TEST_CASE("a box's rows have as many bytes as its swizzle") {
  const ContextPointer context = recording();
  BoxedTensor of = tensor({40, 1, 1}, {96, 0, 0});
  encode_tensor_map(*context, of);
  CHECK(given.box_columns == 64);
  CHECK(given.swizzle == 3);
  of.box_row_bytes = 64;
  encode_tensor_map(*context, of);
  CHECK(given.box_columns == 32);
  CHECK(given.swizzle == 2);
}

}  // namespace
}  // namespace annulus::device
