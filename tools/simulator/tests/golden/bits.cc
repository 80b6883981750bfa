// Logic, shifts and bit fields: "Logic and Shift Instructions" and the bit fields of "Integer
// Arithmetic Instructions".

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "golden/golden.h"

namespace annulus::golden {
namespace {

template <typename T>
T shift_left(T a, u32 amount) {
  return amount >= sizeof(T) * 8 ? T{0} : static_cast<T>(static_cast<u64>(a) << amount);
}
// Amounts beyond the width have the effect of the width: zeros or copies of the sign are shifted
// in.
template <typename T>
T shift_right(T a, u32 amount) {
  const u32 last = sizeof(T) * 8 - 1;
  if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> std::min(amount, last));
  return amount > last ? T{0} : static_cast<T>(a >> amount);
}

template <typename T>
void add_logic(Set& set, const char* type) {
  const auto binary = [&](const char* opcode, auto define) {
    set.form(fmt::format("{}.{}", opcode, type), fmt::format("{}.{} d, a, b;", opcode, type),
             define);
  };
  binary(
      "and", +[](T a, T b) -> T { return static_cast<T>(a & b); });
  binary(
      "or", +[](T a, T b) -> T { return static_cast<T>(a | b); });
  binary(
      "xor", +[](T a, T b) -> T { return static_cast<T>(a ^ b); });
  set.form(
      fmt::format("not.{}", type), fmt::format("not.{} d, a;", type),
      +[](T a) -> T { return static_cast<T>(~a); });
  set.form(
      fmt::format("cnot.{}", type), fmt::format("cnot.{} d, a;", type),
      +[](T a) -> T { return a == 0 ? T{1} : T{0}; });
  set.form(
      fmt::format("shl.{}", type), fmt::format("shl.{} d, a, b;", type),
      +[](T a, Shift b) -> T { return shift_left(a, b.amount); });
  set.form(
      fmt::format("shr.{}", type), fmt::format("shr.{} d, a, b;", type),
      +[](T a, Shift b) -> T { return shift_right(a, b.amount); });
  using S = std::make_signed_t<T>;
  const std::string bits(type + 1);
  set.form(
      "shr.u" + bits, "shr.u" + bits + " d, a, b;",
      +[](T a, Shift b) -> T { return shift_right(a, b.amount); });
  set.form(
      "shr.s" + bits, "shr.s" + bits + " d, a, b;",
      +[](S a, Shift b) -> S { return shift_right(a, b.amount); });
}

// The manual restricts positions and lengths of fields to 0..255. An H200 takes the lowest byte of
// a larger number for fields of 32-bit words, and the whole number for fields of 64-bit words.
template <typename T>
u64 field_number(u32 number) {
  return sizeof(T) == 4 ? number % 256 : number;
}

template <typename T>
T extract(T a, u32 b, u32 c) {
  const u64 last = sizeof(T) * 8 - 1;
  const u64 position = field_number<T>(b);
  const u64 length = field_number<T>(c);
  const auto bit = [&](u64 i) { return (static_cast<u64>(a) >> i) & 1u; };
  const u64 sign =
      std::is_signed_v<T> && length != 0 ? bit(std::min(position + length - 1, last)) : 0;
  u64 result = 0;
  for (u64 i = 0; i <= last; ++i) {
    result |= (i < length && position + i <= last ? bit(position + i) : sign) << i;
  }
  return static_cast<T>(result);
}
template <typename T>
T insert(T a, T b, u32 c, u32 d) {
  const u64 last = sizeof(T) * 8 - 1;
  const u64 position = field_number<T>(c);
  const u64 length = field_number<T>(d);
  u64 result = b;
  for (u64 i = 0; i < length && position + i <= last; ++i) {
    const u64 one = u64{1} << (position + i);
    result = ((static_cast<u64>(a) >> i) & 1) ? result | one : result & ~one;
  }
  return static_cast<T>(result);
}

template <typename T>
void add_fields(Set& set, const char* bits) {
  using S = std::make_signed_t<T>;
  set.form(
      fmt::format("bfe.u{}", bits), fmt::format("bfe.u{} d, a, b, c;", bits),
      +[](T a, Shift b, Shift c) -> T { return extract(a, b.amount, c.amount); });
  set.form(
      fmt::format("bfe.s{}", bits), fmt::format("bfe.s{} d, a, b, c;", bits),
      +[](S a, Shift b, Shift c) -> S { return extract(a, b.amount, c.amount); });
  set.form(
      fmt::format("bfi.b{}", bits), fmt::format("bfi.b{} d, a, b, c, e;", bits),
      +[](T a, T b, Shift c, Shift d) -> T { return insert(a, b, c.amount, d.amount); });
  set.form(
      fmt::format("popc.b{}", bits), fmt::format("popc.b{} d, a;", bits), +[](T a) -> u32 {
        u32 count = 0;
        for (; a != 0; a = static_cast<T>(a & (a - 1))) ++count;
        return count;
      });
  set.form(
      fmt::format("clz.b{}", bits), fmt::format("clz.b{} d, a;", bits), +[](T a) -> u32 {
        u32 count = 0;
        for (u32 i = sizeof(T) * 8; i-- > 0 && ((a >> i) & 1) == 0;) ++count;
        return count;
      });
  set.form(
      fmt::format("brev.b{}", bits), fmt::format("brev.b{} d, a;", bits), +[](T a) -> T {
        T result = 0;
        for (u32 i = 0; i < sizeof(T) * 8; ++i)
          result = static_cast<T>(result << 1 | ((a >> i) & 1));
        return result;
      });
  // The most significant bit that differs from the sign, or all ones if there is none.
  set.form(
      fmt::format("bfind.u{}", bits), fmt::format("bfind.u{} d, a;", bits), +[](T a) -> u32 {
        u32 found = 0xffffffff;
        for (u32 i = 0; i < sizeof(T) * 8; ++i) {
          if ((a >> i) & 1) found = i;
        }
        return found;
      });
  set.form(
      fmt::format("bfind.s{}", bits), fmt::format("bfind.s{} d, a;", bits), +[](S a) -> u32 {
        const T value = static_cast<T>(a < 0 ? ~a : a);
        u32 found = 0xffffffff;
        for (u32 i = 0; i < sizeof(T) * 8; ++i) {
          if ((value >> i) & 1) found = i;
        }
        return found;
      });
}

// The byte of {b, a} that nibble `selector` selects. If the top bit of the selector is set, the
// result is eight copies of that byte's sign.
u32 pick(u32 a, u32 b, u32 selector) {
  const u64 both = a | static_cast<u64>(b) << 32;
  const u32 byte = static_cast<u32>(both >> 8 * (selector & 7)) & 0xff;
  if (selector & 8) return byte & 0x80 ? 0xff : 0;
  return byte;
}
u32 permute(u32 a, u32 b, const std::array<u32, 4>& selectors) {  // lowest byte first
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) result |= pick(a, b, selectors[i]) << 8 * i;
  return result;
}

