// Devices: which exist, which one a thread uses, and their properties.

#include <cstring>
#include <string>

#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime::entry {
namespace {

int device_count() {
  int count = 0;
  need(driver().device_get_count(&count));
  return count;
}

void check_device(int device) {
  const int count = device_count();
  if (count == 0) throw Refusal{cudaErrorNoDevice};
  if (device < 0 || device >= count) throw Refusal{cudaErrorInvalidDevice};
}

template <typename T>
void fill(T& member, int attribute, int device) {
  int value = 0;
  // If a driver does not know an attribute, it does not have the feature.
  if (driver().device_get_attribute(&value, attribute, device) == cudaSuccess) {
    member = static_cast<T>(value);
  }
}

}  // namespace

Error get_device_count(int* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  *count = 0;
  *count = device_count();
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

Error get_device(int* device) {
  if (device == nullptr) return cudaErrorInvalidValue;
  CUcontext current = nullptr;
  need(driver().ctx_get_current(&current));
  if (current != nullptr) return driver().ctx_get_device(device);
  *device = thread().device;
  return cudaSuccess;
}

Error set_device(int device) {
  check_device(device);
  choose(device);
  return cudaSuccess;
}

Error init_device(int device, unsigned, unsigned) {
  check_device(device);
  primary_context(device);
  return cudaSuccess;
}

// The first device that has all of the properties that the program wants, or the first device.
Error choose_device(int* device, const DeviceProperties* wanted) {
  if (device == nullptr || wanted == nullptr) return cudaErrorInvalidValue;
  check_device(0);
  *device = 0;
  for (int one = device_count() - 1; one >= 0; --one) {
    DeviceProperties has;
    need(get_device_properties(&has, one));
    if (10 * has.major + has.minor >= 10 * wanted->major + wanted->minor &&
        has.totalGlobalMem >= wanted->totalGlobalMem &&
        has.multiProcessorCount >= wanted->multiProcessorCount) {
      *device = one;
    }
  }
  return cudaSuccess;
}

// A thread that chooses no device gets the first one of the list.
Error set_valid_devices(int* devices, int count) {
  if (devices == nullptr || count < 0) return cudaErrorInvalidValue;
  for (int i = 0; i < count; ++i) check_device(devices[i]);
  if (count > 0) thread().device = devices[0];
  return cudaSuccess;
}

Error get_device_flags(unsigned* flags) {
  if (flags == nullptr) return cudaErrorInvalidValue;
  enter();
  return driver().ctx_get_flags(flags);
}

Error set_device_flags(unsigned flags) {
  int device = 0;
  need(get_device(&device));
  return driver().primary_ctx_set_flags(device, flags);
}

Error get_device_properties(DeviceProperties* properties, int device) {
  if (properties == nullptr) return cudaErrorInvalidValue;
  check_device(device);
  *properties = {};
  need(driver().device_get_name(properties->name, sizeof(properties->name), device));
  need(driver().device_get_uuid(&properties->uuid, device));
  need(driver().device_total_mem(&properties->totalGlobalMem, device));
#define PROPERTY(member, attribute) fill(properties->member, attribute, device);
#include "simulator/runtime/properties.def"
  return cudaSuccess;
}

Error device_attribute(int* value, int attribute, int device) {
  check_device(device);
  return driver().device_get_attribute(value, attribute, device);
}

Error device_get_by_pci_bus_id(int* device, const char* id) {
  if (device == nullptr || id == nullptr) return cudaErrorInvalidValue;
  for (int one = 0; one < device_count(); ++one) {
    char text[32] = {};
    need(driver().device_get_pci_bus_id(text, sizeof(text), one));
    if (std::strcmp(text, id) != 0) continue;
    *device = one;
    return cudaSuccess;
  }
  return cudaErrorInvalidDevice;
}

Error device_pci_bus_id(char* text, int bytes, int device) {
  check_device(device);
  return driver().device_get_pci_bus_id(text, bytes, device);
}

Error device_reset() {
  reset_device();
  return cudaSuccess;
}

// Since sm_70 the banks of shared memory always have a width of 4 bytes.
Error device_get_shared_config(int* config) {
  constexpr int kFourBytes = 1;
  if (config == nullptr) return cudaErrorInvalidValue;
  *config = kFourBytes;
  return cudaSuccess;
}

Error device_set_shared_config(int config) {
  return config < 0 || config > 2 ? cudaErrorInvalidValue : cudaSuccess;
}

Error device_enable_peer_access(int peer, unsigned flags) {
  check_device(peer);
  const CUcontext other = primary_context(peer);
  enter();
  const CUresult code = driver().ctx_enable_peer_access(other, flags);
  return code == cudaErrorDeviceUninitialized ? Error{cudaErrorInvalidDevice} : code;
}

Error device_disable_peer_access(int peer) {
  check_device(peer);
  const CUcontext other = primary_context(peer);
  enter();
  return driver().ctx_disable_peer_access(other);
}

}  // namespace annulus::simulator::runtime::entry
