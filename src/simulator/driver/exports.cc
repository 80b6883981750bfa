// The symbols of the simulator's shared libraries. The file is compiled twice: for libcuda.so.1,
// which exports every line of provided.def and of absent.def, and for libannulus_simulator.so,
// which exports only the simulator's own. A program that links the latter must not call a simulated
// driver by accident when it calls functions by CUDA's names.

#include <tuple>

#include "annulus/simulator.h"
#include "simulator/driver/absent.h"
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

// Counts the parameters of a list of up to twelve.
#define COUNT(...) COUNT_OF(__VA_ARGS__ __VA_OPT__(, ) 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNT_OF(a, b, c, d, e, f, g, h, i, j, k, l, count, ...) count

// Defines one hidden C function for each entry, and aliases of it under all its symbols.
#define ENTRY(name, symbol, parameters) \
  DEFINE_WITH(COUNT parameters, name)   \
  ALIAS(name, symbol)
#define ALIAS(name, symbol)                                       \
  extern "C" ANNULUS_EXPORT decltype(annulus_entry_##name) symbol \
      __attribute__((alias("annulus_entry_" #name)));
#define DEFINE_WITH(count, name) DEFINE(count, name)
#define DEFINE(count, name) DEFINE_##count(name)
#define AT(name, index) Signature<decltype(&entry::name)>::At<index>
#define HEAD(name) extern "C" __attribute__((visibility("hidden"))) CUresult annulus_entry_##name
#define DEFINE_0(name) \
  HEAD(name)() { return entry::name(); }
#define DEFINE_1(name) \
  HEAD(name)(AT(name, 0) a) { return entry::name(a); }
#define DEFINE_2(name) \
  HEAD(name)(AT(name, 0) a, AT(name, 1) b) { return entry::name(a, b); }
#define DEFINE_3(name) \
  HEAD(name)(AT(name, 0) a, AT(name, 1) b, AT(name, 2) c) { return entry::name(a, b, c); }
#define DEFINE_4(name)                                                     \
  HEAD(name)(AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d) { \
    return entry::name(a, b, c, d);                                        \
  }
#define DEFINE_5(name)                                                                    \
  HEAD(name)(AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e) { \
    return entry::name(a, b, c, d, e);                                                    \
  }
#define DEFINE_6(name)                                                                         \
  HEAD(name)                                                                                   \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f) { \
    return entry::name(a, b, c, d, e, f);                                                      \
  }
#define DEFINE_7(name)                                                                       \
  HEAD(name)                                                                                 \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f, \
   AT(name, 6) g) {                                                                          \
    return entry::name(a, b, c, d, e, f, g);                                                 \
  }
#define DEFINE_8(name)                                                                       \
  HEAD(name)                                                                                 \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f, \
   AT(name, 6) g, AT(name, 7) h) {                                                           \
    return entry::name(a, b, c, d, e, f, g, h);                                              \
  }
#define DEFINE_9(name)                                                                       \
  HEAD(name)                                                                                 \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f, \
   AT(name, 6) g, AT(name, 7) h, AT(name, 8) i) {                                            \
    return entry::name(a, b, c, d, e, f, g, h, i);                                           \
  }
#define DEFINE_10(name)                                                                      \
  HEAD(name)                                                                                 \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f, \
   AT(name, 6) g, AT(name, 7) h, AT(name, 8) i, AT(name, 9) j) {                             \
    return entry::name(a, b, c, d, e, f, g, h, i, j);                                        \
  }
#define DEFINE_11(name)                                                                      \
  HEAD(name)                                                                                 \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f, \
   AT(name, 6) g, AT(name, 7) h, AT(name, 8) i, AT(name, 9) j, AT(name, 10) k) {             \
    return entry::name(a, b, c, d, e, f, g, h, i, j, k);                                     \
  }
#define DEFINE_12(name)                                                                          \
  HEAD(name)                                                                                     \
  (AT(name, 0) a, AT(name, 1) b, AT(name, 2) c, AT(name, 3) d, AT(name, 4) e, AT(name, 5) f,     \
   AT(name, 6) g, AT(name, 7) h, AT(name, 8) i, AT(name, 9) j, AT(name, 10) k, AT(name, 11) l) { \
    return entry::name(a, b, c, d, e, f, g, h, i, j, k, l);                                      \
  }
#include "simulator/driver/provided.def"

#define ABSENT(symbol)                                   \
  extern "C" ANNULUS_EXPORT CUresult symbol() {          \
    return annulus::simulator::driver::absent::symbol(); \
  }
#include "simulator/driver/absent.def"
