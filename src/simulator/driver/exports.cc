// The symbols of the simulator's shared libraries. Compiled twice: for libcuda.so.1, which exports
// every line of exports.def, and for libannulus_simulator.so, which exports the simulator's own
// alone. A program that links the latter must not find itself calling a simulated driver by the
// driver's names.

#include <tuple>

#include "annulus/simulator.h"
#include "simulator/driver/entries.h"

namespace {

namespace entry = annulus::simulator::driver::entry;
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
#include "simulator/driver/exports.def"
#undef EXPORT
#undef ALIAS
