#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_IMAGE_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_IMAGE_H_

// The argument of cuModuleLoadData: PTX text, or a binary that this driver cannot run.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// The first .version and .target of a PTX text.
struct PtxHeader {
  int version = 0;     // 80 for 8.0
  std::string target;  // "sm_80"; empty if there is no such directive
};
PtxHeader read_header(std::string_view ptx);

// Whether PTX for `target` may be compiled for a device of this model. A target up to the model's
// own fits. A target that ends in a letter fits only that architecture.
bool fits(const DeviceModel& model, std::string_view target);

// The content of an image, copied out of it, because a program may release its own memory after a
// load.
struct Image {
  std::vector<std::string> ptx;  // one text, or the texts of a fat binary
  bool fat = false;
  int binaries = 0;   // compiled code for GPUs, which no simulated device runs
  std::string wrong;  // why the other entries were not read; empty if all were
};
Image read_image(const void* image);
// Whether one of its texts may be compiled for a device of this model.
bool fits(const DeviceModel& model, const Image& image);

// The outcome of a load: the kernels and variables on a device, or a code and its message.
struct LoadResult {
  std::shared_ptr<LoadedModule> loaded;
  int ptx_version = 0;  // 80 for 8.0
  abi::CUresult code = abi::kCudaSuccess;
  std::string log;
};
LoadResult load_image(Device& device, const Image& image);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_IMAGE_H_
