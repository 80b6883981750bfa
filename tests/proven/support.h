// Functions that the mains of tests/proven share: the device, inputs, the answer in float64, and
// one line of verdict for tools/proven.
//
// A main includes a library's kernel, fills its arguments, runs it with the library's own host code
// if there is any, and compares the answer. It prints one of
//
//   ANSWER right ERROR of BOUND
//   ANSWER wrong ERROR of BOUND
//   FAULT {...}                    the simulator's description of the fault that ended the launch
//
// and exits with 0, 1 or 2. Only `fault` knows the simulator: it checks whether the loaded driver
// has the entry. On a GPU the same program runs and names the call that failed.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace proven {

// The driver's number of the device. It must be queried in time, because a thread that exits has no
// context.
inline int& driver_device() {
  static int device = 0;
  return device;
}

inline void print_fault() {
  static bool told = false;
  if (told) return;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) driver = RTLD_DEFAULT;
  auto last_fault =
      reinterpret_cast<int (*)(int, char*, size_t)>(dlsym(driver, "annulusSimulatorLastFault"));
  static char text[1 << 16];
  if (!last_fault || last_fault(driver_device(), text, sizeof text) != 0 || text[0] != '{') return;
  printf("FAULT %s\n", text);
  told = true;
}

inline void check(int code, const char* what) {
  if (code == 0) return;
  printf("FAILED %s returned %d (%s)\n", what, code,
         cudaGetErrorString(static_cast<cudaError_t>(code)));
  print_fault();
  fflush(stdout);
  _Exit(2);  // the context is lost, so destructors of a library would only fail again
}

// Makes the first device of compute capability `major`.x current, whatever its number.
inline void use_device(int major) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  for (int device = 0; device < count; ++device) {
    int found = 0;
    check(cudaDeviceGetAttribute(&found, cudaDevAttrComputeCapabilityMajor, device),
          "cudaDeviceGetAttribute");
    if (found != major) continue;
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaFree(nullptr), "cudaFree");
    check(cuCtxGetDevice(&driver_device()), "cuCtxGetDevice");
    atexit(print_fault);  // a library may end the program itself if a call fails
    return;
  }
  printf("FAILED no device of compute capability %d.x\n", major);
  exit(2);
}

// Random numbers that are the same in every run: splitmix64, whose top 24 bits are a uniform
// fraction.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { state_ = bits(); }
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  float uniform() { return float(bits() >> 40) * 0x1p-23f - 1; }  // [-1, 1)
  float normal() {  // Irwin-Hall: close enough to a normal number for scores of attention
    float sum = 0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum * 0.5f;
  }

 private:
  uint64_t state_;
};

// An array on the device with its copy on the host.
template <typename T>
struct Array {
  std::vector<T> host;
  T* device = nullptr;

  explicit Array(size_t count) : host(count) {
    check(cudaMalloc(reinterpret_cast<void**>(&device), std::max<size_t>(count, 1) * sizeof(T)),
          "cudaMalloc");
  }
  Array(const Array&) = delete;
  size_t bytes() const { return host.size() * sizeof(T); }
  void upload() {
    check(cudaMemcpy(device, host.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy to device");
  }
  void download() {
    check(cudaMemcpy(host.data(), device, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy to host");
  }
  // Fills the array with normal numbers, converted to T, and uploads it.
  Array& normal(uint64_t seed, float scale = 1) {
    Random random(seed);
    for (T& value : host) value = T(random.normal() * scale);
    upload();
    return *this;
  }
  Array& set(T value) {
    std::fill(host.begin(), host.end(), value);
    upload();
    return *this;
  }
};

// Waits for the device, and ends the program if a kernel failed.
inline void finish_launch(const char* what) {
  check(cudaGetLastError(), what);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

// Collects the errors of answers: the largest difference of one number, divided by the root mean
// square of the expected numbers. NaN counts as an infinite error.
class Answer {
 public:
  void add(double got, double expected) {
    const double off = std::fabs(got - expected);
    worst_ = std::isnan(got) ? INFINITY : std::max(worst_, off);
    squares_ += expected * expected;
    ++count_;
  }
  int finish(double bound) const {
    const double error = worst_ / std::sqrt(std::max(squares_ / std::max(count_, 1.0), 1e-300));
    const bool right = count_ > 0 && error <= bound;
    printf("ANSWER %s %.3g of %.3g\n", right ? "right" : "wrong", error, bound);
    return right ? 0 : 1;
  }

 private:
  double worst_ = 0, squares_ = 0, count_ = 0;
};

// A bound for results rounded to bf16 (2^-8 of a number that may be 6 times the root mean square),
// and a bound for results rounded to f16.
constexpr double kBoundBf16 = 0.03, kBoundF16 = 0.006;

// A row of attention in float64: query `q` over `count` keys, where `key(j)` and `value(j)` return
// rows. `out` gets `dv` numbers. Returns the natural logarithm of the sum of exponentials.
template <typename Query, typename Key, typename Value>
double attention_row(const Query& q, int d, int dv, int count, double scale, const Key& key,
                     const Value& value, std::vector<double>& out) {
  std::vector<double> score(count);
  double most = -INFINITY, sum = 0;
  for (int j = 0; j < count; ++j) {
    const auto* k = key(j);
    double s = 0;
    for (int i = 0; i < d; ++i) s += double(float(q[i])) * double(float(k[i]));
    score[j] = s * scale;
    most = std::max(most, score[j]);
  }
  out.assign(dv, 0);
  for (int j = 0; j < count; ++j) {
    const double weight = std::exp(score[j] - most);
    const auto* v = value(j);
    sum += weight;
    for (int i = 0; i < dv; ++i) out[i] += weight * double(float(v[i]));
  }
  for (double& x : out) x = count ? x / sum : 0;
  return count ? most + std::log(sum) : -INFINITY;
}

// The value of `--name=NUMBER` among the arguments, or `otherwise` if it is absent.
inline int argument(int argc, char** argv, const char* name, int otherwise) {
  const size_t length = strlen(name);
  for (int i = 1; i < argc; ++i)
    if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
      return atoi(argv[i] + length + 1);
  return otherwise;
}

}  // namespace proven
