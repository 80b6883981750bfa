#ifndef ANNULUS_TOOLS_BENCH_PUBLISHED_H_
#define ANNULUS_TOOLS_BENCH_PUBLISHED_H_

// Published times of kernels of other programs, as problems, devices and kernels for which the pipe
// model can make predictions.

#include <span>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/family.h"
#include "device/device_info.h"

namespace annulus::bench {

// The devices of the figures, with the properties that their drivers report.
device::DeviceInfo a100();   // SXM, 80 GB
device::DeviceInfo a5000();  // RTX A5000
device::DeviceInfo h100();   // SXM
device::DeviceInfo h200();

// The use of a published figure.
enum class Use {
  kSets,     // the constants of the model are fitted to it
  kHeldOut,  // it only measures the accuracy of the model
};

struct Published {
  std::string name;
  Use use = Use::kHeldOut;
  device::DeviceInfo device;
  Problem problem;
  attention::KernelConfig config;  // the family may be one of published.cc
  double flop = 0;                 // useful work
  // The published rate, or the range of several measurements of one kernel, in useful TFLOP/s.
  double least = 0, most = 0;
  int source = 0;      // index of published_sources(), from 1
  std::string remark;  // why the model differs, if it differs by much
};

std::vector<Published> published_times();
std::span<const char* const> published_sources();

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_PUBLISHED_H_
