#ifndef ANNULUS_TESTS_JIT_FAKE_TABLES_H_
#define ANNULUS_TESTS_JIT_FAKE_TABLES_H_

// An NVRTC and a driver that only count calls and fail on request. Their functions have no object,
// so the counts are static, and a test clears them first.

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "abi/libraries.h"
#include "device/context.h"

namespace annulus::test {

struct FakeCounts {
  std::atomic<int> compiled{0};  // programs that were compiled, or failed to compile
  std::atomic<int> loaded{0};
  std::atomic<int> unloaded{0};
  std::atomic<int> refuse_loads{0};        // the number of loads that fail with "invalid image"
  std::atomic<bool> old_compiler{false};   // supports no option that starts with --f or --no
  std::atomic<bool> broken_source{false};  // every source has an error
  std::atomic<bool> no_memory{false};      // reported as by NVRTC, only in its log
  static FakeCounts& get() {
    static FakeCounts counts;
    return counts;
  }
  static std::string log() {
    return get().no_memory ? "a.cuh(3): catastrophic error: out of memory" : "a fake log";
  }
  static void clear() {
    FakeCounts& counts = get();
    counts.compiled = counts.loaded = counts.unloaded = counts.refuse_loads = 0;
    counts.old_compiler = counts.broken_source = counts.no_memory = false;
  }
};

struct FakeProgram {
  std::string source, name, image;
};

inline std::shared_ptr<const abi::NvrtcLibrary> fake_nvrtc() {
  using abi::NvrtcProgram;
  using abi::NvrtcResult;
  auto library = std::make_shared<abi::NvrtcLibrary>();
  library->report.version_text = "99.0";
  abi::NvrtcTable& table = library->table;
  table.get_error_string = [](NvrtcResult) { return "a fake error"; };
  table.get_num_supported_archs = [](int* count) -> NvrtcResult { return *count = 2, 0; };
  table.get_supported_archs = [](int* archs) -> NvrtcResult {
    archs[0] = 80;
    archs[1] = 90;
    return 0;
  };
  table.create_program = [](NvrtcProgram* program, const char* source, const char*, int,
                            const char* const*, const char* const*) -> NvrtcResult {
    *program = reinterpret_cast<NvrtcProgram>(new FakeProgram{source, "", ""});
    return 0;
  };
  table.destroy_program = [](NvrtcProgram* program) -> NvrtcResult {
    delete reinterpret_cast<FakeProgram*>(*program);
    return 0;
  };
  table.compile_program = [](NvrtcProgram program, int count,
                             const char* const* options) -> NvrtcResult {
    FakeCounts& counts = FakeCounts::get();
    ++counts.compiled;
    for (int i = 0; i < count; ++i) {
      const std::string option = options[i];
      if (counts.old_compiler && (option.starts_with("--f") || option.starts_with("--no"))) {
        return abi::kNvrtcInvalidOption;
      }
    }
    if (counts.broken_source || counts.no_memory) return abi::kNvrtcCompilation;
    FakeProgram& known = *reinterpret_cast<FakeProgram*>(program);
    known.image = "image of " + known.source;
    return 0;
  };
  table.get_program_log_size = [](NvrtcProgram, std::size_t* bytes) -> NvrtcResult {
    return *bytes = FakeCounts::log().size() + 1, 0;
  };
  table.get_program_log = [](NvrtcProgram, char* log) -> NvrtcResult {
    return std::memcpy(log, FakeCounts::log().c_str(), FakeCounts::log().size() + 1), 0;
  };
  table.get_ptx_size = [](NvrtcProgram program, std::size_t* bytes) -> NvrtcResult {
    return *bytes = reinterpret_cast<FakeProgram*>(program)->image.size() + 1, 0;
  };
  table.get_ptx = [](NvrtcProgram program, char* ptx) -> NvrtcResult {
    const std::string& image = reinterpret_cast<FakeProgram*>(program)->image;
    return std::memcpy(ptx, image.c_str(), image.size() + 1), 0;
  };
  table.get_cubin_size = table.get_ptx_size;
  table.get_cubin = table.get_ptx;
  table.add_name_expression = [](NvrtcProgram program, const char* name) -> NvrtcResult {
    return reinterpret_cast<FakeProgram*>(program)->name = std::string("_Z") + name, 0;
  };
  table.get_lowered_name = [](NvrtcProgram program, const char*, const char** name) -> NvrtcResult {
    return *name = reinterpret_cast<FakeProgram*>(program)->name.c_str(), 0;
  };
  return library;
}

inline device::ContextPointer fake_context() {
  using abi::CUresult;
  abi::CudaTable table;
  table.init = [](unsigned) -> CUresult { return 0; };
  table.driver_get_version = [](int* version) -> CUresult { return *version = 13000, 0; };
  table.get_error_name = [](CUresult, const char** name) -> CUresult { return *name = "FAKE", 0; };
  table.get_error_string = [](CUresult, const char** text) -> CUresult {
    return *text = "a fake error", 0;
  };
  table.device_get_count = [](int* count) -> CUresult { return *count = 1, 0; };
  table.device_get = [](abi::CUdevice* device, int) -> CUresult { return *device = 0, 0; };
  table.device_get_name = [](char* name, int, abi::CUdevice) -> CUresult { return *name = 0, 0; };
  table.device_get_attribute = [](int* value, int, abi::CUdevice) -> CUresult {
    return *value = 8, 0;
  };
  table.device_total_mem = [](std::size_t* bytes, abi::CUdevice) -> CUresult {
    return *bytes = 1 << 20, 0;
  };
  table.primary_ctx_retain = [](abi::CUcontext* context, abi::CUdevice) -> CUresult {
    static char somewhere;
    return *context = reinterpret_cast<abi::CUcontext>(&somewhere), 0;
  };
  table.primary_ctx_release = [](abi::CUdevice) -> CUresult { return 0; };
  table.ctx_get_current = [](abi::CUcontext* context) -> CUresult { return *context = nullptr, 0; };
  table.ctx_push_current = [](abi::CUcontext) -> CUresult { return 0; };
  table.ctx_pop_current = [](abi::CUcontext*) -> CUresult { return 0; };
  table.module_load_data = [](abi::CUmodule* module, const void*) -> CUresult {
    FakeCounts& counts = FakeCounts::get();
    ++counts.loaded;
    if (counts.refuse_loads > 0) {
      --counts.refuse_loads;
      return 200;  // CUDA_ERROR_INVALID_IMAGE
    }
    static char somewhere;
    return *module = reinterpret_cast<abi::CUmodule>(&somewhere), 0;
  };
  table.module_unload = [](abi::CUmodule) -> CUresult { return ++FakeCounts::get().unloaded, 0; };
  table.module_get_function = [](abi::CUfunction* function, abi::CUmodule,
                                 const char*) -> CUresult {
    static char somewhere;
    return *function = reinterpret_cast<abi::CUfunction>(&somewhere), 0;
  };
  return device::Context::retain(std::make_shared<const device::Driver>(table, "fake"), 0);
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_JIT_FAKE_TABLES_H_
