#include "simulator/runtime/driver.h"

#include <string>

#include "abi/shared_library.h"
#include "simulator/runtime/log.h"

namespace annulus::simulator::runtime {
namespace {

template <typename... Parameters>
void find(const abi::SharedLibrary& library, DriverFunction<CUresult(Parameters...)>& function) {
  function.address = reinterpret_cast<CUresult (*)(Parameters...)>(library.symbol(function.symbol));
}

// The loader searches for the driver among the libraries of the process, then in LD_LIBRARY_PATH,
// then in the folder of this library (its run path).
const DriverTable* open_driver() {
  std::string problem;
  // The driver outlives the process's exit handlers, which call it.
  static const auto* const library = new abi::SharedLibrary("libcuda.so.1", &problem);
  if (!*library) {
    write_line("there is no CUDA driver: " + problem);
    return nullptr;
  }
  auto* const table = new DriverTable;
#define DRIVER(member, symbol, parameters) find(*library, table->member);
#include "simulator/runtime/driver.def"
#define ENTRY(name, symbol, parameters)
#define FORWARD(name, symbol, driver_symbol, parameters) find(*library, table->name);
#include "simulator/runtime/functions.def"
  return table;
}

}  // namespace

const DriverTable* find_driver() {
  static const DriverTable* const table = open_driver();
  return table;
}

const DriverTable& driver() {
  const DriverTable* const table = find_driver();
  if (table == nullptr) throw Refusal{cudaErrorInsufficientDriver};
  static const CUresult code = table->init(0);
  need(code);
  return *table;
}

void need(CUresult code) {
  if (code != cudaSuccess) throw Refusal{code};
}

}  // namespace annulus::simulator::runtime
