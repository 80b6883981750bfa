#ifndef ANNULUS_SIMULATOR_TESTS_GOLDEN_GOLDEN_H_
#define ANNULUS_SIMULATOR_TESTS_GOLDEN_GOLDEN_H_

// Golden programs: small PTX kernels, each for one form of an instruction, with a definition in C++
// of every output word. The definitions follow the PTX ISA manual and share no code with the
// simulator. On a GPU the same programs show which of the two is wrong.
//
// There are three kinds of entries. Each becomes a Golden:
//   form      one thread per element: a statement over registers a, b, c, e that sets d
//   warp form a form whose definition uses all 32 lanes (shuffles, votes, ...)
//   file      a program written by hand in tools/simulator/tests/ptx/, with in and out as arrays of
//   words
//
// Every kernel has the parameters (in, out): addresses of arrays of 8-byte words. A form reads
// operand k of thread t from in[t * operands + k] and writes out[t]. Bytes that its store does not
// cover keep the filler, which the comparison checks too.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device/module.h"
#include "golden/numbers.h"

namespace annulus::golden {

// the value of every word of out at launch
inline constexpr std::uint64_t kFiller = 0xcdcdcdcdcdcdcdcdull;

// The type of an output word. For floating-point kinds any NaN is accepted if a NaN is expected,
// because the manual leaves payloads open. A definition that requires the canonical NaN returns an
// integer type.
enum class Kind : std::uint8_t {
  kBits8,
  kBits16,
  kBits32,
  kBits64,
  kF16,
  kBf16,
  kF16x2,
  kBf16x2,
  kF32,
  kF64,
  kPredicate,
  kShift,
};

struct Word {
  std::uint64_t bits = 0;
  Kind kind = Kind::kBits64;
  bool any = false;       // the manual leaves the result open
  double tolerance = -1;  // if >= 0: `value` plus or minus this is accepted, in place of `bits`
  double value = 0;
};

// Operand and result types beyond the built-in ones.
struct F16 {
  std::uint16_t bits;
  double value() const { return decode16(kHalfFormat, bits); }
};
struct Bf16 {
  std::uint16_t bits;
  double value() const { return decode16(kBfloatFormat, bits); }
};
template <typename T>
struct Pair {
  T low;
  T high;
};  // packed in one 32-bit register, low half first
using F16x2 = Pair<F16>;
using Bf16x2 = Pair<Bf16>;
struct Shift {
  std::uint32_t amount;
};  // small numbers, and a few huge ones
template <typename T>
struct Near {
  double value;
  double tolerance;
};  // a T within an absolute tolerance

inline F16 to_f16(double value, Round mode = Round::kNearestEven) {
  return {encode16(kHalfFormat, round_to(kHalfFormat, value, mode))};
}
inline Bf16 to_bf16(double value, Round mode = Round::kNearestEven) {
  return {encode16(kBfloatFormat, round_to(kBfloatFormat, value, mode))};
}

template <typename T>
struct Traits;
template <Kind kKind, int kBytes>
struct TraitsOf {
  static constexpr Kind kind = kKind;
  static constexpr int bytes = kBytes;
};
template <>
struct Traits<std::int8_t> : TraitsOf<Kind::kBits8, 1> {};
template <>
struct Traits<std::uint8_t> : TraitsOf<Kind::kBits8, 1> {};
template <>
struct Traits<std::int16_t> : TraitsOf<Kind::kBits16, 2> {};
template <>
struct Traits<std::uint16_t> : TraitsOf<Kind::kBits16, 2> {};
template <>
struct Traits<std::int32_t> : TraitsOf<Kind::kBits32, 4> {};
template <>
struct Traits<std::uint32_t> : TraitsOf<Kind::kBits32, 4> {};
template <>
struct Traits<std::int64_t> : TraitsOf<Kind::kBits64, 8> {};
template <>
struct Traits<std::uint64_t> : TraitsOf<Kind::kBits64, 8> {};
template <>
struct Traits<F16> : TraitsOf<Kind::kF16, 2> {};
template <>
struct Traits<Bf16> : TraitsOf<Kind::kBf16, 2> {};
template <>
struct Traits<F16x2> : TraitsOf<Kind::kF16x2, 4> {};
template <>
struct Traits<Bf16x2> : TraitsOf<Kind::kBf16x2, 4> {};
template <>
struct Traits<float> : TraitsOf<Kind::kF32, 4> {};
template <>
struct Traits<double> : TraitsOf<Kind::kF64, 8> {};
template <>
struct Traits<Shift> : TraitsOf<Kind::kShift, 4> {};
template <>
struct Traits<bool> : TraitsOf<Kind::kPredicate, 4> {};
template <typename T>
struct Traits<Near<T>> : Traits<T> {};
template <typename T>
struct Traits<std::optional<T>> : Traits<T> {};

template <typename T>
T from_slot(std::uint64_t slot) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(slot));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(slot);
  } else if constexpr (std::is_same_v<T, bool>) {
    return static_cast<std::uint32_t>(slot) != 0;
  } else if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>) {
    return T{static_cast<std::uint16_t>(slot)};
  } else if constexpr (std::is_same_v<T, F16x2> || std::is_same_v<T, Bf16x2>) {
    return T{{static_cast<std::uint16_t>(slot)}, {static_cast<std::uint16_t>(slot >> 16)}};
  } else if constexpr (std::is_same_v<T, Shift>) {
    return T{static_cast<std::uint32_t>(slot)};
  } else {
    return static_cast<T>(slot);
  }
}

