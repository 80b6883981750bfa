#ifndef ANNULUS_API_DEVICE_NAME_H_
#define ANNULUS_API_DEVICE_NAME_H_

// The text that names a device: "cuda:0", "cuda" for the first GPU, "sim:sm_80", or "sim:sm_90a:3".

#include <string>
#include <string_view>

namespace annulus::api {

struct DeviceName {
  bool simulated = false;
  std::string architecture;  // "sm_80"; empty for a real device
  int index = 0;

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// Throws Error{kInvalidArgument} for a text of another form.
DeviceName parse_device_name(std::string_view text);
std::string to_string(const DeviceName& name);  // "sim:sm_80" for index 0

}  // namespace annulus::api

#endif  // ANNULUS_API_DEVICE_NAME_H_