void add_permute(Set& set) {
  set.form(
      "prmt.b32", "prmt.b32 d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        return permute(a, b, {c & 15, (c >> 4) & 15, (c >> 8) & 15, (c >> 12) & 15});
      });
  set.form(
      "prmt.b32 immediate", "prmt.b32 d, a, b, 0x7610U;",
      +[](u32 a, u32 b) -> u32 { return (a & 0xffff) | (b & 0xffff0000u); });
  set.form(
      "prmt.b32.f4e", "prmt.b32.f4e d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        const u32 n = c & 3;
        return permute(a, b, {n, n + 1, n + 2, n + 3});
      });
  set.form(
      "prmt.b32.b4e", "prmt.b32.b4e d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        const u32 n = c & 3;
        return permute(a, b, {n, (n + 7) & 7, (n + 6) & 7, (n + 5) & 7});
      });
  set.form(
      "prmt.b32.rc8", "prmt.b32.rc8 d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        const u32 n = c & 3;
        return permute(a, b, {n, n, n, n});
      });
  set.form(
      "prmt.b32.ecl", "prmt.b32.ecl d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        const u32 n = c & 3;
        return permute(a, b, {n, std::max(1u, n), std::max(2u, n), 3});
      });
  set.form(
      "prmt.b32.ecr", "prmt.b32.ecr d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        const u32 n = c & 3;
        return permute(a, b, {0, std::min(1u, n), std::min(2u, n), n});
      });
  set.form(
      "prmt.b32.rc16", "prmt.b32.rc16 d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        const u32 n = (c & 1) * 2;
        return permute(a, b, {n, n + 1, n, n + 1});
      });
}

