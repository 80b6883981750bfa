// Replaces PyTorch's header of this name. FlashAttention-2 uses two of its macros.
#pragma once
#include "support.h"

#define C10_CUDA_CHECK(call) ::proven::check(static_cast<int>(call), #call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
