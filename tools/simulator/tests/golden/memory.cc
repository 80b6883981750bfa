// ld, st and similar instructions in global, shared, local and generic space. Programs of more than
// one statement are in tools/simulator/tests/ptx/.

#include <fmt/core.h>

#include "golden/golden.h"

namespace annulus::golden {
namespace {

// ld.TYPE into a register of the result's width. Signed types are extended by their sign, other
// types by zeros.
template <typename Loaded, typename Register>
void add_extension(Set& set, const char* type) {
  set.form(
      fmt::format("ld.global.{} into {} bits", type, sizeof(Register) * 8),
      fmt::format("ld.global.{} d, [src];", type),
      +[](u64 a) -> Register { return static_cast<Register>(static_cast<Loaded>(a)); });
}

void add_loads(Set& set) {
  add_extension<u8, u16>(set, "u8");
  add_extension<u8, u32>(set, "u8");
  add_extension<u8, u64>(set, "u8");
  add_extension<u8, u32>(set, "b8");
  add_extension<i8, i16>(set, "s8");
  add_extension<i8, i32>(set, "s8");
  add_extension<i8, i64>(set, "s8");
  add_extension<u16, u32>(set, "u16");
  add_extension<u16, u32>(set, "b16");
  add_extension<i16, i32>(set, "s16");
  add_extension<i16, i64>(set, "s16");
  add_extension<u32, u64>(set, "u32");
  add_extension<i32, i64>(set, "s32");
  add_extension<u64, u64>(set, "u64");
  for (const char* hint :
       {"ld.global.ca.b32", "ld.global.cg.b32", "ld.global.cs.b32", "ld.global.lu.b32",
        "ld.global.cv.b32", "ld.global.nc.b32", "ld.global.nc.L1::no_allocate.b32",
        "ld.global.L1::evict_last.b32", "ld.global.L1::evict_first.L2::128B.b32",
        "ld.global.L2::64B.b32", "ld.volatile.global.b32", "ld.weak.global.b32",
        "ld.relaxed.gpu.global.b32", "ld.acquire.cta.global.b32", "ld.acquire.sys.global.b32",
        "ldu.global.b32"}) {
    set.form(
        hint, fmt::format("{} d, [src];", hint), +[](u32 a) { return a; });
  }
  set.form(
      "ld.b32 generic", "ld.b32 d, [src];", +[](u32 a) { return a; });
  set.form(
      "ld.global.b32 at a negative offset",
      "{ .reg .b64 p; add.s64 p, src, 40; ld.global.b32 d, [p+-40]; }", +[](u32 a) { return a; });
  set.form(
      "ld.global.L2::cache_hint.b32",
      "{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
      " ld.global.L2::cache_hint.b32 d, [src], policy; }",
      +[](u32 a) { return a; });

  const auto pair = [&](const char* name, const char* statement) {
    set.form(
        name, statement, +[](u64 a, u64 b) -> u64 { return b - a; });
  };
  pair("ld.global.v2.b64", "{ .reg .b64 x, y; ld.global.v2.b64 {x, y}, [src]; sub.s64 d, y, x; }");
  pair("ld.global.nc.v2.u64",
       "{ .reg .b64 x, y; ld.global.nc.v2.u64 {x, y}, [src]; sub.s64 d, y, x; }");
  pair("ld.global.v2.f64",
       "{ .reg .f64 x, y; .reg .b64 s, t; ld.global.v2.f64 {x, y}, [src]; mov.b64 s, x;"
       " mov.b64 t, y; sub.s64 d, t, s; }");
  set.form(
      "ld.global.v4.b32",
      "{ .reg .b32 w, x, y, z; ld.global.v4.b32 {w, x, y, z}, [src]; sub.s32 w, y, w;"
      " sub.s32 x, z, x; mov.b64 d, {w, x}; }",
      +[](u64 a, u64 b) -> u64 {
        return both(static_cast<u32>(b) - static_cast<u32>(a),
                    static_cast<u32>(b >> 32) - static_cast<u32>(a >> 32));
      });
  set.form(
      "ld.global.v4.f32",
      "{ .reg .f32 w, x, y, z; ld.global.v4.f32 {w, x, y, z}, [src]; mov.b64 d, {z, w}; }",
      +[](u64 a, u64 b) -> u64 { return both(static_cast<u32>(b >> 32), static_cast<u32>(a)); });
  set.form(
      "ld.global.v2.b32", "{ .reg .b32 x, y; ld.global.v2.b32 {x, y}, [src]; mov.b64 d, {y, x}; }",
      +[](u64 a) -> u64 { return a << 32 | a >> 32; });
  set.form(
      "ld.global.v4.u16",
      "{ .reg .b16 w, x, y, z; ld.global.v4.u16 {w, x, y, z}, [src]; mov.b64 d, {x, w, z, y}; }",
      +[](u64 a) -> u64 {
        return ((a & 0xffff0000ffff0000ull) >> 16) | ((a & 0x0000ffff0000ffffull) << 16);
      });
  set.form(
      "ld.global.v4.s8",
      "{ .reg .b32 w, x, y, z; ld.global.v4.s8 {w, x, y, z}, [src]; add.s32 w, w, x;"
      " add.s32 y, y, z; add.s32 d, w, y; }",
      +[](u64 a) -> i32 {
        return static_cast<i8>(a) + static_cast<i8>(a >> 8) + static_cast<i8>(a >> 16) +
               static_cast<i8>(a >> 24);
      });
  set.form(
      "ld.global.v2.u8 of a sink and a wide register", "ld.global.v2.u8 {_, d}, [src];",
      +[](u64 a) -> u32 { return static_cast<u32>((a >> 8) & 0xff); });
  set.form(
      "ld.global.v2.u8", "{ .reg .b16 x, y; ld.global.v2.u8 {x, y}, [src]; mov.b32 d, {y, x}; }",
      +[](u64 a) -> u32 { return static_cast<u32>((a >> 8 & 0xff) | (a & 0xff) << 16); });
}

void add_stores(Set& set) {
  // Each program stores into its own result word and reads the word back. So the result shows the
  // bytes that the store did not write.
  const auto form = [&](const char* statement, u64 (*define)(u64)) {
    set.form(std::string(statement).substr(0, std::string_view(statement).find(' ')),
             fmt::format("{} ld.global.b64 d, [dst];", statement), define);
  };
  constexpr u64 kHigh32 = kFiller & 0xffffffff00000000ull;
  form(
      "st.global.b8 [dst], a;", +[](u64 a) -> u64 { return (kFiller & ~0xffull) | (a & 0xff); });
  form(
      "st.global.u16 [dst+2], a;",
      +[](u64 a) -> u64 { return (kFiller & ~0xffff0000ull) | (a & 0xffff) << 16; });
  const auto narrow = +[](u64 a) -> u64 { return kHigh32 | (a & 0xffffffff); };
  for (const char* opcode :
       {"st.global.b32", "st.global.wb.b32", "st.global.cg.b32", "st.global.cs.b32",
        "st.global.wt.b32", "st.volatile.global.b32", "st.relaxed.gpu.global.b32",
        "st.release.cta.global.b32", "st.release.sys.global.b32", "st.b32",
        "st.global.L1::no_allocate.b32"}) {
    set.form(opcode, fmt::format("{} [dst], a; ld.global.b64 d, [dst];", opcode), narrow);
  }
  form(
      "st.global.b64 [dst], a;", +[](u64 a) -> u64 { return a; });
  form(
      "st.global.v2.b32 [dst], {3, -4};", +[](u64) -> u64 { return 0xfffffffc00000003ull; });
  set.form(
      "st.global.v4.b16",
      "{ .reg .b16 w, x, y, z; mov.b64 {w, x, y, z}, a; st.global.v4.b16 [dst], {z, y, x, w};"
      " ld.global.b64 d, [dst]; }",
      +[](u64 a) -> u64 {
        return (a >> 48) | ((a >> 16) & 0xffff0000u) | ((a & 0xffff0000u) << 16) |
               (a & 0xffff) << 48;
      });
  set.form(
      "st.global.v4.u8",
      "{ .reg .b32 x, y; shr.u64 b, a, 8; cvt.u32.u64 x, a; cvt.u32.u64 y, b;"
      " st.global.v4.u8 [dst+4], {x, y, x, y}; ld.global.b64 d, [dst]; }",
      +[](u64 a, u64) -> u64 {
        const u64 pair = a & 0xffff;
        return (kFiller & 0xffffffffu) | pair << 32 | pair << 48;
      });
}

void add_shared(Set& set) {
  // Every lane writes its own bytes in several widths, and reads them in other widths.
  set.form(
      "st.shared.b64 and ld.shared.v2.b32",
      "{ .shared .align 16 .b8 room[1024]; .reg .b32 t, x, y; .reg .b32 base; mov.u32 t, %tid.x;"
      " mov.u32 base, room; mad.lo.s32 base, t, 8, base; st.shared.b64 [base], a;"
      " ld.shared.v2.b32 {x, y}, [base]; mov.b64 d, {y, x}; }",
      +[](u64 a) -> u64 { return a << 32 | a >> 32; });
  set.form(
      "ld.shared at a 64-bit address",
      "{ .shared .align 16 .b8 room[1056]; .reg .b64 t, base; cvt.u64.u32 t, tid; and.b64 t, t, "
      "127;"
      " mov.u64 base, room; mad.lo.s64 base, t, 8, base; st.shared.u32 [base+16], a; ld.shared.u32 "
      "d, [base+16]; }",
      +[](u32 a) { return a; });
  set.form(
      "st.shared.v4.b32 and ld.shared.s8",
      "{ .shared .align 16 .b8 room[2048]; .reg .b32 base, t; mov.u32 t, %tid.x; mov.u32 base, "
      "room;"
      " mad.lo.s32 base, t, 16, base; st.shared.v4.b32 [base], {a, b, a, b}; ld.shared.s8 d, "
      "[base+7]; }",
      +[](u32, u32 b) -> i32 { return static_cast<i8>(b >> 24); });
  set.form(
      "ld.volatile.shared.u16",
      "{ .shared .align 4 .b8 room[512]; .reg .b32 base, t; mov.u32 t, %tid.x; mov.u32 base, room;"
      " mad.lo.s32 base, t, 4, base; st.volatile.shared.b32 [base], a; ld.volatile.shared.u16 d, "
      "[base+2]; }",
      +[](u32 a) -> u32 { return a >> 16; });
  set.warp_form<u32>(
      "ld.shared of a neighbour after bar.warp.sync", {Kind::kBits32},
      "{ .shared .align 4 .b8 room[512]; .reg .b32 base, t, n; mov.u32 t, %tid.x; mov.u32 base, "
      "room;"
      " mad.lo.s32 n, t, 4, base; st.shared.b32 [n], a; bar.warp.sync 0xffffffff; xor.b32 t, t, 1;"
      " mad.lo.s32 n, t, 4, base; ld.shared.b32 d, [n]; }",
      +[](const Warp& warp, int lane) { return warp.in<u32>(0, lane ^ 1); });
}

void add_local(Set& set) {
  set.form(
      "st.local and ld.local",
      "{ .local .align 16 .b8 room[64]; .reg .b32 x, y, i; st.local.v2.b32 [room+8], {a, b};"
      " st.local.b8 [room+8], 0; ld.local.b32 x, [room+8]; ld.local.s16 y, [room+14]; mov.b64 d, "
      "{x, y}; }",
      +[](u32 a, u32 b) -> u64 {
        return both(a & ~0xffu, static_cast<u32>(static_cast<i32>(static_cast<i16>(b >> 16))));
      });
  set.form(
      "local array with a computed index",
      "{ .local .align 4 .b32 room[8]; .reg .b32 i, p, base; .reg .pred q; mov.u32 base, room; "
      "mov.u32 i, 0;\n"
      "FILL: mad.lo.s32 p, i, 4, base; xor.b32 d, a, i; st.local.b32 [p], d; add.s32 i, i, 1;"
      " setp.lt.u32 q, i, 8; @q bra FILL;\n and.b32 i, b, 7; mad.lo.s32 p, i, 4, base; "
      "ld.local.b32 d, [p]; }",
      +[](u32 a, u32 b) -> u32 { return a ^ (b & 7); });
}

void add_quiet(Set& set) {
  // Instructions without a result must leave the value unchanged.
  for (const char* statement :
       {"prefetch.global.L1 [src];", "prefetch.global.L2 [dst];",
        "prefetch.global.L2::evict_last [src];", "prefetchu.L1 [src];", "membar.cta;", "membar.gl;",
        "membar.sys;", "fence.acq_rel.cta;", "fence.acq_rel.gpu;", "fence.acq_rel.sys;",
        "fence.sc.gpu;", "nanosleep.u32 20;", "bar.warp.sync 0xffffffff;", "pmevent 3;",
        "bar.sync 0;", "barrier.sync 0;", "bar.sync 3, 128;"}) {
    set.form(
        std::string(statement).substr(0, std::string_view(statement).size() - 1),
        fmt::format("mov.b32 d, a; {}", statement), +[](u32 a) { return a; });
  }
}

}  // namespace

void add_memory(Set& set) {
  add_loads(set);
  add_stores(set);
  add_shared(set);
  add_local(set);
  add_quiet(set);
}

}  // namespace annulus::golden
