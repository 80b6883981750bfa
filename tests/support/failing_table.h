#ifndef ANNULUS_SUPPORT_FAILING_TABLE_H_
#define ANNULUS_SUPPORT_FAILING_TABLE_H_

// A driver table around another one. Its n-th call fails. It counts calls, so a test can make every
// call of an operation fail in turn:
//
//   FailingTable::wrap(test::simulator_table());
//   FailingTable::fail_at(3, abi::kCudaOutOfMemory);
//
// Only one such table can exist at a time, and on one thread, because the functions of a table have
// no object.

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

#include "abi/cuda_table.h"

namespace annulus::test {

class FailingTable {
 public:
  enum class Slot {
#define SLOT(member, symbol, parameters) member,
#include "abi/cuda.def"
  };

  // Returns the wrapped table. Optional slots that are null stay null.
  static abi::CudaTable wrap(const abi::CudaTable& table) {
    state() = {.table = table};
    abi::CudaTable wrapped = table;
#define REQUIRED(member, symbol, parameters) \
  wrapped.member = Call<&abi::CudaTable::member, Slot::member>::wrapped(table.member);
#define OPTIONAL(member, symbol, parameters) \
  if (table.member != nullptr) REQUIRED(member, symbol, parameters)
#include "abi/cuda.def"
    // These two never fail, because error messages are made with them.
    wrapped.get_error_name = table.get_error_name;
    wrapped.get_error_string = table.get_error_string;
    return wrapped;
  }

  // Makes the call with this index return `code` and do nothing else. Calls are counted from 0,
  // starting now. If the index is negative, no call fails.
  static void fail_at(int index, abi::CUresult code) {
    state().calls = 0;
    state().fail_at = index;
    state().code = code;
    state().failed = false;
  }
  static bool failed() { return state().failed; }  // whether a call failed
  // The symbol of the call that failed.
  static const char* failed_call() {
    static constexpr const char* kSymbols[] = {
#define SLOT(member, symbol, parameters) #symbol,
#include "abi/cuda.def"
    };
    return kSymbols[static_cast<int>(state().slot)];
  }
  // Whether the failure reaches the caller as an error.
  enum class Heard { kAlways, kNever, kDepends };
  static Heard heard() {
    switch (state().slot) {
      // These calls free something in destructors, which cannot report an error.
      case Slot::primary_ctx_release:
      case Slot::ctx_pop_current:
      case Slot::mem_free:
      case Slot::mem_free_host:
      case Slot::stream_destroy:
      case Slot::event_destroy:
      case Slot::module_unload:
      // An arena can do without these calls: it waits longer for blocks, or a simulated driver has
      // less information.
      case Slot::ctx_record_event:
      case Slot::simulator_set_pool:
      case Slot::simulator_remove_block:
        return Heard::kNever;
      // Destructors make these calls too, before they free something.
      case Slot::ctx_get_current:
      case Slot::ctx_push_current:
      case Slot::ctx_synchronize:
      // Drivers may lack some attributes, and then the library does without.
      case Slot::device_get_attribute:
        return Heard::kDepends;
      // If a slab does not fit, an arena requests a smaller one.
      case Slot::mem_alloc:
        return state().code == abi::kCudaOutOfMemory ? Heard::kDepends : Heard::kAlways;
      default:
        return Heard::kAlways;
    }
  }
  static bool failed_in_a_module() {
    return state().slot == Slot::module_load_data || state().slot == Slot::module_get_function;
  }
  // Checks that the failed call had the effect that heard() returns.
  static void check_heard(bool thrown) {
    CAPTURE(std::string(failed_call()));
    if (heard() == Heard::kAlways) CHECK(thrown);
    if (heard() == Heard::kNever) CHECK_FALSE(thrown);
  }
  static int calls() { return state().calls; }

 private:
  struct State {
    abi::CudaTable table;
    int calls = 0;
    int fail_at = -1;
    abi::CUresult code = 0;
    bool failed = false;
    Slot slot = Slot::init;  // the slot of the failed call
  };
  static State& state() {
    static State only;
    return only;
  }

  template <auto kMember, Slot kSlot>
  struct Call {
    template <typename... Parameters>
    static std::type_identity_t<abi::CUresult (*)(Parameters...)> wrapped(
        abi::CUresult (*)(Parameters...)) {
      return [](Parameters... parameters) -> abi::CUresult {
        State& now = state();
        if (now.calls++ == now.fail_at) {
          now.failed = true;
          now.slot = kSlot;
          return now.code;
        }
        return (now.table.*kMember)(parameters...);
      };
    }
  };
};

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_FAILING_TABLE_H_
