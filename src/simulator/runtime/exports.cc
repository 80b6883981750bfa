// The symbols of libcudart.so.13: every line of functions.def, as a C function that makes what its
// entry throws a code, and the code the thread's last error.

#include <tuple>

#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime {
namespace {

template <typename Function>
struct Signature;
template <typename... Parameters>
struct Signature<Error(Parameters...)> {
  template <std::size_t kIndex>
  using At = std::tuple_element_t<kIndex, std::tuple<Parameters...>>;
};

// What a line FORWARD of functions.def does: it calls the driver's function with the same
// arguments.
template <auto kMember, typename... Arguments>
Error forward(Arguments... arguments) {
  enter();
  return (driver().*kMember)(resolve(arguments)...);
}

// For the time of a call of the function with the ending _ptsz or _ptds.
class DefaultStreamOfThread {
 public:
  DefaultStreamOfThread() { thread().default_stream_of_thread = true; }
  ~DefaultStreamOfThread() { thread().default_stream_of_thread = false; }
  DefaultStreamOfThread(const DefaultStreamOfThread&) = delete;
  DefaultStreamOfThread& operator=(const DefaultStreamOfThread&) = delete;
};

struct DefaultStreamOfContext {
  DefaultStreamOfContext() {}  // so that it is no unused variable
};

}  // namespace

// Counts the parameters of a list of up to nine.
#define COUNT(...) COUNT_OF(__VA_ARGS__ __VA_OPT__(, ) 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNT_OF(a, b, c, d, e, f, g, h, i, count, ...) count

// Parameters as they are declared and as they are passed on, by how many there are.
#define AT(list, index) Signature<Error list>::At<index>
#define DECLARE_0(list)
#define DECLARE_1(list) AT(list, 0) a
#define DECLARE_2(list) DECLARE_1(list), AT(list, 1) b
#define DECLARE_3(list) DECLARE_2(list), AT(list, 2) c
#define DECLARE_4(list) DECLARE_3(list), AT(list, 3) d
#define DECLARE_5(list) DECLARE_4(list), AT(list, 4) e
#define DECLARE_6(list) DECLARE_5(list), AT(list, 5) f
#define DECLARE_7(list) DECLARE_6(list), AT(list, 6) g
#define DECLARE_8(list) DECLARE_7(list), AT(list, 7) h
#define DECLARE_9(list) DECLARE_8(list), AT(list, 8) i
#define PASS_0
#define PASS_1 a
#define PASS_2 PASS_1, b
#define PASS_3 PASS_2, c
#define PASS_4 PASS_3, d
#define PASS_5 PASS_4, e
#define PASS_6 PASS_5, f
#define PASS_7 PASS_6, g
#define PASS_8 PASS_7, h
#define PASS_9 PASS_8, i

#define DEFINE(symbol, list, function, stream) DEFINE_AS(COUNT list, symbol, list, function, stream)
#define DEFINE_AS(count, symbol, list, function, stream) \
  DEFINE_WITH(count, symbol, list, function, stream)
#define DEFINE_WITH(count, symbol, list, function, stream)                    \
  extern "C" ANNULUS_EXPORT Error symbol(DECLARE_##count(list)) {             \
    const stream default_stream;                                              \
    static_cast<void>(default_stream);                                        \
    return serve(#symbol, [&]() -> Error { return function(PASS_##count); }); \
  }

#define ENTRY(name, symbol, list) DEFINE(symbol, list, entry::name, DefaultStreamOfContext)
#define ENTRY_PTSZ(name, symbol, list) \
  ENTRY(name, symbol, list)            \
  DEFINE(symbol##_ptsz, list, entry::name, DefaultStreamOfThread)
#define ENTRY_PTDS(name, symbol, list) \
  ENTRY(name, symbol, list)            \
  DEFINE(symbol##_ptds, list, entry::name, DefaultStreamOfThread)
#define FORWARD(name, symbol, driver_symbol, list) \
  DEFINE(symbol, list, forward<&DriverTable::name>, DefaultStreamOfContext)
#define FORWARD_PTSZ(name, symbol, driver_symbol, list) \
  FORWARD(name, symbol, driver_symbol, list)            \
  DEFINE(symbol##_ptsz, list, forward<&DriverTable::name>, DefaultStreamOfThread)
// Called with whatever parameters it has, none of which it looks at.
#define ABSENT(symbol)                                                  \
  extern "C" ANNULUS_EXPORT Error symbol() {                            \
    return serve(#symbol, [] { return Error{cudaErrorNotSupported}; }); \
  }
#include "simulator/runtime/functions.def"

}  // namespace annulus::simulator::runtime
