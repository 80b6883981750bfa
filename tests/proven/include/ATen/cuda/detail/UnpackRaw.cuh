// Stands for PyTorch's header of this name; what it declares is there.
#pragma once
#include <ATen/cuda/CUDAGeneratorImpl.h>
