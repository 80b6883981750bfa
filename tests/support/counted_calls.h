#ifndef ANNULUS_SUPPORT_COUNTED_CALLS_H_
#define ANNULUS_SUPPORT_COUNTED_CALLS_H_

// A driver table around another one. It counts the calls of each function while `counting` is true:
//
//   const abi::CudaTable table = CountedCalls::wrap(test::simulator_table());
//   CountedCalls::counting = true;
//   ...
//   CountedCalls::calls("cuMemAlloc_v2");
//
// Only one such table can exist at a time, and on one thread, because the functions of a table have
// no object.

#include <array>
#include <string>
#include <string_view>
#include <type_traits>

#include "abi/cuda_table.h"

namespace annulus::test {

class CountedCalls {
 public:
  static inline bool counting = false;

  // Returns the wrapped table. Optional slots that are null stay null.
  static abi::CudaTable wrap(const abi::CudaTable& table) {
    below() = table;
    counts().fill(0);
    counting = false;
    abi::CudaTable wrapped = table;
#define REQUIRED(member, symbol, parameters) \
  wrapped.member = Call<&abi::CudaTable::member, Slot::member>::wrapped(table.member);
#define OPTIONAL(member, symbol, parameters) \
  if (table.member != nullptr) REQUIRED(member, symbol, parameters)
#include "abi/cuda.def"
    return wrapped;
  }

  // The number of calls of the functions whose symbols begin with `begin`.
  static long calls(std::string_view begin) {
    long sum = 0;
    for (std::size_t i = 0; i < kSlots; ++i) {
      if (kSymbols[i].starts_with(begin)) sum += counts()[i];
    }
    return sum;
  }
  // The functions that were called, by their symbols, with their numbers of calls: "cuLaunchKernel
  // 3".
  static std::string called() {
    std::string text;
    for (std::size_t i = 0; i < kSlots; ++i) {
      if (counts()[i] == 0) continue;
      if (!text.empty()) text += ", ";
      text += std::string(kSymbols[i]) + " " + std::to_string(counts()[i]);
    }
    return text;
  }

 private:
  enum class Slot {
#define SLOT(member, symbol, parameters) member,
#include "abi/cuda.def"
  };
  static constexpr std::string_view kSymbols[] = {
#define SLOT(member, symbol, parameters) #symbol,
#include "abi/cuda.def"
  };
  static constexpr std::size_t kSlots = std::size(kSymbols);

  static abi::CudaTable& below() {
    static abi::CudaTable only;
    return only;
  }
  static std::array<long, kSlots>& counts() {
    static std::array<long, kSlots> only{};
    return only;
  }

  template <auto kMember, Slot kSlot>
  struct Call {
    template <typename Result, typename... Parameters>
    static std::type_identity_t<Result (*)(Parameters...)> wrapped(Result (*)(Parameters...)) {
      return [](Parameters... parameters) -> Result {
        if (counting) ++counts()[static_cast<std::size_t>(kSlot)];
        return (below().*kMember)(parameters...);
      };
    }
  };
};

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_COUNTED_CALLS_H_
