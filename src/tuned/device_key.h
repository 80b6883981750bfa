#ifndef ANNULUS_TUNED_DEVICE_KEY_H_
#define ANNULUS_TUNED_DEVICE_KEY_H_

// The chip that a tuned result is valid for. A measurement of a chip stays valid if the driver,
// NVRTC or a clock changes, so the key has none of these: they are in the result's origin
// (entry.h). The kernels that the result compares, and their revisions, are in the result itself.

#include <optional>
#include <string>

#include "base/hash.h"
#include "device/device_info.h"

namespace annulus::tuned {

struct DeviceKey {
  // For example "NVIDIA H200, sm_90a, 132 multiprocessors, 140 GB, L2 60 MB, measured". The
  // identity of a simulated device ends in "simulated". Its name has no number, and it states no
  // memory size, because the memory is the host's. If the caller has own templates, "templates <32
  // hex digits>" comes before the last part.
  std::string identity;
  std::string folder;  // "sm_90a-132-<16 hex digits>", "sim-sm_80-108-<16 hex digits>"
  bool simulated = false;
};

// `architecture` has the form of jit::to_string. `templates` is the digest of templates that
// replace the embedded ones; kernels made from those have no revision. No value means the embedded
// templates.
DeviceKey device_key(const device::DeviceInfo& device, const std::string& architecture,
                     const std::optional<base::Digest>& templates = std::nullopt);

// The folder of the device whose identity a file states, as device_key() names it. Empty if the
// text is not an identity. For every text, the result has only letters, digits and '-'.
std::string folder_for(const std::string& identity);

// The reason why a result is not valid for a device, if its file states the identity `stated`. It
// names the difference: "it is of another device: L2 50 MB, not L2 60 MB". Empty if the result is
// valid.
std::string why_other(const std::string& stated, const std::string& identity);

// Whether results of the device `stated` may be used on the device `identity` if that device has no
// results itself. Both must be in one row of relatives.def, be measured, and differ only in name,
// memory and L2.
bool are_relatives(const std::string& stated, const std::string& identity);

// The part of a folder's name that the folders of relatives share: "sm_90a-132-".
std::string folder_stem(const DeviceKey& key);

// The first part of an identity, which is the device's name.
std::string name_in(const std::string& identity);

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_DEVICE_KEY_H_
