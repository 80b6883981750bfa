#include "device/module.h"

#include <utility>

#include "base/fail.h"

namespace annulus::device {

ModulePointer Module::load(ContextPointer context, std::string_view image) {
  return ModulePointer(new Module(std::move(context), image));
}

Module::Module(ContextPointer context, std::string_view image) : context_(std::move(context)) {
  // PTX must end in a NUL byte, which a string_view need not have after its end.
  const std::string text(image);
  const ContextScope scope(*context_);
  abi::check(context_->table(), context_->table().module_load_data(&handle_, text.c_str()),
             "cuModuleLoadData");
}

Module::~Module() {
  const QuietScope scope(*context_);
  if (scope.active()) context_->table().module_unload(handle_);
}

Function Module::function(const std::string& name) const {
  const ContextScope scope(*context_);
  abi::CUfunction function = nullptr;
  const abi::CUresult code =
      context_->table().module_get_function(&function, handle_, name.c_str());
  if (code == abi::kCudaNotFound) {
    base::fail(ErrorCode::kDevice, "the module has no kernel '{}'", name);
  }
  abi::check(context_->table(), code, "cuModuleGetFunction");
  return {shared_from_this(), function};
}

Module::Global Module::global(const std::string& name) const {
  const ContextScope scope(*context_);
  Global global;
  const abi::CUresult code =
      context_->table().module_get_global(&global.address, &global.bytes, handle_, name.c_str());
  if (code == abi::kCudaNotFound) {
    base::fail(ErrorCode::kDevice, "the module has no variable '{}'", name);
  }
  abi::check(context_->table(), code, "cuModuleGetGlobal");
  return global;
}

Function::Function(ModulePointer module, abi::CUfunction handle)
    : module_(std::move(module)), handle_(handle) {}

FunctionAttributes Function::attributes() const {
  const ContextScope scope(context());
  const abi::CudaTable& cuda = context().table();
  const auto attribute = [&](int which) {
    int value = 0;
    abi::check(cuda, cuda.func_get_attribute(&value, which, handle_), "cuFuncGetAttribute");
    return value;
  };
  return {.max_threads_per_block = attribute(abi::kFunctionMaxThreadsPerBlock),
          .registers = attribute(abi::kFunctionRegisters),
          .shared_bytes = attribute(abi::kFunctionSharedBytes),
          .local_bytes = attribute(abi::kFunctionLocalBytes),
          .const_bytes = attribute(abi::kFunctionConstBytes),
          .binary_version = attribute(abi::kFunctionBinaryVersion)};
}

void Function::allow_dynamic_shared(std::size_t bytes) const {
  const DeviceInfo& info = context().info();
  if (bytes > static_cast<std::size_t>(info.shared_bytes_per_block_optin)) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} bytes of shared memory are more than the {} that a block may have on {}", bytes,
               info.shared_bytes_per_block_optin, info.name);
  }
  const ContextScope scope(context());
  abi::check(context().table(),
             context().table().func_set_attribute(handle_, abi::kFunctionMaxDynamicSharedBytes,
                                                  static_cast<int>(bytes)),
             "cuFuncSetAttribute");
}

int Function::blocks_per_multiprocessor(int threads, std::size_t dynamic_shared_bytes) const {
  const ContextScope scope(context());
  int blocks = 0;
  abi::check(context().table(),
             context().table().occupancy_max_active_blocks(&blocks, handle_, threads,
                                                           dynamic_shared_bytes),
             "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return blocks;
}

void launch(const Function& function, Extent grid, Extent block, std::size_t dynamic_shared_bytes,
            abi::CUstream stream, void** parameters) {
  const ContextScope scope(function.context());
  launch_in_scope(function, grid, block, dynamic_shared_bytes, stream, parameters);
}

void launch_in_scope(const Function& function, Extent grid, Extent block,
                     std::size_t dynamic_shared_bytes, abi::CUstream stream, void** parameters) {
  const Context& context = function.context();
  const abi::CUresult code = context.table().launch_kernel(
      function.handle(), grid.x, grid.y, grid.z, block.x, block.y, block.z,
      static_cast<unsigned>(dynamic_shared_bytes), stream, parameters, nullptr);
  if (code == abi::kCudaSuccess) return;
  const std::string call = fmt::format(
      "cuLaunchKernel with a grid of {} x {} x {}, blocks of {} x {} x {} and {} bytes "
      "of dynamic shared memory",
      grid.x, grid.y, grid.z, block.x, block.y, block.z, dynamic_shared_bytes);
  abi::check(context.table(), code, call.c_str());
}

}  // namespace annulus::device