template <typename T>
Word to_word(const T& value) {
  Word word;
  word.kind = Traits<T>::kind;
  if constexpr (std::is_same_v<T, float>) {
    word.bits = std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    word.bits = std::bit_cast<std::uint64_t>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    word.bits = value ? 1 : 0;
  } else if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>) {
    word.bits = value.bits;
  } else if constexpr (std::is_same_v<T, F16x2> || std::is_same_v<T, Bf16x2>) {
    word.bits = value.low.bits | static_cast<std::uint32_t>(value.high.bits) << 16;
  } else {
    word.bits = static_cast<std::make_unsigned_t<T>>(value);
  }
  return word;
}
template <typename T>
Word to_word(const Near<T>& near) {
  Word word;
  word.kind = Traits<T>::kind;
  word.tolerance = near.tolerance >= 0 ? near.tolerance : 0;  // NaN has no tolerance
  word.value = near.value;
  return word;
}
template <typename T>
Word to_word(const std::optional<T>& value) {
  if (value) return to_word(*value);
  Word word;
  word.kind = Traits<T>::kind;
  word.any = true;
  return word;
}

// The operands of one warp, for the definition of a warp form.
struct Warp {
  std::span<const std::uint64_t> words;  // [lane][operand]
  std::size_t operands = 0;
  template <typename T>
  T in(int operand, int lane) const {
    return from_slot<T>(
        words[static_cast<std::size_t>(lane) * operands + static_cast<std::size_t>(operand)]);
  }
};

using Words = std::span<const std::uint64_t>;
using Expected = std::span<Word>;

using device::Extent;

// The arguments of cuTensorMapEncodeTiled for a tensor map that the driver encodes for the program.
struct Tensor {
  bool of_out = false;       // the tensor is in `out`, not in `in`
  std::uint64_t offset = 0;  // in bytes, from the start of `in` or `out`
  int type = 0;              // CUtensorMapDataType
  std::vector<std::uint64_t> dims;
  std::vector<std::uint64_t> strides;  // in bytes, for dimensions 1 and up
  std::vector<std::uint32_t> box;
  std::vector<std::uint32_t> element_strides;  // empty: all are 1
  int swizzle = 0;                             // CUtensorMapSwizzle
  int fill = 0;                                // CUtensorMapFloatOOBfill
};

struct Golden {
  std::string name;  // "add.sat.s32", unique
  std::string entry = "golden";
  std::string text;  // the whole PTX module; empty: it is in tools/simulator/tests/ptx/NAME.ptx
  Extent grid;
  Extent block;
  std::uint32_t shared_bytes = 0;  // bytes of dynamic shared memory
  bool modelled = true;            // false: the simulator refuses it, and names the line
  std::vector<Kind> operands;      // a form's kinds of values to generate
  std::vector<std::uint64_t> in;
  std::vector<std::vector<std::byte>> extra;  // further kernel parameters after (in, out)
  std::vector<Tensor> tensors;                // more parameters after those; 128 bytes each
  std::vector<int> facts;                     // values for the definition
  bool hopper = false;                        // runs only on compute capability 9.0
  std::size_t out_words = 0;                  // in words of 8 bytes
  int word_bytes = 8;  // bytes of an expected Word; if 4, `expected` has twice the number of
                       // entries
  std::uint64_t filler = kFiller;  // the value of the words of out at launch
  // Fills `expected`, whose words are initialised to "filler untouched".
  void (*define)(const Golden& self, Words in, Expected expected) = nullptr;
  void (*rule)() = nullptr;  // a form's typed definition, which `define` calls
};

