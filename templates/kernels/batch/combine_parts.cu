// Joins the states of the parts of rows that have several (decode_forward), in the order of their
// keys, and writes what a whole row writes. Launched after it, on the same stream.
//
//   combine_parts<Shape><<<CTAs, kPackedRows * tile::kRowThreads>>>(BatchParams)
//
// A CTA takes the rows of a tile for the heads of one column, and then those of the next. Any
// number of CTAs gives the same bits. Shape gives the constants; README.md lists what it must
// define.

#include "params/batch_params.h"
#include "tile/batch_row.cuh"

namespace annulus::kernels {

template <typename Shape>
__global__ void __launch_bounds__(kPackedRows* tile::kRowThreads)
    combine_parts(const __grid_constant__ BatchParams params) {
  constexpr int kDim = Shape::kDimV;
  const int packed = static_cast<int>(threadIdx.x / tile::kRowThreads);
  const int thread = static_cast<int>(threadIdx.x % tile::kRowThreads);
  const int works = params.tables.header->joined * params.row_columns;
  for (int at = static_cast<int>(blockIdx.x); at < works; at += static_cast<int>(gridDim.x)) {
    const BatchRow& row = params.tables.rows[params.tables.joined[at / params.row_columns]];
    const int column = row.column + at % params.row_columns;
    const tile::PackedRow here(params, row, column, packed);
    if (!here.exists) continue;
    const auto slot = [&](int part) { return tile::slot_row(params, row, part, column, packed); };
    const tile::JoinedRow joined = tile::join([&](const auto& take) {
#pragma unroll 4
      for (int part = 0; part < row.parts; ++part) {
        take(params.tables.m[slot(part)], params.tables.l[slot(part)]);
      }
    });
    const auto columns = [&](int first, float(&acc)[4]) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[i] = 0.0f;
#pragma unroll 4
      for (int part = 0; part < row.parts; ++part) {
        const float weight = joined.weight(params.tables.m[slot(part)]);
        float of_part[4];
        tile::load_columns(of_part, params.tables.acc + slot(part) * kDim + first);
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[i] += weight * of_part[i];
      }
    };
    tile::finish_row<Shape>(params, row, here, thread, joined, columns);
  }
}

}  // namespace annulus::kernels
