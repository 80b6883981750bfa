// Products of one tile. They are exact.

#include "attention/kernels/wgmma/config.h"
#include "micro/bench.h"

namespace annulus::micro {
namespace {

using jit::Constant;

constexpr int kRows = 64;  // the rows of a warpgroup

std::size_t panel_bytes(int rows, int columns, int element_bytes, int row_bytes = 128) {
  const int of_panel = row_bytes / element_bytes;
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(row_bytes) *
         static_cast<std::size_t>((columns + of_panel - 1) / of_panel);
}

// The number of wrong elements of a 64 x columns answer, and of those in columns from 64 on.
struct Wrong {
  int all = 0, from_64 = 0;
};
template <typename Want>
Wrong count_wrong(const std::vector<float>& got, int columns, const Want& want) {
  Wrong wrong;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const float value = got[static_cast<std::size_t>(row * columns + column)];
      if (value == static_cast<float>(want(row, column))) continue;
      ++wrong.all;
      wrong.from_64 += column >= 64;
    }
  }
  return wrong;
}

void note(Result& result, const std::string& what, const Wrong& wrong) {
  result.numbers["wrong"][what] = {{"elements", wrong.all}, {"in_columns_from_64", wrong.from_64}};
  if (wrong.all != 0) result.passed = false;
}

Wrong score_product(const Bench& bench, int columns, int dim, bool by_rows) {
  constexpr int kMissing = 5;  // rows of K after the end, which are zeros
  const Matrix q = random_matrix(kRows, dim, 3, 1);
  const Matrix k = random_matrix(columns - kMissing, dim, 3, 2);
  const device::Buffer q_memory = bench.upload(to_bf16(q));
  const device::Buffer k_memory = bench.upload(to_bf16(k));
  const device::Buffer out = bench.zeros<float>(static_cast<std::size_t>(kRows * columns));
  const auto q_map = bench.map(q_memory, kRows, dim, kRows);
  const auto k_map =
      bench.map(k_memory, k.rows, dim, by_rows ? 1 : static_cast<std::uint32_t>(columns));
  const abi::CUdeviceptr to = out.address();
  bench.run(bench.kernel("products.cu", "score_product",
                         {Constant::integer("kColumns", columns), Constant::integer("kDim", dim),
                          Constant::boolean("kByRows", by_rows)},
                         attention::product_names(Dtype::kBfloat16, columns, columns)),
            {.shared_bytes = panel_bytes(kRows, dim, 2) + panel_bytes(columns, dim, 2) + 8},
            {&q_map, &k_map, &to});
  return count_wrong(bench.download<float>(out), columns, [&](int row, int column) {
    int sum = 0;
    for (int i = 0; column < k.rows && i < dim; ++i) sum += q.at(row, i) * k.at(column, i);
    return sum;
  });
}

int weight(int row, int key, int one_hot) {
  if (one_hot != 0) return key == (row * 5 + one_hot) % 64 ? 1 : 0;
  return (row + 3 * key) % 5 - 2;
}

// The layout of V in shared memory. kHalfPanel: 16-bit elements in panels of 64 columns, where the
// head dim fills only half of the last panel.
enum class Values { kBytes, kShipped, kHalfPanel };

Wrong value_product(const Bench& bench, int keys, int dim, Values values, int one_hot) {
  const bool bytes = values == Values::kBytes;
  const int row_bytes = values == Values::kShipped && dim % 64 != 0 ? 64 : 128;
  const Matrix v = random_matrix(keys, dim, bytes ? 8 : 3, 3);
  const device::Buffer memory = bytes ? bench.upload(to_e4m3(v)) : bench.upload(to_bf16(v));
  const device::Buffer out = bench.zeros<float>(static_cast<std::size_t>(kRows * dim));
  const auto map =
      bench.map(memory, keys, dim, static_cast<std::uint32_t>(keys), bytes ? 1 : 2, row_bytes);
  const abi::CUdeviceptr to = out.address();
  const std::size_t shared = bytes ? panel_bytes(keys, dim, 1) + panel_bytes(dim, keys, 1)
                                   : panel_bytes(keys, dim, 2, row_bytes);
  bench.run(bench.kernel(
                "products.cu", "value_product",
                {Constant::type("Element", bytes ? "tile::Float8E4M3" : "tile::Bfloat16"),
                 Constant::integer("kKeys", keys), Constant::integer("kDim", dim),
                 Constant::boolean("kHalfPanel", values == Values::kHalfPanel)},
                attention::product_names(bytes ? Dtype::kFloat8E4M3 : Dtype::kBfloat16, dim, dim)),
            {.shared_bytes = shared + 8}, {&map, &one_hot, &to});
  return count_wrong(bench.download<float>(out), dim, [&](int row, int column) {
    int sum = 0;
    for (int key = 0; key < keys; ++key) sum += weight(row, key, one_hot) * v.at(key, column);
    return sum;
  });
}

Result value_products(const Bench& bench, Values values,
                      std::initializer_list<std::pair<int, int>> shapes) {
  Result result;
  for (const auto& [keys, dim] : shapes) {
    note(result, std::to_string(keys) + " keys, head dim " + std::to_string(dim),
         value_product(bench, keys, dim, values, 0));
  }
  return result;
}

Result score_products(const Bench& bench, bool by_rows,
                      std::initializer_list<std::pair<int, int>> shapes) {
  Result result;
  for (const auto& [columns, dim] : shapes) {
    note(result, "N " + std::to_string(columns) + ", head dim " + std::to_string(dim),
         score_product(bench, columns, dim, by_rows));
  }
  return result;
}

}  // namespace

Result score_products(const Bench& bench) {
  return score_products(bench, false,
                        {{64, 64},
                         {80, 128},
                         {96, 192},
                         {112, 128},
                         {128, 96},
                         {144, 128},
                         {160, 64},
                         {176, 128},
                         {192, 64}});
}

Result scores_by_rows(const Bench& bench) {
  return score_products(bench, true, {{64, 64}, {128, 128}, {128, 96}, {96, 192}, {64, 256}});
}

Result value_products(const Bench& bench) {
  return value_products(bench, Values::kShipped,
                        {{64, 64}, {64, 128}, {128, 128}, {176, 128}, {64, 256}, {96, 192}});
}

Result value_products_narrow_panels(const Bench& bench) {
  return value_products(bench, Values::kShipped, {{128, 96}, {64, 96}, {96, 96}, {128, 160}});
}

Result value_products_half_panel(const Bench& bench) {
  return value_products(bench, Values::kHalfPanel, {{128, 96}, {64, 96}, {96, 96}, {128, 160}});
}

Result e4m3_values(const Bench& bench) {
  Result result;
  note(result, "one key a row", value_product(bench, 128, 128, Values::kBytes, 1));
  note(result, "all keys", value_product(bench, 128, 128, Values::kBytes, 0));
  note(result, "64 keys, head dim 64", value_product(bench, 64, 64, Values::kBytes, 0));
  return result;
}

}  // namespace annulus::micro
