// Replaces PyTorch's header of this name. FlashAttention-2 keeps the state of its dropout in a
// member of this type, but dropout is not used here.
#pragma once
#include <cstdint>
#include <tuple>

namespace at {

struct PhiloxCudaState {
  uint64_t seed = 0, offset = 0;
};

namespace cuda::philox {

__host__ __device__ inline std::tuple<uint64_t, uint64_t> unpack(PhiloxCudaState state) {
  return {state.seed, state.offset};
}

}  // namespace cuda::philox
}  // namespace at
