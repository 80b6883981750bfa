#include "simulator/machine/reduce.h"

#include <atomic>
#include <cstring>
#include <type_traits>

#include "simulator/machine/numbers.h"

namespace annulus::simulator {
namespace {

template <typename T>
T combine_integers(Reduction reduction, T old, T value) {
  using U = std::make_unsigned_t<T>;
  switch (reduction) {
    case Reduction::kAdd:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
    case Reduction::kMin:
      return std::min(old, value);
    case Reduction::kMax:
      return std::max(old, value);
    case Reduction::kInc:
      return old >= value ? T{0} : static_cast<T>(old + 1);
    case Reduction::kDec:
      return old == 0 || old > value ? value : static_cast<T>(old - 1);
    case Reduction::kAnd:
      return old & value;
    case Reduction::kOr:
      return old | value;
    case Reduction::kXor:
      return old ^ value;
    case Reduction::kNone:
      break;
  }
  return value;
}

template <typename T>
T combine(Reduction reduction, T old, T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>) {
    const float a = widen(old);
    const float b = widen(value);
    if (reduction == Reduction::kMin) return narrow<T>(min_number(a, b));
    if (reduction == Reduction::kMax) return narrow<T>(max_number(a, b));
    return narrow<T>(a + b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return canonical(old + value);
  } else {
    return combine_integers(reduction, old, value);
  }
}

template <typename T>
void reduce(Reduction reduction, std::uint64_t address, const std::byte* data,
            std::uint32_t bytes) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  for (std::uint32_t at = 0; at < bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, data + at, sizeof(T));
    std::atomic_ref<Bits> place(*reinterpret_cast<Bits*>(address + at));
    Bits old = place.load(std::memory_order_relaxed);
    while (!place.compare_exchange_weak(
        old, std::bit_cast<Bits>(combine(reduction, std::bit_cast<T>(old), value)))) {
    }
  }
}

}  // namespace

const char* name_of(Reduction reduction) {
  constexpr const char* kNames[] = {"none", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return kNames[static_cast<int>(reduction)];
}

const char* name_of(TensorType type) {
  constexpr const char* kNames[kTensorTypes] = {"u8",      "u16",  "u32",     "s32", "u64",
                                                "s64",     "f16",  "f32",     "f64", "bf16",
                                                "f32.ftz", "tf32", "tf32.ftz"};
  return kNames[static_cast<int>(type)];
}

bool can_reduce(Reduction reduction, TensorType type, bool tensor) {
  const bool integer =
      type == TensorType::kUint32 || type == TensorType::kInt32 || type == TensorType::kUint64;
  const bool half = type == TensorType::kFloat16 || type == TensorType::kBf16;
  switch (reduction) {
    case Reduction::kNone:
      return true;
    case Reduction::kAdd:
      return integer || half || type == TensorType::kFloat32 ||
             (type == TensorType::kFloat64 && !tensor);
    case Reduction::kMin:
    case Reduction::kMax:
      return integer || half || type == TensorType::kInt64;
    case Reduction::kInc:
    case Reduction::kDec:
      return type == TensorType::kUint32;
    case Reduction::kAnd:
    case Reduction::kOr:
    case Reduction::kXor:
      return integer;
  }
  return false;
}

std::string reducible_tensors(Reduction reduction) {
  std::string names;
  for (int type = 0; type < kTensorTypes; ++type) {
    if (!can_reduce(reduction, static_cast<TensorType>(type), true)) continue;
    names += names.empty() ? "" : ", ";
    names += name_of(static_cast<TensorType>(type));
  }
  return names;
}

void reduce_global(Reduction reduction, TensorType type, std::uint64_t address,
                   const std::byte* data, std::uint32_t bytes) {
  switch (type) {
    case TensorType::kUint32:
      return reduce<std::uint32_t>(reduction, address, data, bytes);
    case TensorType::kInt32:
      return reduce<std::int32_t>(reduction, address, data, bytes);
    case TensorType::kUint64:
      return reduce<std::uint64_t>(reduction, address, data, bytes);
    case TensorType::kInt64:
      return reduce<std::int64_t>(reduction, address, data, bytes);
    case TensorType::kFloat16:
      return reduce<Half>(reduction, address, data, bytes);
    case TensorType::kBf16:
      return reduce<Brain>(reduction, address, data, bytes);
    case TensorType::kFloat32:
      return reduce<float>(reduction, address, data, bytes);
    case TensorType::kFloat64:
      return reduce<double>(reduction, address, data, bytes);
    default:
      return;
  }
}

}  // namespace annulus::simulator
