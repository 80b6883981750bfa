// Launches the kernels that triton_kernels.py compiled, with the driver. The arguments are the PTX
// file and the program.
#include <cuda_bf16.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "attention.h"
#include "tensor_map.h"

using proven::check;
using Element = __nv_bfloat16;

struct Kernel {
  CUfunction function = nullptr;
  unsigned threads = 0, shared = 0;

  explicit Kernel(const char* path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const std::string ptx = text.str();
    char entry[200];
    if (sscanf(ptx.c_str(), "// entry %199s threads %u shared %u", entry, &threads, &shared) != 3) {
      printf("FAILED %s does not begin with what a launch needs\n", path);
      exit(2);
    }
    CUmodule module;
    check(cuModuleLoadData(&module, ptx.c_str()), "cuModuleLoadData");
    check(cuModuleGetFunction(&function, module, entry), "cuModuleGetFunction");
    check(
        cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(shared)),
        "cuFuncSetAttribute");
  }

  // After its own arguments a kernel takes two pointers to scratch memory, which it does not use.
  void run(unsigned grid, unsigned grid_y, std::vector<void*> arguments) {
    CUdeviceptr none = 0;
    arguments.insert(arguments.end(), {&none, &none});
    check(cuLaunchKernel(function, grid, grid_y, 1, threads, 1, 1, shared, nullptr,
                         arguments.data(), nullptr),
          "cuLaunchKernel");
    proven::finish_launch("cuLaunchKernel");
  }
};

static int run_rows(Kernel& kernel, bool softmax) {
  const int rows = 5, columns = 781;
  proven::Array<float> x(rows * columns), y(rows * columns);
  x.normal(1);
  int count = columns;
  kernel.run(rows, 1, {&x.device, &y.device, &count});
  y.download();
  proven::Answer answer;
  for (int r = 0; r < rows; ++r) {
    const float* row = &x.host[r * columns];
    double sum = 0, squares = 0, exponentials = 0;
    for (int i = 0; i < columns; ++i) sum += row[i], exponentials += std::exp(double(row[i]));
    for (int i = 0; i < columns; ++i) squares += std::pow(row[i] - sum / columns, 2);
    for (int i = 0; i < columns; ++i)
      answer.add(y.host[r * columns + i],
                 softmax ? std::exp(double(row[i])) / exponentials
                         : (row[i] - sum / columns) / std::sqrt(squares / columns + 1e-5));
  }
  return answer.finish(1e-5);
}

static int run_matmul(Kernel& kernel, bool persistent) {
  int m = 200, n = 272, k = 304, grid = 3;
  proven::Array<Element> a(size_t(m) * k), b(size_t(n) * k), c(size_t(m) * n);
  a.normal(1), b.normal(2);
  if (persistent) {  // B is [N, K] here, and a map is followed by the tensor's sizes and strides
    struct Map {
      CUtensorMap map;
      int sizes[2];
      int64_t strides[2];
    };
    auto make = [](Element* data, int rows, int columns, int box_rows) {
      return Map{proven::tensor_map_2d(data, columns, rows, columns, 64, box_rows, 128),
                 {rows, columns},
                 {columns, 1}};
    };
    Map maps[3] = {make(a.device, m, k, 128), make(b.device, n, k, 128), make(c.device, m, n, 128)};
    std::vector<void*> arguments;
    for (Map& map : maps)
      arguments.insert(arguments.end(),
                       {&map.map, &map.sizes[0], &map.sizes[1], &map.strides[0], &map.strides[1]});
    arguments.insert(arguments.end(), {&m, &n, &k, &grid});
    kernel.run(grid, 1, arguments);
  } else {
    kernel.run((m + 127) / 128 * ((n + 127) / 128), 1,
               {&a.device, &b.device, &c.device, &m, &n, &k});
  }
  c.download();
  proven::Answer answer;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += double(float(a.host[i * k + l])) *
               float(persistent ? b.host[j * k + l] : b.host[l * n + j]);
      answer.add(float(c.host[i * n + j]), sum);
    }
  return answer.finish(proven::kBoundBf16);
}

static int run_attention(Kernel& kernel, bool causal) {
  const int heads = 3, length = 256, dim = 64;  // [heads, S, D]
  const proven::Attention p{heads, 1, 1, length, length, dim, causal};
  proven::Array<Element> q(heads * length * dim), k(q.host.size()), v(q.host.size());
  proven::Array<Element> o(q.host.size());
  q.normal(1), k.normal(2), v.normal(3);
  int keys = length;
  float scale = float(p.scale());
  kernel.run(length / 128, heads, {&q.device, &k.device, &v.device, &o.device, &keys, &scale});
  o.download();
  return proven::compare(p, q.host, k.host, v.host, o.host, nullptr, proven::kBoundBf16);
}

int main(int argc, char** argv) {
  if (argc != 4) return printf("usage: triton FILE.ptx PROGRAM CAPABILITY\n"), 2;
  proven::use_device(atoi(argv[3]));
  Kernel kernel(argv[1]);
  const std::string name = argv[2];
  if (name == "softmax" || name == "layer_norm") return run_rows(kernel, name == "softmax");
  if (name == "matmul" || name == "persistent") return run_matmul(kernel, name == "persistent");
  return run_attention(kernel, name == "attention_causal");
}
