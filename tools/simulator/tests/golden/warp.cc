// Instructions that exchange values between the lanes of a warp: shfl, vote, match, redux,
// activemask, bar.warp.sync. Blocks are four full warps, so member mask -1 names every lane.

#include <algorithm>
#include <bit>

#include "golden/golden.h"

namespace annulus::golden {
namespace {

enum class Mode { kUp, kDown, kButterfly, kIndex };

struct Source {
  int lane;
  bool valid;
};

// Follows the manual's pseudocode. c holds the clamp in its low five bits and a segment mask in
// bits 8..12.
Source source_lane(Mode mode, int lane, u32 b, u32 c) {
  const int bval = static_cast<int>(b & 31);
  const int clamp = static_cast<int>(c & 31);
  const int segment = static_cast<int>((c >> 8) & 31);
  const int max_lane = (lane & segment) | (clamp & ~segment);
  const int min_lane = lane & segment;
  int j = 0;
  bool valid = false;
  switch (mode) {
    case Mode::kUp:
      j = lane - bval;
      valid = j >= max_lane;
      break;
    case Mode::kDown:
      j = lane + bval;
      valid = j <= max_lane;
      break;
    case Mode::kButterfly:
      j = lane ^ bval;
      valid = j <= max_lane;
      break;
    case Mode::kIndex:
      j = min_lane | (bval & ~segment);
      valid = j <= max_lane;
      break;
  }
  return {valid ? j : lane, valid};
}

// Each lane has a different b. c is the same in all lanes here, as in compiled code.
template <Mode kMode, u32 kClamp>
u64 shuffle(const Warp& warp, int lane) {
  const Source source = source_lane(kMode, lane, warp.in<u32>(1, lane), kClamp);
  return warp.in<u32>(0, source.lane) | static_cast<u64>(source.valid ? 1 : 0) << 32;
}
template <Mode kMode, u32 kClamp, u32 kDistance>
u64 shuffle_by(const Warp& warp, int lane) {
  const Source source = source_lane(kMode, lane, kDistance, kClamp);
  return warp.in<u32>(0, source.lane) | static_cast<u64>(source.valid ? 1 : 0) << 32;
}
template <Mode kMode>
u64 shuffle_any(const Warp& warp, int lane) {
  const Source source = source_lane(kMode, lane, warp.in<u32>(1, lane), warp.in<u32>(2, lane));
  return warp.in<u32>(0, source.lane) | static_cast<u64>(source.valid ? 1 : 0) << 32;
}

std::string statement(const std::string& mode, const std::string& b, const std::string& c) {
  return "{ .reg .pred p; .reg .b32 v, f; shfl.sync." + mode + ".b32 v|p, a, " + b + ", " + c +
         ", 0xffffffff; selp.b32 f, 1, 0, p; mov.b64 d, {v, f}; }";
}

void add_shuffle(Set& set) {
  const std::vector<Kind> value = {Kind::kBits32};
  const std::vector<Kind> value_and_lane = {Kind::kBits32, Kind::kShift};
  set.warp_form<u64>("shfl.sync.up.b32 by 1", value, statement("up", "1", "0"),
                     shuffle_by<Mode::kUp, 0, 1>);
  set.warp_form<u64>("shfl.sync.up.b32 by 3 in segments of 8", value,
                     statement("up", "3", "0x1800"), shuffle_by<Mode::kUp, 0x1800, 3>);
  set.warp_form<u64>("shfl.sync.down.b32 by 5", value, statement("down", "5", "31"),
                     shuffle_by<Mode::kDown, 31, 5>);
  set.warp_form<u64>("shfl.sync.down.b32 by 1 in segments of 4", value,
                     statement("down", "1", "0x1c1f"), shuffle_by<Mode::kDown, 0x1c1f, 1>);
  set.warp_form<u64>("shfl.sync.bfly.b32 by 1", value, statement("bfly", "1", "31"),
                     shuffle_by<Mode::kButterfly, 31, 1>);
  set.warp_form<u64>("shfl.sync.bfly.b32 by 16", value, statement("bfly", "16", "31"),
                     shuffle_by<Mode::kButterfly, 31, 16>);
  set.warp_form<u64>("shfl.sync.bfly.b32 by 9 in segments of 8", value,
                     statement("bfly", "9", "0x181f"), shuffle_by<Mode::kButterfly, 0x181f, 9>);
  set.warp_form<u64>("shfl.sync.idx.b32 broadcast", value, statement("idx", "7", "31"),
                     shuffle_by<Mode::kIndex, 31, 7>);
  set.warp_form<u64>("shfl.sync.idx.b32 from any lane", value_and_lane, statement("idx", "b", "31"),
                     shuffle<Mode::kIndex, 31>);
  set.warp_form<u64>("shfl.sync.idx.b32 in segments of 16", value_and_lane,
                     statement("idx", "b", "0x101f"), shuffle<Mode::kIndex, 0x101f>);
  set.warp_form<u64>("shfl.sync.idx.b32 clamped", value_and_lane, statement("idx", "b", "12"),
                     shuffle<Mode::kIndex, 12>);
  const std::vector<Kind> all = {Kind::kBits32, Kind::kShift, Kind::kBits16};
  const std::string wide = "{ .reg .b32 k; cvt.u32.u16 k, c; ";
  set.warp_form<u64>("shfl.sync.up.b32 any operands", all, wide + statement("up", "b", "k") + " }",
                     shuffle_any<Mode::kUp>);
  set.warp_form<u64>("shfl.sync.down.b32 any operands", all,
                     wide + statement("down", "b", "k") + " }", shuffle_any<Mode::kDown>);
  set.warp_form<u64>("shfl.sync.bfly.b32 any operands", all,
                     wide + statement("bfly", "b", "k") + " }", shuffle_any<Mode::kButterfly>);
  set.warp_form<u32>(
      "shfl.sync.down.b32 half warp", value,
      "mov.b32 d, 9; { .reg .pred h; setp.lt.u32 h, lane, 16;"
      " @h shfl.sync.down.b32 d, a, 4, 0x101f, 0x0000ffff; }",
      +[](const Warp& warp, int lane) -> u32 {
        if (lane >= 16) return 9;
        return lane < 12 ? warp.in<u32>(0, lane + 4) : warp.in<u32>(0, lane);
      });
}

u32 ballot(const Warp& warp) {
  u32 mask = 0;
  for (int lane = 0; lane < 32; ++lane) mask |= warp.in<bool>(0, lane) ? 1u << lane : 0u;
  return mask;
}

void add_vote(Set& set) {
  // Predicates come from words with few, many and equal values, so that all outcomes occur.
  const std::vector<Kind> one = {Kind::kPredicate};
  set.warp_form<u32>(
      "vote.sync.ballot.b32", one, "vote.sync.ballot.b32 d, a, 0xffffffff;",
      +[](const Warp& warp, int) { return ballot(warp); });
  set.warp_form<u32>(
      "vote.sync.ballot.b32 negated", one, "vote.sync.ballot.b32 d, !a, 0xffffffff;",
      +[](const Warp& warp, int) { return ~ballot(warp); });
  set.warp_form<bool>(
      "vote.sync.any.pred", one, "vote.sync.any.pred d, a, 0xffffffff;",
      +[](const Warp& warp, int) { return ballot(warp) != 0; });
  set.warp_form<bool>(
      "vote.sync.all.pred", one, "vote.sync.all.pred d, a, 0xffffffff;",
      +[](const Warp& warp, int) { return ballot(warp) == 0xffffffff; });
  set.warp_form<bool>(
      "vote.sync.uni.pred", one, "vote.sync.uni.pred d, a, 0xffffffff;",
      +[](const Warp& warp, int) { return ballot(warp) == 0 || ~ballot(warp) == 0; });
  // All lanes of warps 2 and 3 vote yes, and those of warps 0 and 1 vote no: d ends as 4 + 3 or 4,
  // less 3 or 0.
  set.warp_form<u32>(
      "vote.sync of uniform warps", {Kind::kBits32},
      "{ .reg .pred p, x, y, z; .reg .b32 w, t; mov.u32 t, %tid.x; setp.ge.u32 p, t, 64;"
      " vote.sync.all.pred x, p, -1; vote.sync.any.pred y, p, -1; vote.sync.uni.pred z, p, -1;"
      " selp.b32 d, 1, 0, x; selp.b32 w, 2, 0, y; add.s32 d, d, w; selp.b32 w, 4, 0, z;"
      " add.s32 d, d, w; selp.b32 w, 3, 0, p; sub.s32 d, d, w; }",
      +[](const Warp&, int) -> u32 { return 4; });
  set.warp_form<u32>(
      "vote.sync.ballot.b32 half warp", {Kind::kPredicate},
      "mov.b32 d, 77; { .reg .pred h; setp.ge.u32 h, lane, 16;"
      " @h vote.sync.ballot.b32 d, a, 0xffff0000; }",
      +[](const Warp& warp, int lane) -> u32 {
        return lane < 16 ? 77u : ballot(warp) & 0xffff0000u;
      });
}

void add_match(Set& set) {
  const std::vector<Kind> one = {Kind::kShift};  // few values, so that lanes have equal ones
  set.warp_form<u32>(
      "match.any.sync.b32", one,
      "{ .reg .b32 x; and.b32 x, a, 3; match.any.sync.b32 d, x, 0xffffffff; }",
      +[](const Warp& warp, int lane) -> u32 {
        u32 mask = 0;
        for (int other = 0; other < 32; ++other) {
          if (((warp.in<u32>(0, other) ^ warp.in<u32>(0, lane)) & 3) == 0) mask |= 1u << other;
        }
        return mask;
      });
  set.warp_form<u32>(
      "match.any.sync.b64", one,
      "{ .reg .b32 x; .reg .b64 y; and.b32 x, a, 1; mov.b64 y, {0, x}; match.any.sync.b64 d, y, "
      "0xffffffff; }",
      +[](const Warp& warp, int lane) -> u32 {
        u32 mask = 0;
        for (int other = 0; other < 32; ++other) {
          if (((warp.in<u32>(0, other) ^ warp.in<u32>(0, lane)) & 1) == 0) mask |= 1u << other;
        }
        return mask;
      });
  set.warp_form<u64>(
      "match.all.sync.b32", one,
      "{ .reg .b32 x, v, f; .reg .pred p; and.b32 x, a, 0; match.all.sync.b32 v|p, x, 0xffffffff;"
      " selp.b32 f, 1, 0, p; mov.b64 d, {v, f}; }",
      +[](const Warp&, int) -> u64 { return 0x1ffffffffull; });
  set.warp_form<u64>(
      "match.all.sync.b32 unequal", one,
      "{ .reg .b32 v, f; .reg .pred p; match.all.sync.b32 v|p, lane, 0xffffffff;"
      " selp.b32 f, 1, 0, p; mov.b64 d, {v, f}; }",
      +[](const Warp&, int) -> u64 { return 0; });
}

template <typename T, T (*kOperation)(T, T)>
T reduced(const Warp& warp, int) {
  T value = warp.in<T>(0, 0);
  for (int lane = 1; lane < 32; ++lane) value = kOperation(value, warp.in<T>(0, lane));
  return value;
}

template <typename T>
T plus(T a, T b) {
  return a + b;
}
template <typename T>
T smaller(T a, T b) {
  return std::min(a, b);
}
template <typename T>
T larger(T a, T b) {
  return std::max(a, b);
}
u32 bit_and(u32 a, u32 b) { return a & b; }
u32 bit_or(u32 a, u32 b) { return a | b; }
u32 bit_xor(u32 a, u32 b) { return a ^ b; }

template <typename T, T (*kOperation)(T, T)>
void add_one_redux(Set& set, const char* opcode) {
  set.warp_form<T>(opcode, {Kind::kBits32}, std::string(opcode) + " d, a, 0xffffffff;",
                   reduced<T, kOperation>);
}

void add_redux(Set& set) {
  add_one_redux<u32, plus<u32>>(set, "redux.sync.add.s32");
  add_one_redux<u32, plus<u32>>(set, "redux.sync.add.u32");
  add_one_redux<i32, smaller<i32>>(set, "redux.sync.min.s32");
  add_one_redux<i32, larger<i32>>(set, "redux.sync.max.s32");
  add_one_redux<u32, smaller<u32>>(set, "redux.sync.min.u32");
  add_one_redux<u32, larger<u32>>(set, "redux.sync.max.u32");
  add_one_redux<u32, bit_and>(set, "redux.sync.and.b32");
  add_one_redux<u32, bit_or>(set, "redux.sync.or.b32");
  add_one_redux<u32, bit_xor>(set, "redux.sync.xor.b32");
}

void add_masks(Set& set) {
  set.warp_form<u32>(
      "activemask.b32 converged", {Kind::kBits32}, "activemask.b32 d;",
      +[](const Warp&, int) -> u32 { return 0xffffffffu; });
  // In a branch the mask contains no lane that did not take the branch.
  set.warp_form<u32>(
      "activemask.b32 in a branch", {Kind::kPredicate},
      "mov.b32 d, 0; @!a bra SKIP; activemask.b32 d; SKIP: bar.warp.sync -1;"
      " { .reg .b32 all; vote.sync.ballot.b32 all, a, -1; not.b32 all, all; and.b32 d, d, all; }",
      +[](const Warp&, int) -> u32 { return 0; });
}

}  // namespace

void add_warp(Set& set) {
  add_shuffle(set);
  add_vote(set);
  add_match(set);
  add_redux(set);
  add_masks(set);
}

}  // namespace annulus::golden