void add_funnel(Set& set) {
  set.form(
      "shf.l.wrap.b32", "shf.l.wrap.b32 d, a, b, c;", +[](u32 a, u32 b, Shift c) -> u32 {
        const u32 n = c.amount & 31;
        return static_cast<u32>(((static_cast<u64>(b) << 32 | a) << n) >> 32);
      });
  set.form(
      "shf.l.clamp.b32", "shf.l.clamp.b32 d, a, b, c;", +[](u32 a, u32 b, Shift c) -> u32 {
        const u32 n = std::min(c.amount, 32u);
        return n == 32 ? a : static_cast<u32>(((static_cast<u64>(b) << 32 | a) << n) >> 32);
      });
  set.form(
      "shf.r.wrap.b32", "shf.r.wrap.b32 d, a, b, c;", +[](u32 a, u32 b, Shift c) -> u32 {
        return static_cast<u32>((static_cast<u64>(b) << 32 | a) >> (c.amount & 31));
      });
  set.form(
      "shf.r.clamp.b32", "shf.r.clamp.b32 d, a, b, c;", +[](u32 a, u32 b, Shift c) -> u32 {
        return static_cast<u32>((static_cast<u64>(b) << 32 | a) >> std::min(c.amount, 32u));
      });
}

// Bit i of the result is bit (4 a_i + 2 b_i + c_i) of the table.
u32 lookup(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  for (u32 i = 0; i < 32; ++i) {
    const u32 index = ((a >> i) & 1) * 4 + ((b >> i) & 1) * 2 + ((c >> i) & 1);
    result |= ((table >> index) & 1) << i;
  }
  return result;
}

// A word with b one bits, starting at bit a.
u32 bit_mask(u32 a, u32 b, bool clamp) {
  const u32 sum = (a & 31) + (b & 31);
  const bool full = sum >= 32 || (clamp && (a >= 32 || b >= 32));
  const u32 above = full ? 0 : 0xffffffffu << sum;
  const u32 from = clamp && a >= 32 ? 0 : 0xffffffffu << (a & 31);
  return from & ~above;
}

}  // namespace

void add_bits(Set& set) {
  add_logic<u16>(set, "b16");
  add_logic<u32>(set, "b32");
  add_logic<u64>(set, "b64");
  add_fields<u32>(set, "32");
  add_fields<u64>(set, "64");
  add_permute(set);
  add_funnel(set);
  set.form(
      "bfind.shiftamt.u32", "bfind.shiftamt.u32 d, a;", +[](u32 a) -> u32 {
        for (u32 i = 32; i-- > 0;) {
          if ((a >> i) & 1) return 31 - i;
        }
        return 0xffffffff;
      });
  set.form(
      "lop3.b32 0x80", "lop3.b32 d, a, b, c, 0x80;",
      +[](u32 a, u32 b, u32 c) -> u32 { return a & b & c; });
  set.form(
      "lop3.b32 0xe8", "lop3.b32 d, a, b, c, 0xe8;",
      +[](u32 a, u32 b, u32 c) -> u32 { return lookup(a, b, c, 0xe8); });
  set.form(
      "lop3.b32 0x2d", "lop3.b32 d, a, b, c, 0x2d;",
      +[](u32 a, u32 b, u32 c) -> u32 { return lookup(a, b, c, 0x2d); });
  set.form(
      "lop3.b32 0x1b", "lop3.b32 d, a, b, c, 27;",
      +[](u32 a, u32 b, u32 c) -> u32 { return lookup(a, b, c, 0x1b); });

  set.form(
      "bmsk.clamp.b32", "bmsk.clamp.b32 d, a, b;",
      +[](Shift a, Shift b) -> u32 { return bit_mask(a.amount, b.amount, true); });
  set.form(
      "bmsk.wrap.b32", "bmsk.wrap.b32 d, a, b;",
      +[](Shift a, Shift b) -> u32 { return bit_mask(a.amount, b.amount, false); });

  const auto predicate = [&](const char* name, const char* statement, bool (*define)(bool, bool)) {
    set.form(name, statement, define);
  };
  predicate(
      "and.pred", "and.pred d, a, b;", +[](bool a, bool b) -> bool { return a && b; });
  predicate(
      "or.pred", "or.pred d, a, b;", +[](bool a, bool b) -> bool { return a || b; });
  predicate(
      "xor.pred", "xor.pred d, a, b;", +[](bool a, bool b) -> bool { return a != b; });
  set.form(
      "not.pred", "not.pred d, a;", +[](bool a) -> bool { return !a; });
  set.form(
      "mov.pred", "mov.pred d, a;", +[](bool a) -> bool { return a; });
}

}  // namespace annulus::golden
