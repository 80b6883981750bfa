#ifndef ANNULUS_TOOLS_BENCH_PUBLISHED_H_
#define ANNULUS_TOOLS_BENCH_PUBLISHED_H_

// Times that others have published of their own kernels, as problems, devices and kernels that the
// pipe model can be asked about.

#include <span>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/family.h"
#include "device/device_info.h"

namespace annulus::bench {

// The devices of the figures, as their drivers describe them.
device::DeviceInfo a100();   // SXM, 80 GB
device::DeviceInfo a5000();  // RTX A5000
device::DeviceInfo h100();   // SXM
device::DeviceInfo h200();

// What a published figure is used for.
enum class Use {
  kSets,     // the constants of the model are fitted to it
  kHeldOut,  // it only says how good the model is
};

struct Published {
  std::string name;
  Use use = Use::kHeldOut;
  device::DeviceInfo device;
  Problem problem;
  attention::KernelConfig config;  // its family may be one of published.cc
  double flop = 0;                 // useful work
  // The published rate, or the range of several measurements of the same, in useful TFLOP/s.
  double least = 0, most = 0;
  int source = 0;      // index of published_sources(), from 1 on
  std::string remark;  // why the model differs, where it does by much
};

std::vector<Published> published_times();
std::span<const char* const> published_sources();

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_PUBLISHED_H_
