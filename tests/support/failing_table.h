#ifndef ANNULUS_SUPPORT_FAILING_TABLE_H_
#define ANNULUS_SUPPORT_FAILING_TABLE_H_

// A driver table whose n-th call fails, around another table. Counts calls, so that a test can
// walk n over every call of an operation:
//
//   FailingTable::wrap(sim::make_cuda_table());
//   FailingTable::fail_at(3, abi::kCudaOutOfMemory);
//
// One at a time and on one thread: a table's functions have nowhere to keep an object.

#include <type_traits>

#include "abi/cuda_table.h"

namespace annulus::test {

class FailingTable {
 public:
  // The wrapped table; optional slots that are null stay null.
  static abi::CudaTable wrap(const abi::CudaTable& table) {
    state() = {.table = table};
    abi::CudaTable wrapped = table;
#define REQUIRED(member, symbol, parameters) \
  wrapped.member = Call<&abi::CudaTable::member>::wrapped(table.member);
#define OPTIONAL(member, symbol, parameters) \
  if (table.member != nullptr) REQUIRED(member, symbol, parameters)
#include "abi/cuda.def"
#undef REQUIRED
#undef OPTIONAL
    // What error messages are made with works even when all else fails.
    wrapped.get_error_name = table.get_error_name;
    wrapped.get_error_string = table.get_error_string;
    return wrapped;
  }

  // The call with this index, counted from 0 at this moment, returns `code` and does nothing else.
  // A negative index: none does.
  static void fail_at(int index, abi::CUresult code) {
    state().calls = 0;
    state().fail_at = index;
    state().code = code;
    state().failed = false;
  }
  static bool failed() { return state().failed; }  // that call was reached
  static int calls() { return state().calls; }

 private:
  struct State {
    abi::CudaTable table;
    int calls = 0;
    int fail_at = -1;
    abi::CUresult code = 0;
    bool failed = false;
  };
  static State& state() {
    static State only;
    return only;
  }

  template <auto kMember>
  struct Call {
    template <typename... Parameters>
    static std::type_identity_t<abi::CUresult (*)(Parameters...)> wrapped(
        abi::CUresult (*)(Parameters...)) {
      return [](Parameters... parameters) -> abi::CUresult {
        State& now = state();
        if (now.calls++ == now.fail_at) {
          now.failed = true;
          return now.code;
        }
        return (now.table.*kMember)(parameters...);
      };
    }
  };
};

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_FAILING_TABLE_H_
