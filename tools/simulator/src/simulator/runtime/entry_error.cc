// Errors, versions, and the driver's functions by name.

#include <utility>

#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime {
namespace {

struct ErrorText {
  Error code;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
#define ERROR(number, name, text) {number, #name, text},
#include "simulator/runtime/errors.def"
};
constexpr ErrorText kNone{-1, "unrecognized error code", "unrecognized error code"};

const ErrorText& text_of(Error error) {
  for (const ErrorText& one : kErrors) {
    if (one.code == error) return one;
  }
  return kNone;
}

}  // namespace

extern "C" const char* cudaGetErrorName(Error error) { return text_of(error).name; }
extern "C" const char* cudaGetErrorString(Error error) { return text_of(error).text; }

extern "C" Error cudaPeekAtLastError() { return thread().last_error; }

// A lost context stays lost, so its error stays too.
extern "C" Error cudaGetLastError() {
  Error& last = thread().last_error;
  return is_sticky(last) ? last : std::exchange(last, Error{cudaSuccess});
}

namespace entry {

// Stores 0 if there is no driver.
Error driver_get_version(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = 0;
  const DriverTable* const driver = find_driver();
  return driver == nullptr ? Error{cudaSuccess} : driver->driver_get_version(version);
}

Error runtime_get_version(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = kVersion;
  return cudaSuccess;
}

Error get_driver_entry_point(const char* symbol, void** function, unsigned long long flags,
                             int* status) {
  return get_driver_entry_point_by_version(symbol, function, kVersion, flags, status);
}

Error get_driver_entry_point_by_version(const char* symbol, void** function, unsigned version,
                                        unsigned long long flags, int* status) {
  return driver().get_proc_address(symbol, function, static_cast<int>(version), flags, status);
}

// The undocumented tables of functions that NVIDIA's libraries share. There are none here.
Error get_export_table(const void** table, const Uuid*) {
  if (table != nullptr) *table = nullptr;
  return cudaErrorSymbolNotFound;
}

}  // namespace entry
}  // namespace annulus::simulator::runtime
