#ifndef ANNULUS_AUTOTUNE_DEVICE_KEY_H_
#define ANNULUS_AUTOTUNE_DEVICE_KEY_H_

// The device, driver and kernels that a tuned result holds for. Everything that a measurement
// depends on enters the name of the folder, so results of different devices, drivers or kernels are
// kept beside one another and none is taken for another's.

#include <string>

#include "base/hash.h"
#include "device/device_info.h"

namespace annulus::autotune {

struct DeviceKey {
  // "NVIDIA H200, sm_90, 132 multiprocessors, 141 GB, 1980 MHz, memory 3201 MHz, L2 60 MB, driver
  // 13, kernels <32 hex digits>, measured". That of a simulated device ends in "simulated"; its
  // name has no number, and it states no memory, because that is the host's.
  std::string identity;
  std::string folder;  // "sm_90-132-<16 hex digits>", "sim-sm_80-108-<16 hex digits>"
  bool simulated = false;
};

// `architecture` is named as by jit::to_string, and `kernels` is the digest of the templates.
DeviceKey device_key(const device::DeviceInfo& device, const std::string& architecture,
                     int driver_version, const base::Digest& kernels);

// Why a result whose file states the identity `stated` is not for a device, with what differs: "it
// is of another device: driver 12, not driver 13". Empty where it is for that device.
std::string why_other(const std::string& stated, const std::string& identity);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_DEVICE_KEY_H_
