#ifndef ANNULUS_DEVICE_MODULE_H_
#define ANNULUS_DEVICE_MODULE_H_

// Code on a device, and the launch of its kernels.
//
//   auto module = Module::load(context, cubin_or_ptx);
//   Function kernel = module->function("forward");
//   kernel.allow_dynamic_shared(98304);
//   launch(kernel, {grid}, {128}, 98304, stream, {&parameters});

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "device/context.h"

namespace annulus::device {

class Function;
class Module;
using ModulePointer = std::shared_ptr<const Module>;

class Module : public std::enable_shared_from_this<Module> {
 public:
  // `image` is a cubin for exactly this device, or PTX text. Throws Error{kDevice} if the driver
  // refuses it. A simulated driver accepts only PTX, and its message has the reason for a refusal.
  static ModulePointer load(ContextPointer context, std::string_view image);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const ContextPointer& context() const { return context_; }

  // Throws Error{kDevice} with the name if the module has no such function. The function keeps the
  // module loaded.
  Function function(const std::string& name) const;

  struct Global {
    abi::CUdeviceptr address = 0;
    std::size_t bytes = 0;
  };
  Global global(const std::string& name) const;

 private:
  Module(ContextPointer context, std::string_view image);

  ContextPointer context_;
  abi::CUmodule handle_ = nullptr;
};

// The attributes of a kernel, as the driver reports them.
struct FunctionAttributes {
  int max_threads_per_block = 0;  // limited by its launch bounds and registers
  int registers = 0;              // registers of each thread
  int shared_bytes = 0;           // static shared memory
  int local_bytes = 0;            // spills and arrays of each thread
  int const_bytes = 0;
  int binary_version = 0;  // 80, 90
};

// A kernel. Copyable; keeps its module loaded.
class Function {
 public:
  Function() = default;  // holds nothing

  explicit operator bool() const { return handle_ != nullptr; }
  abi::CUfunction handle() const { return handle_; }
  const Context& context() const { return *module_->context(); }

  FunctionAttributes attributes() const;
  // Allows launches to request up to `bytes` of dynamic shared memory. It is necessary for more
  // than 48 KB.
  void allow_dynamic_shared(std::size_t bytes) const;
  // The number of blocks that fit on one multiprocessor at a time.
  int blocks_per_multiprocessor(int threads, std::size_t dynamic_shared_bytes) const;

 private:
  friend class Module;
  Function(ModulePointer module, abi::CUfunction handle);

  ModulePointer module_;
  abi::CUfunction handle_ = nullptr;
};

struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// Queues a launch on `stream` and returns. It allocates nothing and takes no lock of this library.
// `parameters` has one pointer for each kernel parameter; the values are copied before the return.
// Errors of the kernel itself are reported by a later call, at the latest when the stream is
// synchronised.
void launch(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
            abi::CUstream stream, void** parameters);

// Does the same as launch(). Requires: the function's context is current.
void launch_in_scope(const Function& function, Extent grid, Extent block,
                     std::size_t dynamic_shared_bytes, abi::CUstream stream, void** parameters);

inline void launch(const Function& function, Extent grid, Extent block,
                   std::size_t dynamic_shared_bytes, abi::CUstream stream,
                   std::initializer_list<const void*> parameters) {
  // The driver takes void** for historical reasons and does not write through the pointers.
  launch(function, grid, block, dynamic_shared_bytes, stream,
         const_cast<void**>(parameters.begin()));
}

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_MODULE_H_
