// mov with its packing and unpacking, special registers, cvta, isspacep: "Data Movement and
// Conversion Instructions" and "Special Registers".

#include "golden/golden.h"

namespace annulus::golden {
namespace {

void add_packing(Set& set) {
  set.form(
      "mov.b32 d, {a, b}", "mov.b32 d, {a, b};",
      +[](u16 a, u16 b) -> u32 { return a | static_cast<u32>(b) << 16; });
  set.form(
      "mov.b64 d, {a, b}", "mov.b64 d, {a, b};",
      +[](u32 a, u32 b) -> u64 { return a | static_cast<u64>(b) << 32; });
  set.form(
      "mov.b64 d, {a, b, c, e}", "mov.b64 d, {a, b, c, e};",
      +[](u16 a, u16 b, u16 c, u16 e) -> u64 {
        return a | static_cast<u64>(b) << 16 | static_cast<u64>(c) << 32 |
               static_cast<u64>(e) << 48;
      });
  set.form(
      "mov.b32 {l, h}, a", "{ .reg .b16 l, h; mov.b32 {l, h}, a; sub.s16 d, h, l; }",
      +[](u32 a) -> u16 { return static_cast<u16>((a >> 16) - a); });
  set.form(
      "mov.b64 {l, h}, a", "{ .reg .b32 l, h; mov.b64 {l, h}, a; sub.s32 d, h, l; }",
      +[](u64 a) -> u32 { return static_cast<u32>((a >> 32) - a); });
  set.form(
      "mov.b64 {w, x, y, z}, a",
      "{ .reg .b16 w, x, y, z; mov.b64 {w, x, y, z}, a; mov.b64 d, {z, y, x, w}; }",
      +[](u64 a) -> u64 {
        return (a >> 48) | ((a >> 16) & 0xffff0000u) | ((a & 0xffff0000u) << 16) |
               (a & 0xffff) << 48;
      });
  set.form(
      "mov.b32 {_, h}, a", "mov.b32 {_, d}, a;",
      +[](u32 a) -> u16 { return static_cast<u16>(a >> 16); });
  set.form(
      "mov.b64 {l, _}, a", "mov.b64 {d, _}, a;", +[](u64 a) -> u32 { return static_cast<u32>(a); });
}

void add_plain(Set& set) {
  set.form(
      "mov.u16", "mov.u16 d, a;", +[](u16 a) { return a; });
  set.form(
      "mov.u32", "mov.u32 d, a;", +[](u32 a) { return a; });
  set.form(
      "mov.b64", "mov.b64 d, a;", +[](u64 a) { return a; });
  set.form(
      "mov.f32", "mov.f32 d, a;", +[](u32 a) { return a; });
  set.form(
      "mov.f64", "mov.f64 d, a;", +[](u64 a) { return a; });
  set.form(
      "mov.f32 constants", "{ .reg .f32 x; mov.f32 x, 0f7F800000; mov.b32 d, x; xor.b32 d, d, a; }",
      +[](u32 a) -> u32 { return a ^ 0x7f800000u; });
  set.form(
      "mov.f64 constants",
      "{ .reg .f64 x; mov.f64 x, 0dC000000000000000; mov.b64 d, x; xor.b64 d, d, a; }",
      +[](u64 a) -> u64 { return a ^ 0xc000000000000000ull; });
  set.form(
      "mov.b64 negative immediate", "{ .reg .b64 x; mov.b64 x, -2; add.s64 d, x, a; }",
      +[](u64 a) -> u64 { return a - 2; });
  set.form(
      "mov.b32 expression", "mov.b32 d, (3 << 4) | 1; add.s32 d, d, a;",
      +[](u32 a) -> u32 { return a + 49; });
  // Registers may be declared in bulk, and inner scopes hide outer names.
  set.form(
      "scoped names",
      "{ .reg .b32 r<3>; mov.b32 r0, a; mov.b32 r1, r0;\n"
      "  { .reg .b32 a; mov.b32 a, 5; add.s32 r2, r1, a; }\n  add.s32 d, r2, a; }",
      +[](u32 a) -> u32 { return a + a + 5; });
  set.form(
      "predicated mov",
      "mov.b32 d, a; { .reg .pred p; setp.gt.s32 p, a, 0; @p mov.b32 d, b; @!p add.s32 d, d, 1; }",
      +[](i32 a, u32 b) -> u32 { return a > 0 ? b : static_cast<u32>(a) + 1; });
}

void add_special(Set& set) {
  set.warp_form<u32>(
      "mov %laneid", {Kind::kBits32}, "mov.u32 d, %laneid;",
      +[](const Warp&, int lane) -> u32 { return static_cast<u32>(lane); });
  set.warp_form<u32>(
      "mov %lanemask_eq", {Kind::kBits32}, "mov.u32 d, %lanemask_eq;",
      +[](const Warp&, int lane) -> u32 { return 1u << lane; });
  set.warp_form<u32>(
      "mov %lanemask_lt", {Kind::kBits32}, "mov.u32 d, %lanemask_lt;",
      +[](const Warp&, int lane) -> u32 { return (1u << lane) - 1; });
  set.warp_form<u32>(
      "mov %lanemask_le", {Kind::kBits32}, "mov.u32 d, %lanemask_le;",
      +[](const Warp&, int lane) -> u32 { return (2u << lane) - 1; });
  set.warp_form<u32>(
      "mov %lanemask_gt", {Kind::kBits32}, "mov.u32 d, %lanemask_gt;",
      +[](const Warp&, int lane) -> u32 { return ~((2u << lane) - 1); });
  set.warp_form<u32>(
      "mov %lanemask_ge", {Kind::kBits32}, "mov.u32 d, %lanemask_ge;",
      +[](const Warp&, int lane) -> u32 { return ~((1u << lane) - 1); });
  set.warp_form<u32>(
      "mov WARP_SZ", {Kind::kBits32}, "mov.u32 d, WARP_SZ;",
      +[](const Warp&, int) -> u32 { return 32; });
  // A later value of the clock is not smaller than an earlier one.
  set.warp_form<bool>(
      "mov %clock64", {Kind::kBits32},
      "{ .reg .b64 s, t; mov.u64 s, %clock64; add.s32 tid, tid, 1; mov.u64 t, %clock64;"
      " setp.ge.u64 d, t, s; }",
      +[](const Warp&, int) { return true; });
  set.warp_form<bool>(
      "mov %globaltimer", {Kind::kBits32},
      "{ .reg .b64 s, t; mov.u64 s, %globaltimer; mov.u64 t, %globaltimer;"
      " setp.ge.u64 d, t, s; }",
      +[](const Warp&, int) { return true; });
  set.warp_form<u32>(
      "mov %clock", {Kind::kBits32},
      "{ .reg .b32 s, t; mov.u32 s, %clock; mov.u32 t, %clock; sub.s32 s, t, s;"
      " shr.u32 d, s, 24; }",
      +[](const Warp&, int) -> u32 { return 0; });
}

void add_addresses(Set& set) {
  // The generic address of a global word is the word's address. For shared or local memory the
  // manual only promises that it can be converted back.
  set.form(
      "cvta.global.u64",
      "{ .reg .b64 g, s; cvta.global.u64 g, src; cvta.to.global.u64 s, g; sub.s64 g, s, src;"
      " add.s64 d, g, a; }",
      +[](u64 a) -> u64 { return a; });
  set.form(
      "cvta.shared.u64",
      "{ .shared .align 8 .b64 room[128]; .reg .b64 s, g, o; .reg .b32 t; mov.u32 t, %tid.x;"
      " mov.u64 s, room; mad.wide.u32 s, t, 8, s; cvta.shared.u64 g, s; st.u64 [g], a; "
      "ld.shared.u64 d, [s];"
      " cvta.to.shared.u64 o, g; sub.s64 o, o, s; add.s64 d, d, o; }",
      +[](u64 a) -> u64 { return a; });
  set.form(
      "cvta.local.u64",
      "{ .local .align 8 .b64 room[2]; .reg .b64 s, g; mov.u64 s, room; cvta.local.u64 g, s;"
      " st.u64 [g+8], a; ld.local.u64 d, [room+8]; }",
      +[](u64 a) -> u64 { return a; });
  set.form(
      "isspacep.global", "isspacep.global d, src;", +[](u64) -> bool { return true; });
  set.form(
      "isspacep.shared",
      "{ .shared .align 8 .b64 room[2]; .reg .b64 s; .reg .pred p, q; mov.u64 s, room;"
      " cvta.shared.u64 s, s; isspacep.shared p, s; isspacep.shared q, src; not.pred q, q;"
      " and.pred d, p, q; }",
      +[](u64) -> bool { return true; });
  set.form(
      "isspacep.local",
      "{ .local .align 8 .b64 room[2]; .reg .b64 s; mov.u64 s, room; cvta.local.u64 s, s;"
      " isspacep.local d, s; }",
      +[](u64) -> bool { return true; });
}

}  // namespace

void add_move(Set& set) {
  add_packing(set);
  add_plain(set);
  add_special(set);
  add_addresses(set);
}

}  // namespace annulus::golden
