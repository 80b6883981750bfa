#ifndef ANNULUS_JIT_ARCH_H_
#define ANNULUS_JIT_ARCH_H_

// A GPU architecture with the names that NVRTC uses: sm_80, sm_89, sm_90a.

#include <compare>
#include <string>
#include <string_view>

namespace annulus::jit {

struct Arch {
  int number = 80;      // 10 * major + minor
  char feature = '\0';  // 'a': only this architecture, 'f': its family, '\0': no feature letter

  friend auto operator<=>(const Arch&, const Arch&) = default;
};

// "sm_90a", and "compute_90a", which is the name of the PTX target.
std::string to_string(Arch arch);
std::string virtual_name(Arch arch);

// Throws Error{kInvalidArgument} if the text does not have the form sm_<number>[a|f].
Arch parse_arch(std::string_view text);

// The architecture of a device's compute capability, without a feature letter.
constexpr Arch arch_of_capability(int major, int minor) { return {10 * major + minor, '\0'}; }

// The architecture that kernels for a device are compiled for. It is sm_90a, which has wgmma, if
// the device and its driver support tensor maps and NVRTC supports the name (12.0 and newer;
// versions are 1000 major + 10 minor). Otherwise it is the architecture of the compute capability,
// whose kernels also run on such devices.
// the NVRTC version for kernels that need not be compiled
inline constexpr int kAnyNvrtc = 1 << 30;
constexpr Arch arch_for_device(int major, int minor, bool tensor_maps, int nvrtc_version) {
  constexpr int kFirstNvrtc = 12000;
  const bool own = major == 9 && minor == 0 && tensor_maps && nvrtc_version >= kFirstNvrtc;
  return own ? Arch{90, 'a'} : arch_of_capability(major, minor);
}

// Whether a kernel compiled for `kernel` runs on a device with the architecture `device`. A cubin
// runs on devices with the same major number and the same or a higher minor number. A cubin for an
// 'a' target runs only on its own architecture.
constexpr bool runs_on(Arch kernel, Arch device) {
  if (kernel.feature == 'a') return kernel.number == device.number;
  return kernel.number / 10 == device.number / 10 && kernel.number <= device.number;
}

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_ARCH_H_