int bytes_of(Kind kind);

// Fills `self.in` with `elements` records of self.operands. First come all combinations of the
// kinds' edge values, if they fit, then random values. The seed is derived from the name.
void generate_operands(Golden& self, std::size_t elements);

// The PTX of a form: loads, `statement`, store.
std::string form_text(std::span<const Kind> operands, Kind result, std::string_view statement);

class Set {
 public:
  // Adds a form with one thread for each element. `statement` may use the registers a b c e
  // (operands), d (result), src and dst (addresses of this element's record and result), tid, lane,
  // and declare more.
  template <typename Result, typename... Operands>
  void form(std::string name, std::string_view statement, Result (*define)(Operands...)) {
    Golden& golden = add(std::move(name));
    golden.operands = {Traits<Operands>::kind...};
    golden.rule = reinterpret_cast<void (*)()>(define);
    golden.define = &apply<Result, Operands...>;
    finish(golden, Traits<Result>::kind, statement);
  }

  // Adds a form of an instruction that is new in compute capability 9.0.
  template <typename Result, typename... Operands>
  void hopper_form(std::string name, std::string_view statement, Result (*define)(Operands...)) {
    form(std::move(name), statement, define);
    move_to_hopper(all_.back());
  }

  // Adds a form that depends on other lanes. `define` gets the warp and the lane.
  template <typename Result>
  void warp_form(std::string name, std::vector<Kind> operands, std::string_view statement,
                 Result (*define)(const Warp&, int lane)) {
    Golden& golden = add(std::move(name));
    golden.operands = std::move(operands);
    golden.rule = reinterpret_cast<void (*)()>(define);
    golden.define = &apply_warp<Result>;
    finish(golden, Traits<Result>::kind, statement);
  }

  // Adds a program written by hand: tools/simulator/tests/ptx/NAME.ptx, entry "golden". The caller
  // fills `in`, and extra parameters if there are any.
  Golden& file(const std::string& name, Extent grid, Extent block, std::size_t out_words,
               void (*define)(const Golden&, Words, Expected));
  // Adds a program whose text is passed here instead of in a file.
  Golden& text(const std::string& name, std::string ptx, Extent grid, Extent block,
               std::size_t out_words, void (*define)(const Golden&, Words, Expected));

  std::vector<Golden>& all() { return all_; }

 private:
  static void move_to_hopper(Golden& golden);
  template <typename Result, typename... Operands>
  static void apply(const Golden& self, Words in, Expected expected) {
    const auto define = reinterpret_cast<Result (*)(Operands...)>(self.rule);
    const std::size_t count = sizeof...(Operands);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
        return to_word(define(from_slot<Operands>(in[i * count + kIndex])...));
      }
      (std::index_sequence_for<Operands...>{});
    }
  }
  template <typename Result>
  static void apply_warp(const Golden& self, Words in, Expected expected) {
    const auto define = reinterpret_cast<Result (*)(const Warp&, int)>(self.rule);
    const std::size_t count = self.operands.size();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Warp warp{in.subspan(i / 32 * 32 * count, 32 * count), count};
      expected[i] = to_word(define(warp, static_cast<int>(i % 32)));
    }
  }

  Golden& add(std::string name);
  void finish(Golden& golden, Kind result, std::string_view statement);

  std::vector<Golden> all_;
};

// Each family has one of these functions, which adds its programs.
void add_integer(Set& set);
void add_bits(Set& set);
void add_compare(Set& set);
void add_float32(Set& set);
void add_float64(Set& set);
void add_half(Set& set);
void add_convert(Set& set);
void add_move(Set& set);
void add_warp(Set& set);
void add_memory(Set& set);
void add_atomic(Set& set);
void add_matrix(Set& set);
void add_matrix_words(Set& set);
void add_control(Set& set);
void add_async(Set& set);
void add_mbarrier(Set& set);
void add_bulk(Set& set);
void add_wgmma(Set& set);
void add_wmma(Set& set);
void add_cluster(Set& set);

std::vector<Golden> all_programs();

}  // namespace annulus::golden

#endif  // ANNULUS_SIMULATOR_TESTS_GOLDEN_GOLDEN_H_
