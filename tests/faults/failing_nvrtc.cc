// A libnvrtc.so.13 whose calls can fail on request. It passes all other calls to the real library,
// which ANNULUS_TEST_NVRTC names.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>

#include "abi/nvrtc_table.h"
#include "faults/failing_calls.h"

extern "C" {
__attribute__((visibility("default"))) annulus::test::FailingCalls annulusFailingNvrtc;
}

namespace {

using namespace annulus;
using abi::NvrtcProgram;
using abi::NvrtcResult;

// The real NVRTC opens its builtins library by a bare name, which is found if that library is
// already open.
void* open_real() {
  const char* const file = std::getenv("ANNULUS_TEST_NVRTC");
  void* const library = file == nullptr ? nullptr : dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  int major = 0, minor = 0;
  reinterpret_cast<NvrtcResult (*)(int*, int*)>(dlsym(library, "nvrtcVersion"))(&major, &minor);
  const std::string text = file;
  dlopen((text.substr(0, text.rfind('/')) + "/libnvrtc-builtins.so." + std::to_string(major) + "." +
          std::to_string(minor))
             .c_str(),
         RTLD_NOW | RTLD_GLOBAL);
  return library;
}
void* real_symbol(const char* symbol) {
  static void* const library = open_real();
  return dlsym(library, symbol);
}

enum class Slot {
#define REQUIRED(result, member, symbol, parameters) member,
#define OPTIONAL(result, member, symbol, parameters) member,
#include "abi/nvrtc.def"
};
constexpr const char* kSymbols[] = {
#undef REQUIRED
#undef OPTIONAL
#define REQUIRED(result, member, symbol, parameters) #symbol,
#define OPTIONAL(result, member, symbol, parameters) #symbol,
#include "abi/nvrtc.def"
};

template <typename Function, Slot kSlot>
struct Call;
template <typename Result, typename... Parameters, Slot kSlot>
struct Call<Result (*)(Parameters...), kSlot> {
  static Result run(Parameters... parameters) {
    constexpr const char* kSymbol = kSymbols[static_cast<int>(kSlot)];
    static const auto real = reinterpret_cast<Result (*)(Parameters...)>(real_symbol(kSymbol));
    if constexpr (std::is_same_v<Result, NvrtcResult>) {
      int code = 0;
      if (annulusFailingNvrtc.fails(kSymbol, &code)) return code;
    }
    const Result result = real(parameters...);
    if constexpr (kSlot == Slot::create_program || kSlot == Slot::destroy_program) {
      if (result == 0) {
        annulusFailingNvrtc.add(test::Held::kPrograms, kSlot == Slot::create_program ? 1 : -1);
      }
    }
    return result;
  }
};

}  // namespace

// These are exported under NVRTC's own names, without repeating the lists of parameters. The loader
// looks up a function by its name only.
#undef REQUIRED
#undef OPTIONAL
#define REQUIRED(result, member, symbol, parameters)                                      \
  extern "C" {                                                                            \
  static auto* find_##symbol() { return &Call<result(*) parameters, Slot::member>::run; } \
  __attribute__((visibility("default"))) result symbol parameters                         \
      __attribute__((ifunc("find_" #symbol)));                                            \
  }
#define OPTIONAL(result, member, symbol, parameters) REQUIRED(result, member, symbol, parameters)
#include "abi/nvrtc.def"
