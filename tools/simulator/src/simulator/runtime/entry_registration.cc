// Functions that nvcc's host code calls: registration before main(), and kernel<<<...>>>.

#include "simulator/runtime/entries.h"
#include "simulator/runtime/log.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime {

// Constructors call the registering functions and cannot handle errors. The first use of a missing
// object reports the error.
extern "C" void** __cudaRegisterFatBinary(void* fat_binary) {
  return reinterpret_cast<void**>(add_image(std::make_unique<Image>(fat_binary)));
}

extern "C" void __cudaRegisterFatBinaryEnd(void**) {}

extern "C" void __cudaUnregisterFatBinary(void** handle) {
  if (Image* const image = find_image(handle)) {
    serve("__cudaUnregisterFatBinary", [&]() -> Error {
      remove_image(image);
      return cudaSuccess;
    });
  }
}

extern "C" void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name,
                                       int, void*, void*, void*, void*, int*) {
  if (Image* const image = find_image(handle)) add_kernel(host, image->kernel(name));
}

extern "C" void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int,
                                  std::size_t bytes, int, int) {
  if (Image* const image = find_image(handle)) add_variable(host, {image, name, bytes});
}

extern "C" void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int,
                                         std::size_t bytes, int, int) {
  Image* const image = find_image(handle);
  if (image == nullptr) return;
  image->add_managed(host, name);
  add_variable(host, {image, name, bytes});
}

extern "C" void __cudaRegisterHostVar(void**, const char* name, char*, std::size_t) {
  write_once(name, std::string("the host's variable ") + name + " is not visible to kernels");
}

extern "C" char __cudaInitModule(void** handle) {
  const Error code = serve("__cudaInitModule", [&]() -> Error {
    Image* const image = find_image(handle);
    if (image == nullptr) return cudaErrorInvalidResourceHandle;
    image->place_managed(enter());
    return cudaSuccess;
  });
  return code == cudaSuccess ? 1 : 0;
}

extern "C" unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared_bytes,
                                                CUstream stream) {
  Thread& mine = thread();
  if (mine.configuration_count == mine.configurations.size()) return 1;
  mine.configurations[mine.configuration_count++] = {grid, block, shared_bytes, stream};
  return 0;
}

namespace entry {

Error pop_call_configuration(Dim3* grid, Dim3* block, std::size_t* shared_bytes, void* stream) {
  Thread& mine = thread();
  if (mine.configuration_count == 0) return cudaErrorMissingConfiguration;
  const Configuration last = mine.configurations[--mine.configuration_count];
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<CUstream*>(stream) = last.stream;
  return cudaSuccess;
}

// nvcc's code calls this once for each kernel and keeps the result.
Error get_kernel_once(Kernel** kernel, const void* function) {
  *kernel = &find_kernel(function);
  return cudaSuccess;
}

Error launch_registered(Kernel* kernel, Dim3 grid, Dim3 block, void** parameters,
                        std::size_t shared_bytes, CUstream stream) {
  return launch(kernel, grid, block, parameters, shared_bytes, stream);
}

}  // namespace entry
}  // namespace annulus::simulator::runtime
