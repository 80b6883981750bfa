// The body of the simulator's libcuda.so.1: every symbol of exports.def, and cuGetProcAddress,
// which finds them by name. Part of no other library: a program that links Annulus must not find
// itself calling a simulated driver by the driver's names.

#include <cstring>
#include <string_view>
#include <tuple>

#include "annulus/version.h"
#include "sim/driver/entries.h"

namespace {

namespace entry = annulus::sim::driver::entry;
using annulus::abi::CUresult;

template <typename Function>
struct Signature;
template <typename... Parameters>
struct Signature<CUresult (*)(Parameters...)> {
  template <std::size_t kIndex>
  using At = std::tuple_element_t<kIndex, std::tuple<Parameters...>>;
};

}  // namespace

#define AT(name, index) Signature<decltype(&entry::name)>::At<index>
#define HEAD(symbol) extern "C" ANNULUS_EXPORT CUresult symbol
#define EXPORT(count, symbol, name) EXPORT_##count(symbol, name)
#define ALIAS(count, symbol, name) EXPORT_##count(symbol, name)
#define EXPORT_0(symbol, name) \
  HEAD(symbol)() { return entry::name(); }
#define EXPORT_1(symbol, name) \
  HEAD(symbol)(AT(name, 0) a) { return entry::name(a); }
#define EXPORT_2(symbol, name) \
  HEAD(symbol)(AT(name, 0) a, AT(name, 1) b) { return entry::name(a, b); }
#define EXPORT_3(symbol, name) \
  HEAD(symbol)(AT(name, 0) a, AT(name, 1) b, AT(name, 2) c) { return entry::name(a, b, c); }
#define EXPORT_4(symbol, name)                                               \
  HEAD(symbol)(AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d) { \
    return entry::name(a, b, c, d);                                          \
  }
#define EXPORT_5(symbol, name)                                                              \
  HEAD(symbol)(AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e) { \
    return entry::name(a, b, c, d, e);                                                      \
  }
#define EXPORT_6(symbol, name)                                                                 \
  HEAD(symbol)                                                                                 \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f) { \
    return entry::name(a, b, c, d, e, f);                                                      \
  }
#define EXPORT_11(symbol, name)                                                              \
  HEAD(symbol)                                                                               \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f, \
   AT(name, 6) g, AT(name, 7) h, AT(name, 8) i, AT(name, 9) j, AT(name, 10) k) {             \
    return entry::name(a, b, c, d, e, f, g, h, i, j, k);                                     \
  }
#define EXPORT_12(symbol, name)                                                                  \
  HEAD(symbol)                                                                                   \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f,     \
   AT(name, 6) g, AT(name, 7) h, AT(name, 8) i, AT(name, 9) j, AT(name, 10) k, AT(name, 11) l) { \
    return entry::name(a, b, c, d, e, f, g, h, i, j, k, l);                                      \
  }
#include "sim/driver/exports.def"
#undef EXPORT
#undef ALIAS

namespace {

struct Symbol {
  std::string_view name;
  void* address;
};

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

// The address for a name as cuGetProcAddress takes it, which has no _v2; null: there is none.
void* find_symbol(std::string_view name, int cuda_version) {
  static const Symbol symbols[] = {
#define EXPORT(count, symbol, name) {#symbol, address_of(&symbol)},
#define ALIAS(count, symbol, name) {#symbol, address_of(&symbol)},
#include "sim/driver/exports.def"
#undef EXPORT
#undef ALIAS
  };
  // The one function whose parameters differ between the versions that are offered.
  if (name == "cuCtxCreate" && cuda_version >= 13000) name = "cuCtxCreate_v4";
  for (const Symbol& symbol : symbols) {
    if (symbol.name == name) return symbol.address;
  }
  return nullptr;
}

}  // namespace

extern "C" ANNULUS_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function,
                                                       int cuda_version, unsigned long long flags,
                                                       int* status);

extern "C" ANNULUS_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function,
                                                    int cuda_version, unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, function, cuda_version, flags, nullptr);
}

// `status`, where it is asked for, says more: 0 found, 1 not found.
extern "C" ANNULUS_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function,
                                                       int cuda_version, unsigned long long,
                                                       int* status) {
  if (symbol == nullptr || function == nullptr) return annulus::abi::kCudaInvalidValue;
  const std::string_view name = symbol;
  if (name == "cuGetProcAddress") {
    *function =
        cuda_version >= 12000 ? address_of(&cuGetProcAddress_v2) : address_of(&cuGetProcAddress);
  } else {
    *function = find_symbol(name, cuda_version);
  }
  const bool found = *function != nullptr;
  if (status != nullptr) *status = found ? 0 : 1;
  return found || status != nullptr ? annulus::abi::kCudaSuccess : annulus::abi::kCudaNotFound;
}
