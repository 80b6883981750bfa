#ifndef ANNULUS_TUNED_DEVICE_KEY_H_
#define ANNULUS_TUNED_DEVICE_KEY_H_

// The chip that a tuned result holds for. What a measurement says of a chip outlives a driver, an
// NVRTC and a clock, so none of these is in the key: they are the result's origin (entry.h). What
// kernels the result compares, and in which revision, is in the result itself.

#include <optional>
#include <string>

#include "base/hash.h"
#include "device/device_info.h"

namespace annulus::tuned {

struct DeviceKey {
  // "NVIDIA H200, sm_90a, 132 multiprocessors, 140 GB, L2 60 MB, measured". That of a simulated
  // device ends in "simulated"; its name has no number, and it states no memory, because that is
  // the host's. Templates of the caller's own are stated in front of the last part: "templates <32
  // hex digits>".
  std::string identity;
  std::string folder;  // "sm_90a-132-<16 hex digits>", "sim-sm_80-108-<16 hex digits>"
  bool simulated = false;
};

// `architecture` is named as by jit::to_string. `templates` is the digest of templates that replace
// the embedded ones, whose kernels have no revision; nothing: the embedded ones.
DeviceKey device_key(const device::DeviceInfo& device, const std::string& architecture,
                     const std::optional<base::Digest>& templates = std::nullopt);

// The folder of the device with an identity that a file states, as device_key() names it. Empty
// where the text is no identity. It holds letters, digits and '-' alone, whatever the text.
std::string folder_for(const std::string& identity);

// Why a result whose file states the identity `stated` is not for a device, with what differs: "it
// is of another device: L2 50 MB, not L2 60 MB". Empty where it is for that device.
std::string why_other(const std::string& stated, const std::string& identity);

// Whether results of the device `stated` may stand in on the device `identity` where it has none of
// its own: both are of one row of relatives.def, measured, and differ in name, memory and L2 alone.
bool are_relatives(const std::string& stated, const std::string& identity);

// The part of a folder's name that the folders of relatives share: "sm_90a-132-".
std::string folder_stem(const DeviceKey& key);

// The first part of an identity, which is the device's name.
std::string name_in(const std::string& identity);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_DEVICE_KEY_H_
