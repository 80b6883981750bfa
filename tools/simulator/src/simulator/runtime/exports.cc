// The symbols of libcudart.so.13. Every line of functions.def becomes a C function. It turns what
// its entry throws into a code, and stores the code as the thread's last error.

#include "abi/parameters.h"
#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime {
namespace {

// The function of a line FORWARD of functions.def. It calls the driver's function with the same
// arguments.
template <auto kMember, typename... Arguments>
Error forward(Arguments... arguments) {
  enter();
  return (driver().*kMember)(resolve(arguments)...);
}

// Exists during a call of a function with the ending _ptsz or _ptds.
class DefaultStreamOfThread {
 public:
  DefaultStreamOfThread() { thread().default_stream_of_thread = true; }
  ~DefaultStreamOfThread() { thread().default_stream_of_thread = false; }
  DefaultStreamOfThread(const DefaultStreamOfThread&) = delete;
  DefaultStreamOfThread& operator=(const DefaultStreamOfThread&) = delete;
};

struct DefaultStreamOfContext {
  DefaultStreamOfContext() {}  // keeps the compiler from reporting an unused variable
};

}  // namespace

#define DEFINE(symbol, list, function, stream) \
  DEFINE_AS(ANNULUS_COUNT list, symbol, list, function, stream)
#define DEFINE_AS(count, symbol, list, function, stream) \
  DEFINE_WITH(count, symbol, list, function, stream)
#define DEFINE_WITH(count, symbol, list, function, stream)                            \
  extern "C" ANNULUS_EXPORT Error symbol(ANNULUS_DECLARE_##count(Error list)) {       \
    const stream default_stream;                                                      \
    static_cast<void>(default_stream);                                                \
    return serve(#symbol, [&]() -> Error { return function(ANNULUS_PASS_##count); }); \
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
// Programs call it with parameters. It reads none of them.
#define ABSENT(symbol)                                                  \
  extern "C" ANNULUS_EXPORT Error symbol() {                            \
    return serve(#symbol, [] { return Error{cudaErrorNotSupported}; }); \
  }
#include "simulator/runtime/functions.def"

}  // namespace annulus::simulator::runtime
