#ifndef ANNULUS_SIMULATOR_RUNTIME_IMAGES_H_
#define ANNULUS_SIMULATOR_RUNTIME_IMAGES_H_

// The device code of the process: fat binaries that nvcc's host code registers before main(), and
// libraries that a program loads. An image becomes a module of a context when something in it is
// first used there, as with CUDA's lazy loading.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/runtime/driver.h"

namespace annulus::simulator::runtime {

class Image;

// cudaKernel_t: a kernel in whichever context. It is never destroyed, since nvcc's code keeps it;
// one whose image is gone has none.
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

// cudaLibrary_t, and what __cudaRegisterFatBinary returns.
class Image {
 public:
  // The code of a registered image stays where it is. `text`, if not empty, owns the code.
  explicit Image(const void* code) : code_(code) {}
  explicit Image(std::string text) : text_(std::move(text)), code_(text_.data()) {}
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  // The module in the current context, loaded by the first call there. Throws Refusal.
  CUmodule module(CUcontext context);
  CUfunction function(CUcontext context, const std::string& name);
  // The address of a variable; throws `absent` where there is none.
  void* variable(CUcontext context, const std::string& name, std::size_t* bytes, Error absent);

  Kernel* kernel(const std::string& name);  // one for each name
  // The name of a function of this image; null: it is another's.
  const std::string* name_of(CUfunction function);

  void forget(CUcontext context);  // whose modules are gone
  void unload();                   // from all contexts

  // __managed__ variables: where the program keeps their addresses, and their names. They belong to
  // the context that is current when the host first touches one.
  struct Managed {
    void** host;
    std::string name;
  };
  void add_managed(void** host, const char* name);
  // Gives the program the addresses of the managed variables, at the first call.
  void place_managed(CUcontext context);

 private:
  struct Loaded {
    CUmodule module = nullptr;
    CUresult code = cudaSuccess;  // of the only attempt to load it
    std::map<std::string, CUfunction, std::less<>> functions;
  };
  Loaded& load(CUcontext context);  // requires: mutex_ is held

  const std::string text_;
  const void* const code_;
  std::mutex mutex_;  // guards all below
  std::map<CUcontext, Loaded> loaded_;
  std::map<std::string, Kernel*> kernels_;
  std::vector<Managed> managed_;
  std::mutex placing_;
  bool placed_ = false;  // guarded by placing_
};

Image* add_image(std::unique_ptr<Image> image);
// Null where there is no such image, as for all that a program may pass wrongly.
Image* find_image(const void* handle);
void remove_image(Image* image);

void add_kernel(const void* host, Kernel* kernel);
void add_variable(const void* host, Variable variable);

// The kernel that the program knows by this address of its host code or by this handle. Throws
// cudaErrorInvalidDeviceFunction.
Kernel& find_kernel(const void* function);
// The same in the current context.
CUfunction function_of(const void* function);

// The address of the host code, or the handle, of a kernel that has this function in some context.
// Throws cudaErrorInvalidDeviceFunction.
const void* host_function_of(CUfunction function);

// The device address of a variable that the program knows by this address. Throws
// cudaErrorInvalidSymbol.
char* address_of(const void* symbol, std::size_t* bytes);

// The context is destroyed, and so are its modules.
void forget_modules(CUcontext context);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_IMAGES_H_
