// atom and red, on words of global and shared memory that only the issuing thread accesses.
// Contended cases are in tools/simulator/tests/ptx/atomics.ptx.

#include <fmt/core.h>

#include <cmath>

#include "golden/reductions.h"

namespace annulus::golden {
namespace {

const char* const kSharedPlace =
    ".shared .align 8 .b64 room[128]; .reg .b32 t, q; mov.u32 t, %tid.x; mov.u32 q, room; "
    "mad.lo.s32 q, t, 8, q;";

// d = {new contents, old contents}.
template <typename T>
void add_32(Set& set, const std::string& operation, u64 (*define)(T, T)) {
  set.form(
      "atom.global." + operation,
      fmt::format("{{ .reg .b32 old, now; st.global.b32 [dst], a; atom.global.{} old, [dst], b;"
                  " ld.global.b32 now, [dst]; mov.b64 d, {{now, old}}; }}",
                  operation),
      define);
  set.form("atom.shared." + operation,
           fmt::format("{{ {} .reg .b32 old, now; st.shared.b32 [q], a; atom.shared.{} old, [q], b;"
                       " ld.shared.b32 now, [q]; mov.b64 d, {{now, old}}; }}",
                       kSharedPlace, operation),
           define);
}

// d = new contents + 3 x old contents, both 64 bits wide.
template <typename T>
void add_64(Set& set, const std::string& operation, u64 (*define)(T, T)) {
  set.form(
      "atom.global." + operation,
      fmt::format("{{ .reg .b64 old, now; st.global.b64 [dst], a; atom.global.{} old, [dst], b;"
                  " ld.global.b64 now, [dst]; mad.lo.s64 d, old, 3, now; }}",
                  operation),
      define);
  set.form("atom.shared." + operation,
           fmt::format("{{ {} .reg .b64 old, now; st.shared.b64 [q], a; atom.shared.{} old, [q], b;"
                       " ld.shared.b64 now, [q]; mad.lo.s64 d, old, 3, now; }}",
                       kSharedPlace, operation),
           define);
}

template <typename T, T (*kOperation)(T, T)>
void reduction_32(Set& set, const char* operation) {
  add_32<T>(
      set, operation, +[](T a, T b) -> u64 {
        return both(static_cast<u32>(kOperation(a, b)), static_cast<u32>(a));
      });
  set.form(
      fmt::format("red.global.{}", operation),
      fmt::format("st.global.b32 [dst], a; red.global.{} [dst], b; ld.global.b32 d, [dst];",
                  operation),
      +[](T a, T b) -> u32 { return static_cast<u32>(kOperation(a, b)); });
}
template <typename T, T (*kOperation)(T, T)>
void reduction_64(Set& set, const char* operation) {
  add_64<T>(
      set, operation, +[](T a, T b) -> u64 {
        return static_cast<u64>(kOperation(a, b)) + 3 * static_cast<u64>(a);
      });
}

template <typename T>
T exchange(T, T b) {
  return b;
}

// "atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero": the
// manual states this of current implementations, and an H200 does it. In shared memory subnormal
// numbers are kept.
float add_in_global(float a, float b) { return flush(flush(a) + flush(b)); }

// Vectors of which only the last element is compared. The other elements are combined alike, and
// their place is set to the filler again.
void add_vectors(Set& set) {
  set.hopper_form(
      "red.global.add.v2.f32",
      "{ .reg .f32 x; st.global.v2.f32 [dst], {b, a}; red.global.add.v2.f32 [dst], {a, b};"
      " ld.global.v2.f32 {x, d}, [dst]; st.global.b32 [dst+4], 0xcdcdcdcd; }",
      add_in_global);
  set.hopper_form(
      "atom.global.add.noftz.v2.f16x2",
      "{ .reg .b32 x, old0, old1; st.global.v2.b32 [dst], {b, a};"
      " atom.global.add.noftz.v2.f16x2 {old0, old1}, [dst], {a, b};"
      " ld.global.v2.b32 {x, d}, [dst]; st.global.b32 [dst+4], 0xcdcdcdcd; }",
      +[](F16x2 a, F16x2 b) {
        return F16x2{to_f16(a.low.value() + b.low.value()),
                     to_f16(a.high.value() + b.high.value())};
      });
  set.hopper_form(
      "atom.global.max.noftz.v2.bf16x2 old",
      "{ .reg .b32 old; st.global.v2.b32 [dst], {b, a};"
      " atom.global.max.noftz.v2.bf16x2 {old, d}, [dst], {a, b};"
      " st.global.b32 [dst+4], 0xcdcdcdcd; }",
      +[](u32 a, u32) { return a; });
  set.hopper_form(
      "red.global.add.noftz.v4.bf16",
      "{ .reg .b16 x, y, z; st.global.v4.b16 [dst], {b, a, b, a};"
      " red.relaxed.gpu.global.add.noftz.v4.bf16 [dst], {a, b, a, b};"
      " ld.global.v4.b16 {x, y, z, d}, [dst]; st.global.v4.b16 [dst],"
      " {0xcdcd, 0xcdcd, 0xcdcd, 0xcdcd}; }",
      +[](Bf16 a, Bf16 b) { return to_bf16(a.value() + b.value()); });
}

}  // namespace

void add_atomic(Set& set) {
  reduction_32<u32, add<u32>>(set, "add.u32");
  reduction_32<i32, add<i32>>(set, "add.s32");
  reduction_32<u32, smaller<u32>>(set, "min.u32");
  reduction_32<i32, smaller<i32>>(set, "min.s32");
  reduction_32<u32, larger<u32>>(set, "max.u32");
  reduction_32<i32, larger<i32>>(set, "max.s32");
  reduction_32<u32, bit_and<u32>>(set, "and.b32");
  reduction_32<u32, bit_or<u32>>(set, "or.b32");
  reduction_32<u32, bit_xor<u32>>(set, "xor.b32");
  reduction_32<u32, increment<u32>>(set, "inc.u32");
  reduction_32<u32, decrement<u32>>(set, "dec.u32");
  add_32<u32>(
      set, "exch.b32", +[](u32 a, u32 b) -> u64 { return both(b, a); });
  reduction_64<u64, add<u64>>(set, "add.u64");
  reduction_64<u64, smaller<u64>>(set, "min.u64");
  reduction_64<i64, smaller<i64>>(set, "min.s64");
  reduction_64<u64, larger<u64>>(set, "max.u64");
  reduction_64<i64, larger<i64>>(set, "max.s64");
  reduction_64<u64, bit_and<u64>>(set, "and.b64");
  reduction_64<u64, bit_or<u64>>(set, "or.b64");
  reduction_64<u64, bit_xor<u64>>(set, "xor.b64");
  reduction_64<u64, exchange<u64>>(set, "exch.b64");
  for (const char* order :
       {"relaxed.gpu.global", "acquire.gpu.global", "release.sys.global", "acq_rel.cta.global"}) {
    set.form(
        fmt::format("atom.{}.add.u32", order),
        fmt::format("{{ .reg .b32 old, now; st.global.b32 [dst], a; atom.{}.add.u32 old, [dst], b;"
                    " ld.global.b32 now, [dst]; mov.b64 d, {{now, old}}; }}",
                    order),
        +[](u32 a, u32 b) -> u64 { return both(a + b, a); });
  }
  set.form(
      "atom.add.u32 generic",
      "{ .reg .b32 old, now; st.global.b32 [dst], a; atom.add.u32 old, [dst], b; ld.global.b32 "
      "now, [dst];"
      " mov.b64 d, {now, old}; }",
      +[](u32 a, u32 b) -> u64 { return both(a + b, a); });

  // Compare-and-swap stores c if the contents are equal to b.
  set.form(
      "atom.global.cas.b32",
      "{ .reg .b32 old, now; st.global.b32 [dst], a; atom.global.cas.b32 old, [dst], b, c;"
      " ld.global.b32 now, [dst]; mov.b64 d, {now, old}; }",
      +[](u32 a, u32 b, u32 c) -> u64 { return both(a == b ? c : a, a); });
  set.form(
      "atom.shared.cas.b32",
      fmt::format(
          "{{ {} .reg .b32 old, now; st.shared.b32 [q], a; atom.shared.cas.b32 old, [q], b, c;"
          " ld.shared.b32 now, [q]; mov.b64 d, {{now, old}}; }}",
          kSharedPlace),
      +[](u32 a, u32 b, u32 c) -> u64 { return both(a == b ? c : a, a); });
  set.form(
      "atom.global.cas.b64",
      "{ .reg .b64 old, now; st.global.b64 [dst], a; atom.global.cas.b64 old, [dst], b, c;"
      " ld.global.b64 now, [dst]; mad.lo.s64 d, old, 3, now; }",
      +[](u64 a, u64 b, u64 c) -> u64 { return (a == b ? c : a) + 3 * a; });
  set.form(
      "atom.global.cas.b16",
      "{ .reg .b16 old, now; st.global.b16 [dst], a; atom.global.cas.b16 old, [dst], b, c;"
      " ld.global.b16 now, [dst]; mov.b32 d, {now, old}; }",
      +[](u16 a, u16 b, u16 c) -> u32 { return (a == b ? c : a) | static_cast<u32>(a) << 16; });

  set.form(
      "atom.global.add.f32",
      "{ .reg .f32 old; st.global.f32 [dst], a; atom.global.add.f32 old, [dst], b; ld.global.f32 "
      "d, [dst]; }",
      add_in_global);
  set.form(
      "atom.shared.add.f32",
      fmt::format("{{ {} .reg .f32 old; st.shared.f32 [q], a; atom.shared.add.f32 old, [q], b;"
                  " ld.shared.f32 d, [q]; }}",
                  kSharedPlace),
      +[](float a, float b) { return a + b; });
  set.form(
      "red.global.add.f64",
      "st.global.f64 [dst], a; red.global.add.f64 [dst], b; ld.global.f64 d, [dst];",
      +[](double a, double b) { return a + b; });
  set.form(
      "atom.global.add.noftz.f16x2",
      "{ .reg .b32 old; st.global.b32 [dst], a; atom.global.add.noftz.f16x2 old, [dst], b; "
      "ld.global.b32 d, [dst]; }",
      +[](F16x2 a, F16x2 b) {
        return F16x2{to_f16(a.low.value() + b.low.value()),
                     to_f16(a.high.value() + b.high.value())};
      });
  set.form(
      "atom.global.add.noftz.f16",
      "{ .reg .b16 old; st.global.b16 [dst], a; atom.global.add.noftz.f16 old, [dst], b; "
      "ld.global.b16 d, [dst]; }",
      +[](F16 a, F16 b) { return to_f16(a.value() + b.value()); });
  add_vectors(set);
}

}  // namespace annulus::golden
