#ifndef ANNULUS_TILE_ROTARY_CUH_
#define ANNULUS_TILE_ROTARY_CUH_

// Rotary position embedding (Su et al., RoFormer: Enhanced Transformer with Rotary Position
// Embedding, 2021): two elements (x, y) become (x cos a - y sin a, x sin a + y cos a), in fp32,
// with an angle a = position * frequency.
//
// In fp32, the product of a position and a frequency has an error of its last bit, which is 0.06
// radians at position 10^6. Here a frequency is an integer, the turns for each position in units of
// 2^-64, and so is the product: integers drop whole turns exactly, by overflow. The rest has an
// error of position * 2^-64 turns, which is 2^-34 at position 2^30. Its upper 32 bits are used.

#include "params/append_params.h"
#include "ptx/memory.cuh"
#include "tile/chunk.cuh"

namespace annulus::tile {

struct Rotation {
  float cosine;
  float sine;
};

// The rotation by `turns`; 2^64 is a whole turn. Errors are below 2^-22.
__device__ __forceinline__ Rotation rotation_of(unsigned long long turns) {
  // The nearest quarter turn, and the rest of up to an eighth of a turn, in units of 2^-32 turns.
  const unsigned top = static_cast<unsigned>(turns >> 32);
  const unsigned quarter = (top + (1u << 29)) >> 30;
  const float x = __fmul_rn(static_cast<float>(static_cast<int>(top - (quarter << 30))),
                            1.4629180792671596e-9f);
  // The series of both, up to x^9 and x^8.
  const float square = __fmul_rn(x, x);
  float sine = __fmaf_rn(square, 2.7557319e-6f, -1.9841270e-4f);
  sine = __fmaf_rn(sine, square, 8.3333333e-3f);
  sine = __fmaf_rn(sine, square, -1.6666667e-1f);
  sine = __fmaf_rn(__fmul_rn(sine, square), x, x);
  float cosine = __fmaf_rn(square, 2.4801587e-5f, -1.3888889e-3f);
  cosine = __fmaf_rn(cosine, square, 4.1666667e-2f);
  cosine = __fmaf_rn(cosine, square, -0.5f);
  cosine = __fmaf_rn(cosine, square, 1.0f);
  const bool swapped = (quarter & 1u) != 0;
  const float a = swapped ? sine : cosine;
  const float b = swapped ? cosine : sine;
  return {(quarter + 1u & 2u) != 0 ? -a : a, (quarter & 2u) != 0 ? -b : b};
}

// Sources of rotations: computed from the `turns` of each pair, or read from tables whose entries
// have a type.
struct ComputedRotations {
  static __device__ __forceinline__ Rotation get(const kernels::AppendParams& params, int position,
                                                 int pair) {
    return rotation_of(static_cast<unsigned long long>(static_cast<long long>(position)) *
                       params.turns[pair]);
  }
};
struct Float32Rotations {
  static __device__ __forceinline__ Rotation get(const kernels::AppendParams& params, int position,
                                                 int pair) {
    const long long at = position * params.table_row + pair;
    return {static_cast<const float*>(params.cosines)[at],
            static_cast<const float*>(params.sines)[at]};
  }
};

template <typename Element>
struct Rotations16 {
  static __device__ __forceinline__ Rotation get(const kernels::AppendParams& params, int position,
                                                 int pair) {
    const long long at = position * params.table_row + pair;
    const unsigned cosine = static_cast<const unsigned short*>(params.cosines)[at];
    const unsigned sine = static_cast<const unsigned short*>(params.sines)[at];
    Rotation made;
    unpack(Element{}, made.cosine, made.sine, cosine | sine << 16);
    return made;
  }
};

__device__ __forceinline__ void rotate(float& x, float& y, const Rotation& by) {
  const float rotated = __fmaf_rn(x, by.cosine, -__fmul_rn(y, by.sine));
  y = __fmaf_rn(x, by.sine, __fmul_rn(y, by.cosine));
  x = rotated;
}

// The rotations of a row in shared memory, one for each pair.
struct SharedRotations {
  unsigned cosines;
  unsigned sines;

  // Loads the rotations of kCount neighbouring pairs, a multiple of 4, from pair `first` on, which
  // is a multiple of 4 too.
  template <int kCount>
  __device__ __forceinline__ void load(Rotation (&rotations)[kCount], int first) const {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const ptx::Words4 c = ptx::load_shared_16(cosines + (first + i) * 4);
      const ptx::Words4 s = ptx::load_shared_16(sines + (first + i) * 4);
      rotations[i] = {__uint_as_float(c.x), __uint_as_float(s.x)};
      rotations[i + 1] = {__uint_as_float(c.y), __uint_as_float(s.y)};
      rotations[i + 2] = {__uint_as_float(c.z), __uint_as_float(s.z)};
      rotations[i + 3] = {__uint_as_float(c.w), __uint_as_float(s.w)};
    }
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_ROTARY_CUH_
