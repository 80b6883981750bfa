// Copies of boxes of a few rows, as chunk_wgmma_forward makes for queries and keys.

#include <algorithm>
#include <array>
#include <limits>

#include "micro/bench.h"

namespace annulus::micro {
namespace {

constexpr int kTileRows = 64, kColumns = 128;
constexpr std::int64_t kEndless = std::numeric_limits<std::int32_t>::max();

// The row, head and batch of a box.
using Place = std::array<int, 3>;

// A tensor whose strides differ from the strides of its memory. All are in elements.
struct Shape {
  std::int64_t rows, heads, batches;
  std::int64_t row_stride, head_stride, batch_stride;
};

// 64 Ki elements, in which neighbouring rows differ.
std::vector<std::uint16_t> contents() {
  std::vector<std::uint16_t> values(1 << 16);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint16_t>(i * 2654435761u >> 16);
  }
  return values;
}

// Copies a tile in boxes of `box_rows` rows, whose places `place_of` returns. Returns the number of
// wrong elements.
template <typename PlaceOf>
int wrong_elements(const Bench& bench, const Shape& shape, int box_rows, const PlaceOf& place_of) {
  const std::vector<std::uint16_t> values = contents();
  const device::Buffer memory = bench.upload(values);
  const auto map = device::encode_tensor_map(
      *bench.context(), {.data = reinterpret_cast<const void*>(memory.address()),
                         .columns = kColumns,
                         .rows = shape.rows,
                         .heads = shape.heads,
                         .batches = shape.batches,
                         .row_stride = shape.row_stride,
                         .head_stride = shape.head_stride,
                         .batch_stride = shape.batch_stride,
                         .box_rows = static_cast<std::uint32_t>(box_rows)});
  const int boxes = kTileRows / box_rows;
  std::vector<int> places;
  for (int box = 0; box < boxes; ++box) {
    const Place place = place_of(box);
    places.insert(places.end(), place.begin(), place.end());
  }
  const device::Buffer at = bench.upload(places);
  const device::Buffer out = bench.zeros<std::uint16_t>(kTileRows * kColumns);
  const abi::CUdeviceptr from = at.address(), to = out.address();
  bench.run(bench.kernel("boxes.cu", "copy_rows"), {.shared_bytes = kTileRows * kColumns * 2 + 8},
            {&map, &box_rows, &from, &to});
  const auto got = bench.download<std::uint16_t>(out);
  const auto is_in = [](std::int64_t index, std::int64_t extent) {
    return index >= 0 && index < extent;
  };
  int wrong = 0;
  for (int row = 0; row < kTileRows; ++row) {
    const bool copied = row / box_rows < boxes;
    const Place place = copied ? place_of(row / box_rows) : Place{};
    const std::int64_t of_tensor = std::int64_t{place[0]} + row % box_rows;
    const bool inside = is_in(of_tensor, shape.rows) && is_in(place[1], shape.heads) &&
                        is_in(place[2], shape.batches);
    const std::int64_t first =
        of_tensor * shape.row_stride + place[1] * shape.head_stride + place[2] * shape.batch_stride;
    for (int column = 0; column < kColumns; ++column) {
      std::uint16_t want = copied ? 0 : 0xffff;
      if (copied && inside) want = values[static_cast<std::size_t>(first + column)];
      wrong += got[static_cast<std::size_t>(row * kColumns + column)] != want;
    }
  }
  return wrong;
}

void note_elements(Result& result, const std::string& what, int wrong) {
  result.numbers["wrong_elements"][what] = wrong;
  result.passed = result.passed && wrong == 0;
}

std::string boxes_of(int rows) {
  return "boxes of " + std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

}  // namespace

Result boxes_of_rows(const Bench& bench) {
  Result result;
  // Pages of 32 keys with two heads in each row, as batches store K and V.
  const Shape pages = {32, 2, 8, 2 * kColumns, kColumns, 32 * 2 * kColumns};
  for (const int rows : {1, 2, 8, 16}) {
    note_elements(result, boxes_of(rows) + " of pages",
                  wrong_elements(bench, pages, rows, [&](int box) {
                    return Place{(box * 5 + 3) % (32 / rows) * rows, box % 2, box % 7};
                  }));
  }
  // Q: the rows of a box are the heads of a group. The last box of a query may have fewer heads.
  const Shape queries = {6, 2, 40, kColumns, 6 * kColumns, 12 * kColumns};
  for (const int heads : {1, 3, 4, 5, 6}) {
    note_elements(
        result,
        "boxes of " + std::to_string(heads) + (heads == 1 ? " head" : " heads") + " of a query",
        wrong_elements(bench, queries, heads, [&](int box) {
          return Place{box % 2 * heads % 6, box / 2 % 2, box % 40};
        }));
  }
  return result;
}

Result endless_rows(const Bench& bench) {
  Result result;
  const struct {
    const char* name;
    Shape shape;
  } tensors[] = {
      {"one head, one slab", {kEndless, 1, 1, kColumns, 0, 0}},
      {"two heads within a row, one slab", {kEndless, 2, 1, 2 * kColumns, kColumns, 0}},
      {"two heads within a row, slabs",
       {kEndless, 2, 3, 2 * kColumns, kColumns, 64 * 2 * kColumns}},
      {"two heads around the rows, slabs",
       {kEndless, 2, 3, kColumns, 64 * kColumns, 2 * 64 * kColumns}},
  };
  for (const auto& [name, shape] : tensors) {
    for (const int rows : {1, 16}) {
      note_elements(result, std::string(name) + ", " + boxes_of(rows),
                    wrong_elements(bench, shape, rows, [&](int box) {
                      return Place{box * rows % 64, box % static_cast<int>(shape.heads),
                                   box % static_cast<int>(shape.batches)};
                    }));
    }
  }
  return result;
}

Result boxes_outside(const Bench& bench) {
  Result result;
  for (const bool ends : {true, false}) {
    const Shape shape = {ends ? 40 : kEndless, 2, 2, 2 * kColumns, kColumns, 40 * 2 * kColumns};
    const std::string name = ends ? "40 rows, " : "rows without an end, ";
    for (const int rows : {1, 16, 64}) {
      // All boxes are outside, and then every second box is.
      for (const int step : {1, 2}) {
        if (step == 2 && rows == 64) continue;
        const std::string of = name + boxes_of(rows) + (step == 1 ? ", all " : ", every other ");
        const auto wrong = [&](const Place& outside) {
          return wrong_elements(bench, shape, rows, [&](int box) {
            return box % step == 0 ? outside : Place{box % 24, box % 2, box / 2 % 2};
          });
        };
        note_elements(result, of + "before the first row", wrong({-rows, 1, 0}));
        if (rows > 1) {
          note_elements(result, of + "from before the first row on", wrong({-rows / 2, 1, 0}));
        }
        note_elements(result, of + "in no batch", wrong({0, 1, -1}));
        if (!ends) continue;
        note_elements(result, of + "after the last row", wrong({40, 0, 1}));
        note_elements(result, of + "far after the last row", wrong({(1 << 30) - 1, 0, 1}));
      }
    }
  }
  return result;
}

Result any_strides(const Bench& bench) {
  Result result;
  constexpr std::int64_t kLine = kColumns;
  const struct {
    const char* name;
    Shape shape;
  } tensors[] = {
      {"heads around the batches", {8, 4, 8, kLine, 64 * kLine, 8 * kLine}},
      {"rows around heads and batches", {8, 4, 8, 32 * kLine, 8 * kLine, kLine}},
      {"rows around batches, and these around heads", {8, 4, 8, 32 * kLine, kLine, 4 * kLine}},
      {"no stride a multiple of another", {8, 4, 8, 136, 8 * 136 + 8, 4 * (8 * 136 + 8) + 24}},
  };
  for (const auto& [name, shape] : tensors) {
    for (const int rows : {1, 4}) {
      note_elements(
          result, std::string(name) + ", " + boxes_of(rows),
          wrong_elements(bench, shape, rows, [&](int box) {
            return Place{box % 2 * rows, box % static_cast<int>(shape.heads), box * 3 % 8};
          }));
    }
  }
  return result;
}

Result step_clocks(const Bench& bench) {
  Result result;
  constexpr int kRowsOfStep = 128, kStepBytes = kRowsOfStep * kColumns * 2;
  const int tiles = bench.simulated() ? 3 : 32;
  const int steps = bench.simulated() ? 4 : 1000;
  const unsigned grid =
      bench.simulated() ? 1 : static_cast<unsigned>(bench.device().info().multiprocessors);
  const Matrix matrix = random_matrix(tiles * kRowsOfStep, kColumns, 100, 11);
  const device::Buffer memory = bench.upload(to_bf16(matrix));
  const abi::CUdeviceptr truth = memory.address();
  for (const int box_rows : {kRowsOfStep, 16, 1}) {
    const auto map = bench.map(memory, matrix.rows, kColumns, static_cast<std::uint32_t>(box_rows));
    for (const int prefetch : {0, 1}) {
      const device::Buffer clocks = bench.zeros<long long>(2 * grid);
      const device::Buffer wrong = bench.zeros<unsigned>(grid);
      const abi::CUdeviceptr clocks_to = clocks.address(), wrong_to = wrong.address();
      bench.run(bench.kernel("boxes.cu", "copy_steps"),
                {.grid = grid, .threads = 32, .shared_bytes = 2 * kStepBytes + 16},
                {&map, &box_rows, &prefetch, &steps, &tiles, &truth, &clocks_to, &wrong_to});
      const auto spent = bench.download<long long>(clocks);
      long long first = 0, others = 0;
      for (unsigned cta = 0; cta < grid; ++cta) {
        first = std::max(first, spent[2 * cta]);
        others = std::max(others, spent[2 * cta + 1]);
      }
      const auto words = bench.download<unsigned>(wrong);
      const bool good = std::ranges::all_of(words, [](unsigned count) { return count == 0; });
      result.numbers[boxes_of(box_rows) + (prefetch ? ", map prefetched" : "")] = {
          {"clocks_of_the_first_step", first},
          {"clocks_of_a_step", static_cast<double>(others) / (steps - 1)},
          {"right", good}};
      result.passed = result.passed && good;
    }
  }
  return result;
}

}  // namespace annulus::micro
