#ifndef ANNULUS_SIMULATOR_RUNTIME_IMAGES_H_
#define ANNULUS_SIMULATOR_RUNTIME_IMAGES_H_

// The device code of the process: fat binaries that nvcc's host code registers before main(), and
// libraries that a program loads. An image becomes a module of a context when something in it is
// first used there, like with CUDA's lazy loading.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/runtime/driver.h"

namespace annulus::simulator::runtime {

class Image;

// cudaKernel_t: a kernel, in any context. It is never destroyed, because nvcc's code keeps it. If
// its image is gone, `image` is null.
struct Kernel {
  Image* image = nullptr;
  std::string name;
};

// A __device__, __constant__ or __managed__ variable.
struct Variable {
  Image* image = nullptr;
  std::string name;
  std::size_t bytes = 0;
};

// cudaLibrary_t, and the result of __cudaRegisterFatBinary.
class Image {
 public:
  // The code of a registered image stays in place. `text`, if not empty, owns the code.
  explicit Image(const void* code) : code_(code) {}
  explicit Image(std::string text) : text_(std::move(text)), code_(text_.data()) {}
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  // The module in the current context. The first call there loads it. Throws Refusal.
  CUmodule module(CUcontext context);
  CUfunction function(CUcontext context, const std::string& name);
  // The address of a variable. Throws `absent` if there is none.
  void* variable(CUcontext context, const std::string& name, std::size_t* bytes, Error absent);

  Kernel* kernel(const std::string& name);  // one for each name
  // The name of a function of this image, or null if the function belongs to another image.
  const std::string* name_of(CUfunction function);

  void forget(CUcontext context);  // called when the context is destroyed
  void unload();                   // from all contexts

  // __managed__ variables: where the program stores their addresses, and their names. They belong
  // to the context that is current when the host first uses one.
  struct Managed {
    void** host;
    std::string name;
  };
  void add_managed(void** host, const char* name);
  // Stores the addresses of the managed variables in the program, at the first call.
  void place_managed(CUcontext context);

 private:
  struct Loaded {
    CUmodule module = nullptr;
    CUresult code = cudaSuccess;  // result of the only attempt to load the module
    std::map<std::string, CUfunction, std::less<>> functions;
  };
  Loaded& load(CUcontext context);  // requires: mutex_ is held

  const std::string text_;
  const void* const code_;
  std::mutex mutex_;  // guards the members below
  std::map<CUcontext, Loaded> loaded_;
  std::map<std::string, Kernel*> kernels_;
  std::vector<Managed> managed_;
  std::mutex placing_;
  bool placed_ = false;  // guarded by placing_
};

Image* add_image(std::unique_ptr<Image> image);
// Returns null if there is no such image, for any handle that a program may pass.
Image* find_image(const void* handle);
void remove_image(Image* image);

void add_kernel(const void* host, Kernel* kernel);
void add_variable(const void* host, Variable variable);

// The kernel for an address of host code or for a handle. Throws cudaErrorInvalidDeviceFunction.
Kernel& find_kernel(const void* function);
// The function of that kernel in the current context.
CUfunction function_of(const void* function);

// The address of the host code, or the handle, of a kernel that has this function in some context.
// Throws cudaErrorInvalidDeviceFunction.
const void* host_function_of(CUfunction function);

// The device address of the variable with this address in the program. Throws
// cudaErrorInvalidSymbol.
char* address_of(const void* symbol, std::size_t* bytes);

// Called when the context is destroyed. Its modules are destroyed too.
void forget_modules(CUcontext context);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_IMAGES_H_
