#include "simulator/driver/objects/modules.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace annulus::simulator::driver {
namespace {

// Writes the log into the buffer that the options name, if they do, and its length into the size
// option.
void give_log(const JitOptions& options, const std::string& log, int buffer_option,
              int bytes_option) {
  char* buffer = nullptr;
  void** bytes = nullptr;
  for (unsigned i = 0; i < options.count; ++i) {
    if (options.names[i] == buffer_option) buffer = static_cast<char*>(options.values[i]);
    if (options.names[i] == bytes_option) bytes = &options.values[i];
  }
  if (buffer == nullptr || bytes == nullptr) return;
  const auto room = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(*bytes));
  if (room == 0) return;
  const std::size_t length = std::min<std::size_t>(log.size(), room - 1);
  log.copy(buffer, length);
  buffer[length] = '\0';
  *bytes = reinterpret_cast<void*>(static_cast<std::uintptr_t>(length));
}

}  // namespace

void JitOptions::give_logs(const std::string& errors) const {
  give_log(*this, errors, kJitErrorLog, kJitErrorLogBytes);
  give_log(*this, {}, kJitInfoLog, kJitInfoLogBytes);
}

std::shared_ptr<Module> add_module(const std::shared_ptr<Context>& context, const Image& image,
                                   const JitOptions& options) {
  LoadResult result = load_image(*context->device, image);
  options.give_logs(result.log);
  if (result.loaded == nullptr) {
    context->device->report(base::LogLevel::kWarning, "module", result.log);
    throw Refusal{result.code};
  }
  auto module = std::make_shared<Module>();
  module->context = context;
  module->image = std::move(result.loaded);
  module->ptx_version = result.ptx_version;
  state().modules.add(module);
  return module;
}

abi::CUfunction function_of(Module& module, std::string_view name) {
  const KernelInfo* info = module.image->kernel(name);
  if (info == nullptr) return nullptr;
  std::lock_guard lock(module.mutex);
  auto [at, added] = module.functions.try_emplace(std::string(name), nullptr);
  if (added) {
    auto made = std::make_shared<Function>();
    made->context = module.context;
    made->image = module.image;
    made->info = info;
    made->program = module.image->program(name);
    made->module = module.handle();
    made->ptx_version = module.ptx_version;
    made->dynamic_limit = default_dynamic_limit(*info);
    at->second = state().functions.add(std::move(made));
  }
  return at->second;
}

const GlobalVariable* variable_of(const LoadedModule& image, std::string_view name) {
  const auto all = image.variables();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const GlobalVariable& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string read_image_file(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Refusal{abi::kCudaFileNotFound};
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::uint32_t default_dynamic_limit(const KernelInfo& info) {
  return static_cast<std::uint32_t>(kSharedPerBlock) -
         std::min<std::uint32_t>(kSharedPerBlock, info.static_shared_bytes);
}

int function_attribute(const DeviceModel& model, const KernelInfo& info,
                       std::uint32_t dynamic_limit, int attribute) {
  switch (attribute) {
    case abi::kFunctionMaxThreadsPerBlock:
      return static_cast<int>(info.max_threads);
    case abi::kFunctionSharedBytes:
      return static_cast<int>(info.static_shared_bytes);
    case abi::kFunctionConstBytes:
      return 0;
    case abi::kFunctionLocalBytes:
      return static_cast<int>(info.local_bytes);
    case abi::kFunctionRegisters:
      return static_cast<int>(info.registers);
    case abi::kFunctionPtxVersion:
      return info.target;
    case abi::kFunctionBinaryVersion:
      return 10 * model.major + model.minor;
    case kFunctionCacheModeCa:
      return 0;
    case abi::kFunctionMaxDynamicSharedBytes:
      return static_cast<int>(dynamic_limit);
    case abi::kFunctionSharedCarveout:
      return -1;  // no preference
    case kFunctionClusterMustBeSet:
      return info.cluster[0] != 0 ? 1 : 0;
    case kFunctionClusterWidth:
    case kFunctionClusterHeight:
    case kFunctionClusterDepth:
      return static_cast<int>(info.cluster[attribute - kFunctionClusterWidth]);
    case abi::kFunctionNonPortableCluster:
    case kFunctionClusterPolicy:
      return 0;
    default:
      throw Refusal{abi::kCudaInvalidValue};
  }
}

void check_function_attribute(const DeviceModel& model, const KernelInfo& info, int attribute,
                              int value) {
  // The first and the last are hints. The other one permits clusters of more than 8 blocks, which
  // are refused here in any case.
  if (attribute == abi::kFunctionSharedCarveout || attribute == abi::kFunctionNonPortableCluster ||
      attribute == kFunctionClusterPolicy) {
    return;
  }
  const int most = model.shared_optin - static_cast<int>(info.static_shared_bytes);
  if (attribute != abi::kFunctionMaxDynamicSharedBytes || value < 0 || value > most) {
    throw Refusal{abi::kCudaInvalidValue};
  }
}

abi::CUresult parameter_info(const KernelInfo& info, std::size_t index, std::size_t* offset,
                             std::size_t* bytes) {
  if (offset == nullptr || index >= info.parameter_offsets.size()) return abi::kCudaInvalidValue;
  *offset = info.parameter_offsets[index];
  if (bytes != nullptr) *bytes = info.parameter_sizes[index];
  return abi::kCudaSuccess;
}

}  // namespace annulus::simulator::driver
