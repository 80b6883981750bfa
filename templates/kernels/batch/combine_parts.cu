// Joins the states of the parts of rows that have several parts, in the order of their keys, and
// writes what decode_forward writes for a row with one part. It is launched after decode_forward on
// the same stream.
//
//   combine_parts<Shape><<<CTAs, kCombineThreads>>>(BatchParams)
//
// Joining a row takes as long as its dependent loads, so each thread has several loads in flight.
// combine_row_threads() threads share a row. Each of them loads the maximum and the sum of one
// part, and then 4 columns of acc of kCombineParts parts. A CTA joins a few rows of a tile for the
// heads of one column, and then rows of other tiles, columns or places. Any number of CTAs gives
// the same bits. Shape gives the constants; README.md lists what it must define.

#include "params/batch_params.h"
#include "tile/batch_row.cuh"

namespace annulus::kernels {

template <typename Shape>
__global__ void __launch_bounds__(kCombineThreads)
    combine_parts(const __grid_constant__ BatchParams params) {
  constexpr int kDim = Shape::kDimV;
  constexpr int kThreads = combine_row_threads(kDim);
  constexpr int kRows = kCombineThreads / kThreads;  // rows that a CTA joins at a time
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const unsigned lanes = tile::lanes_of_row<kThreads>();
  const int works = params.tables.header->joined * params.row_columns;
  const int groups = (params.slot_rows + kRows - 1) / kRows;
  for (int at = static_cast<int>(blockIdx.x); at < works * groups;
       at += static_cast<int>(gridDim.x)) {
    const int work = at % works;
    const int packed = at / works * kRows + static_cast<int>(threadIdx.x) / kThreads;
    const BatchRow& row = params.tables.rows[params.tables.joined[work / params.row_columns]];
    const int column = row.column + work % params.row_columns;
    const tile::PackedRow here(params, row, column, packed);
    if (!here.exists) continue;
    const int parts = row.parts;
    const long long first_slot = tile::slot_row(params, row, 0, column, packed);
    const long long stride = static_cast<long long>(params.row_columns) * params.slot_rows;
    const float* const part_m = params.tables.m + first_slot;
    const float* const part_l = params.tables.l + first_slot;
    const float first_m = thread < parts ? part_m[thread * stride] : tile::minus_infinity();
    const tile::JoinedRow joined = tile::join_over_lanes<kThreads>(lanes, [&](const auto& take) {
      if (thread < parts) take(first_m, part_l[thread * stride]);
#pragma unroll 1
      for (int part = thread + kThreads; part < parts; part += kThreads) {
        take(part_m[part * stride], part_l[part * stride]);
      }
    });
    const auto columns = [&](int first, float(&acc)[4]) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[i] = 0.0f;
      const float* const of_row = params.tables.acc + first_slot * kDim + first;
#pragma unroll 1
      for (int chunk = 0; chunk < parts; chunk += kThreads) {
        const int own = chunk + thread;
        const float m = chunk == 0 || own >= parts ? first_m : part_m[own * stride];
        const float weight = own < parts ? joined.weight(m) : 0.0f;
        const int end = parts - chunk < kThreads ? parts - chunk : kThreads;
#pragma unroll 1
        for (int part = 0; part < end; part += kCombineParts) {
          float of_part[kCombineParts][4];
#pragma unroll
          for (int i = 0; i < kCombineParts; ++i) {
            // Beyond the end the last part is loaded again.
            const int safe = part + i < end ? part + i : end - 1;
            tile::load_columns(of_part[i], of_row + (chunk + safe) * stride * kDim);
          }
#pragma unroll
          for (int i = 0; i < kCombineParts; ++i) {
            const float of_lane = __shfl_sync(lanes, weight, part + i, kThreads);
            if (part + i >= end) continue;
#pragma unroll
            for (int c = 0; c < 4; ++c) acc[c] += of_lane * of_part[i][c];
          }
        }
      }
    };
    tile::finish_row<Shape, kThreads>(params, row, here, thread, joined, columns);
  }
}

}  // namespace annulus::kernels
