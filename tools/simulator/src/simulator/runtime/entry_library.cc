// Libraries: device code that a program loads at run time.

#include <cstring>
#include <fstream>
#include <iterator>

#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime::entry {
namespace {

constexpr std::uint32_t kFatBinary = 0xba55ed50;
constexpr std::uint32_t kWrapper = 0x466243b1;

template <typename T>
T read(const void* from, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(from) + offset, sizeof(T));
  return value;
}

// strncmp stops at the end of a short text; the bytes after it may not be readable.
bool begins_with(const void* code, std::uint32_t magic) {
  char bytes[4];
  std::memcpy(bytes, &magic, sizeof(bytes));
  return std::strncmp(static_cast<const char*>(code), bytes, sizeof(bytes)) == 0;
}

// A copy of the code. The program may free the code after the call, but here it is loaded later.
// The sizes of fat binaries are in their headers, and PTX ends with a zero. The size of a cubin is
// not easy to find.
std::string copy_of(const void* code) {
  if (begins_with(code, kWrapper)) code = read<const void*>(code, 8);
  if (begins_with(code, kFatBinary)) {
    const std::size_t bytes = read<std::uint16_t>(code, 6) + read<std::uint64_t>(code, 8);
    return {static_cast<const char*>(code), bytes};
  }
  if (begins_with(code, 0x464c457f)) throw Refusal{cudaErrorNoKernelImageForDevice};  // ELF
  return static_cast<const char*>(code);
}

Error add_library(Image** library, std::string code) {
  auto image = std::make_unique<Image>(std::move(code));
  image->module(enter());  // this call reports errors in the code
  *library = add_image(std::move(image));
  return cudaSuccess;
}

Image& library_at(Image* library) {
  if (find_image(library) == nullptr) throw Refusal{cudaErrorInvalidResourceHandle};
  return *library;
}

}  // namespace

// The options are for compilers of the code, and have no effect.
Error library_load_data(Image** library, const void* code, int*, void**, unsigned, int*, void**,
                        unsigned) {
  if (library == nullptr || code == nullptr) return cudaErrorInvalidValue;
  return add_library(library, copy_of(code));
}

Error library_load_from_file(Image** library, const char* file, int*, void**, unsigned, int*,
                             void**, unsigned) {
  if (library == nullptr || file == nullptr) return cudaErrorInvalidValue;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return cudaErrorFileNotFound;
  return add_library(library, std::string{std::istreambuf_iterator<char>(stream), {}});
}

Error library_unload(Image* library) {
  remove_image(&library_at(library));
  return cudaSuccess;
}

Error library_get_kernel(Kernel** kernel, Image* library, const char* name) {
  if (kernel == nullptr || name == nullptr) return cudaErrorInvalidValue;
  Image& image = library_at(library);
  try {
    image.function(enter(), name);
  } catch (const Refusal& refusal) {
    if (refusal.code == cudaErrorInvalidDeviceFunction) return cudaErrorSymbolNotFound;
    throw;
  }
  *kernel = image.kernel(name);
  return cudaSuccess;
}

Error library_get_kernel_count(unsigned* count, Image* library) {
  return driver().module_get_function_count(count, library_at(library).module(enter()));
}

Error library_enumerate_kernels(Kernel** kernels, unsigned room, Image* library) {
  if (kernels == nullptr) return cudaErrorInvalidValue;
  Image& image = library_at(library);
  const CUmodule module = image.module(enter());
  unsigned count = 0;
  need(driver().module_get_function_count(&count, module));
  std::vector<CUfunction> functions(std::min(room, count));
  need(driver().module_enumerate_functions(functions.data(),
                                           static_cast<unsigned>(functions.size()), module));
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    need(driver().func_get_name(&name, function));
    *kernels++ = image.kernel(name);
  }
  return cudaSuccess;
}

Error library_get_global(void** pointer, std::size_t* bytes, Image* library, const char* name) {
  if (name == nullptr) return cudaErrorInvalidValue;
  void* const found = library_at(library).variable(enter(), name, bytes, cudaErrorSymbolNotFound);
  if (pointer != nullptr) *pointer = found;
  return cudaSuccess;
}

Error library_get_managed(void** pointer, std::size_t* bytes, Image* library, const char* name) {
  return library_get_global(pointer, bytes, library, name);
}

}  // namespace annulus::simulator::runtime::entry
