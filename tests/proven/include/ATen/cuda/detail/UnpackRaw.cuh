// Replaces PyTorch's header of this name. The header included below declares its contents.
#pragma once
#include <ATen/cuda/CUDAGeneratorImpl.h>
