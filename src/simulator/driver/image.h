#ifndef ANNULUS_SIMULATOR_DRIVER_IMAGE_H_
#define ANNULUS_SIMULATOR_DRIVER_IMAGE_H_

// What a program hands to cuModuleLoadData: PTX text, or a binary that this driver cannot run.

#include <memory>
#include <string>
#include <string_view>

#include "simulator/driver/state.h"

namespace annulus::simulator::driver {

// The first .version and .target of a PTX text.
struct PtxHeader {
  int version = 0;     // 80 for 8.0
  std::string target;  // "sm_80"; empty: there is none
};
PtxHeader read_header(std::string_view ptx);

// Whether PTX for `target` may be compiled for a device of this model. Targets up to its own may;
// one that ends in a letter fits that architecture alone.
bool fits(const DeviceModel& model, std::string_view target);

// The outcome of a load: a module, or a code and what to say about it.
struct LoadResult {
  std::shared_ptr<Module> module;
  abi::CUresult code = abi::kCudaSuccess;
  std::string log;
};
LoadResult load_image(const std::shared_ptr<Context>& context, const void* image);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_IMAGE_H_
