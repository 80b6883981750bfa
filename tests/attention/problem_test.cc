#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "annulus/problem.h"
#include "annulus/types.h"

namespace {

using namespace annulus;

Problem good() {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = 100;
  problem.seq_k = 120;
  problem.dim_qk = 64;
  problem.dim_v = 64;
  return problem;
}

void* address(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

Operands memory(const Problem& problem) {
  Operands operands;
  operands.q = address(0x10000);
  operands.k = address(0x20000);
  operands.v = address(0x30000);
  operands.o = address(0x40000);
  operands.q_strides = Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
  operands.k_strides = Strides::bshd(problem.seq_k, problem.kv_heads, problem.dim_qk);
  operands.v_strides = Strides::bhsd(problem.seq_k, problem.kv_heads, problem.dim_v);
  operands.o_strides = Strides::bhsd(problem.seq_q, problem.heads, problem.dim_v);
  return operands;
}

// Checks that the error message names the wrong value.
void refused(const std::function<void()>& call, ErrorCode code, const std::string& part) {
  try {
    call();
    FAIL("accepted: " << part);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
  }
}

void refused(const std::function<void(Problem&)>& change, const std::string& part,
             ErrorCode code = ErrorCode::kInvalidArgument) {
  Problem problem = good();
  change(problem);
  refused([&] { validate(problem); }, code, part);
}

void refused_memory(const std::function<void(Problem&, Operands&)>& change,
                    const std::string& part) {
  Problem problem = good();
  Operands operands = memory(problem);
  change(problem, operands);
  validate(problem);
  refused([&] { validate(problem, operands); }, ErrorCode::kInvalidArgument, part);
}

TEST_CASE("a good problem and its memory pass") {
  const Problem problem = good();
  CHECK_NOTHROW(validate(problem));
  CHECK_NOTHROW(validate(problem, memory(problem)));
  CHECK(problem.effective_scale() == doctest::Approx(0.125));
  CHECK(problem.q_position() == 20);
  CHECK(problem.k_position() == 0);
}

TEST_CASE("lengths and batches of 0 need no memory") {
  Problem problem = good();
  problem.seq_q = 0;
  CHECK_NOTHROW(validate(problem));
  CHECK_NOTHROW(validate(problem, Operands{}));
  problem = good();
  problem.batch = 0;
  CHECK_NOTHROW(validate(problem));
  CHECK_NOTHROW(validate(problem, Operands{}));
  problem = good();
  problem.seq_k = 0;
  Operands operands = memory(problem);
  operands.k = operands.v = nullptr;
  CHECK_NOTHROW(validate(problem, operands));
}

TEST_CASE("every wrong number of a problem is named") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  refused([](Problem& p) { p.batch = -1; }, "batch (B) is -1");
  refused([](Problem& p) { p.batch = std::int64_t{1} << 40; }, "batch (B) is 1099511627776");
  refused([](Problem& p) { p.heads = 0; }, "heads (H) is 0");
  refused([](Problem& p) { p.heads = 65536; }, "heads (H) is 65536");
  refused([](Problem& p) { p.kv_heads = 0; }, "kv_heads (Hkv) is 0");
  refused([](Problem& p) { p.kv_heads = 3; }, "4 query heads are not a multiple of 3");
  refused([](Problem& p) { p.seq_q = -5; }, "seq_q (Sq) is -5");
  refused([](Problem& p) { p.seq_k = (std::int64_t{1} << 30) + 1; }, "seq_k (Sk) is 1073741825");
  refused([](Problem& p) { p.dim_qk = p.dim_v = 80; },
          "head dims 80/80 (Q and K / V); supported are 32, 64, 96, 128, 192, 192/128, 256",
          ErrorCode::kUnsupported);
  refused([](Problem& p) { p.dim_v = 128; }, "64/128", ErrorCode::kUnsupported);
  refused([](Problem& p) { p.dim_qk = 0; }, "0/64");
  refused([](Problem& p) { p.dtype = Dtype::kFloat32; }, "fp32", ErrorCode::kUnsupported);
  refused([](Problem& p) { p.dtype = static_cast<Dtype>(77); }, "convert to fp16, bf16 or e4m3");
  refused([=](Problem& p) { p.score.scale = nan; }, "scale is nan");
  refused([=](Problem& p) { p.score.scale = infinity; }, "scale is inf");
  refused([](Problem& p) { p.score.scale = -1e31; }, "scale is -1e+31");
  refused([=](Problem& p) { p.score.softcap = nan; }, "softcap is nan");
  refused([](Problem& p) { p.score.softcap = -1; }, "softcap is -1");
  refused([=](Problem& p) { p.score.softcap = infinity; }, "softcap is inf");
  refused([](Problem& p) { p.q0 = kMaxPosition; }, "q0 is 1073741824");
  refused([](Problem& p) { p.q0 = std::numeric_limits<std::int64_t>::min(); }, "q0 is -9223");
  refused([](Problem& p) { p.k0 = -kMaxPosition - 1; }, "k0 is -1073741825");
  refused([](Problem& p) { p.total_k = 119; },
          "total_k is 119, but the problem has keys at positions 0 to 119; give the number of keys "
          "of the whole sequence, at least 120");
  refused([](Problem& p) { p.k0 = 30, p.total_k = 149; }, "at least 150");
  refused([](Problem& p) { p.lse_base = static_cast<LseBase>(9); }, "lse_base 9");
  refused([](Problem& p) { p.want_lse = p.carry_out = true; }, "exclude each other");
  refused(
      [](Problem& p) {
        p.batch = 2147483647;
        p.heads = p.kv_heads = 65535;
        p.seq_q = p.seq_k = 1 << 29;
      },
      "Q would hold");
}

// A layout of Sq x Sk. Each of its row blocks keeps block column 0.
BlockLayout layout_of(std::int64_t seq_q, std::int64_t seq_k) {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 32;
  layout.seq_q = seq_q;
  layout.seq_k = seq_k;
  layout.indptr = {0};
  for (std::int64_t row = 0; row < layout.rows(); ++row) {
    layout.indices.push_back(0);
    layout.indptr.push_back(row + 1);
  }
  return layout;
}

TEST_CASE("a layout covers the queries and the keys of the problem, or is told that it need not") {
  struct Use {
    std::int64_t seq_q, seq_k, first_query, first_key;
  };
  const Pattern square = blocks(layout_of(120, 120));  // its last block is cut
  const Pattern wide = blocks(layout_of(20, 120));     // queries at positions 100 to 119
  const auto make = [](const Pattern& pattern, const Use& use) {
    Problem problem = good();
    problem.pattern = pattern;
    problem.seq_q = use.seq_q;
    problem.seq_k = use.seq_k;
    problem.q0 = use.first_query;
    problem.k0 = use.first_key;
    return problem;
  };
  // The whole, a chunk of a prompt, a step of a decode, a shard, and cases without pairs.
  for (const Use& use : {Use{120, 120, 0, 0}, Use{50, 100, 50, 0}, Use{1, 70, 69, 0},
                         Use{40, 40, 80, 40}, Use{0, 500, 0, 0}, Use{500, 0, 0, 0}}) {
    CHECK_NOTHROW(validate(make(square, use)));
    CHECK_NOTHROW(validate(make(causal() & ~square, use)));
  }
  CHECK_NOTHROW(validate(make(wide, {20, 120, 100, 0})));
  CHECK_NOTHROW(validate(make(wide, {1, 30, 119, 90})));
  const auto refuse = [&](const Pattern& pattern, const Use& use, const std::string& part) {
    for (const Pattern& whole : {pattern, pattern | window(8, 0), ~heads({causal(), pattern}),
                                 sum({causal(), batches({pattern, dense()})})}) {
      refused([&] { validate(make(whole, use)); }, ErrorCode::kInvalidArgument, part);
    }
  };
  refuse(
      square, {121, 121, 0, 0},
      "layout of Sq 120 x Sk 120, outside of which the problem of Sq 121 x Sk 121 has positions. "
      "Positions of the layout: queries 0 to 119, keys 0 to 119; of the problem: queries 0 to "
      "120, keys 0 to 120");
  refuse(square, {1, 120, 120, 0}, "queries 120 to 120");
  refuse(square, {100, 100, -1, 0}, "queries -1 to 98");
  refuse(square, {100, 100, 0, 21}, "keys 21 to 120");
  refuse(square, {100, 100, 0, -1}, "keys -1 to 98");
  refuse(wide, {20, 120, 99, 0},
         "queries 100 to 119, keys 0 to 119; of the problem: queries 99 to 118");
  refuse(wide, {120, 120, 0, 0}, "write blocks(\"file\", hide_outside)");
  refuse(blocks(layout_of(0, 120)), {20, 120, 100, 0}, "Positions of the layout: queries none");
  CHECK_NOTHROW(
      validate(make(blocks(layout_of(20, 120), OutsideLayout::kHidden), {500, 500, -9, 7})));
}

TEST_CASE("every wrong address or stride is named") {
  refused_memory([](Problem&, Operands& o) { o.q = nullptr; }, "Q is null");
  refused_memory([](Problem&, Operands& o) { o.k = address(0x20008); },
                 "K at 0x20008 is not a multiple of 16 bytes");
  refused_memory([](Problem&, Operands& o) { o.v = nullptr; }, "V is null");
  refused_memory([](Problem&, Operands& o) { o.o = nullptr; }, "O is null");
  refused_memory([](Problem&, Operands& o) { o.q_strides.row = 68; }, "the row stride of Q is 68");
  refused_memory([](Problem&, Operands& o) { o.k_strides.head = 65; }, "the head stride of K");
  refused_memory([](Problem&, Operands& o) { o.v_strides.batch = 1; }, "the batch stride of V");
  refused_memory([](Problem&, Operands& o) { o.q_strides.row = std::int64_t{1} << 60; },
                 "is beyond the address space");
  refused_memory(
      [](Problem&, Operands& o) { o.q_strides.row = std::numeric_limits<std::int64_t>::min(); },
      "is beyond the address space");
  refused_memory([](Problem&, Operands& o) { o.o_strides.row = 0; }, "would overlap");
  refused_memory([](Problem&, Operands& o) { o.o_strides.head = 64; }, "would overlap");
  refused_memory([](Problem&, Operands& o) { o.lse = static_cast<float*>(address(64)); },
                 "LSE is given although");
  refused_memory([](Problem& p, Operands&) { p.want_lse = true; }, "LSE is null");
  refused_memory(
      [](Problem& p, Operands& o) {
        p.want_lse = true;
        o.lse = static_cast<float*>(address(66));
      },
      "LSE at 0x42");
  refused_memory([](Problem& p, Operands&) { p.carry_out = true; }, "O is given although");
  refused_memory(
      [](Problem& p, Operands& o) {
        p.carry_out = true;
        o.o = nullptr;
      },
      "state_out.acc is null");
  refused_memory([](Problem& p, Operands&) { p.carry_in = true; }, "state_in.acc is null");
  refused_memory([](Problem&, Operands& o) { o.state_in.acc = static_cast<float*>(address(64)); },
                 "state_in.acc is given although");
}

TEST_CASE("strides that were forgotten are refused, unless one row is meant") {
  refused_memory(
      [](Problem&, Operands& o) { o.q_strides = {}; },
      "the strides of Q are 0, 0 and 0 elements for batch, head and row, so its 800 rows "
      "would be one row; give its strides, which are 25600, 64 and 256 if");
  refused_memory([](Problem&, Operands& o) { o.k_strides = {}; },
                 "the strides of K are 0, 0 and 0");
  refused_memory([](Problem&, Operands& o) { o.v_strides.row = 0; }, "the strides of V are");
  // A step of decoding has one row, but still several heads.
  refused_memory(
      [](Problem& p, Operands& o) {
        p.seq_q = 1;
        o.q_strides = {};
      },
      "the strides of Q are 0, 0 and 0");
  Problem problem = good();
  Operands operands = memory(problem);
  operands.k_strides = operands.v_strides = {};
  operands.broadcast_rows = true;
  validate(problem, operands);
  // Strides of 0 in other dims are permitted: one batch, or one head, serves all.
  operands = memory(problem);
  operands.k_strides.batch = operands.v_strides.head = 0;
  validate(problem, operands);
  problem.batch = problem.heads = problem.kv_heads = problem.seq_q = problem.seq_k = 1;
  operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides = {};
  validate(problem, operands);
}

TEST_CASE("what only e4m3 has") {
  const auto float8 = [](auto&& change) {
    return [change](Problem& p) {
      p.dtype = Dtype::kFloat8E4M3;
      change(p);
    };
  };
  Problem problem = good();
  float8([](Problem&) {})(problem);
  CHECK_NOTHROW(validate(problem));
  CHECK(problem.output_dtype() == Dtype::kBfloat16);
  problem.dtype_o = Dtype::kFloat16;
  problem.scale_blocks = {32, 128, 0};
  CHECK_NOTHROW(validate(problem));
  Operands operands = memory(problem);
  CHECK_NOTHROW(validate(problem, operands));
  operands.scale_k = static_cast<const float*>(address(0x50004));
  CHECK_NOTHROW(validate(problem, operands));

  refused([](Problem& p) { p.scale_blocks.v = 64; }, "scale_blocks.v is 64, but");
  refused(float8([](Problem& p) { p.scale_blocks.q = 48; }), "scale_blocks.q is 48 rows");
  refused(float8([](Problem& p) { p.scale_blocks.k = 16; }), "a power of two from 32");
  refused(float8([](Problem& p) { p.scale_blocks.k = -64; }), "scale_blocks.k is -64");
  refused(float8([](Problem& p) { p.dtype_o = Dtype::kFloat8E4M3; }), "take bf16 or fp16",
          ErrorCode::kUnsupported);
  refused([](Problem& p) { p.dtype_o = Dtype::kFloat32; }, "O as fp32", ErrorCode::kUnsupported);
  refused(float8([](Problem& p) { p.dim_qk = p.dim_v = 32; }), "from 64 on, not 32/32",
          ErrorCode::kUnsupported);
  refused_memory([](Problem&, Operands& o) { o.scale_q = static_cast<const float*>(address(64)); },
                 "scale_q is given although only e4m3");
  refused_memory(
      [&](Problem& p, Operands& o) {
        float8([](Problem&) {})(p);
        o.scale_v = static_cast<const float*>(address(66));
      },
      "scale_v at 0x42");
  refused_memory(
      [&](Problem& p, Operands& o) {
        float8([](Problem&) {})(p);
        o.q_strides.row += 8;
      },
      "it must be a multiple of 16");
  refused_memory(
      [&](Problem& p, Operands& o) {
        float8([](Problem&) {})(p);
        o.o = const_cast<void*>(o.q);
      },
      "Q is e4m3 and O bf16");
}

TEST_CASE("O may be Q with the same strides, and nothing else") {
  const Problem problem = good();
  Operands operands = memory(problem);
  operands.o = const_cast<void*>(operands.q);
  operands.o_strides = operands.q_strides;
  CHECK_NOTHROW(validate(problem, operands));
  refused_memory(
      [](Problem&, Operands& o) {
        o.o = const_cast<void*>(o.q);
        o.o_strides = {o.q_strides.batch * 2, o.q_strides.head, o.q_strides.row * 2};
      },
      "overwrite other rows of Q");
  // O alone would be legal, but the rows of Q are longer than the rows of O.
  refused_memory(
      [](Problem& p, Operands& o) {
        p.dim_qk = 192;
        p.dim_v = 128;
        o.o = const_cast<void*>(o.q);
        o.q_strides = o.o_strides = Strides::bshd(p.seq_q, p.heads, p.dim_v);
        o.k_strides = Strides::bshd(p.seq_k, p.kv_heads, p.dim_qk);
        o.v_strides = Strides::bshd(p.seq_k, p.kv_heads, p.dim_v);
      },
      "of Q is 128 elements, less than the 192");
  refused_memory([](Problem&, Operands& o) { o.o = const_cast<void*>(o.k); }, "O and K are both");
  refused_memory([](Problem&, Operands& o) { o.o = const_cast<void*>(o.v); }, "O and V are both");
}

TEST_CASE("memory that is written begins where nothing else does") {
  Problem problem = good();
  problem.want_lse = problem.carry_in = true;
  Operands operands = memory(problem);
  alignas(16) static float state[3][16];
  alignas(16) static float other[3][16];
  operands.lse = other[0];
  operands.state_in = {state[0], state[1], state[2]};
  REQUIRE_NOTHROW(validate(problem, operands));
  const auto wrong = [&](const std::string& part) {
    refused([&] { validate(problem, operands); }, ErrorCode::kInvalidArgument, part);
  };
  for (const void* taken : {operands.q, operands.k, operands.v}) {
    operands.lse = static_cast<float*>(const_cast<void*>(taken));
    wrong("LSE and ");
  }
  operands.lse = static_cast<float*>(operands.o);
  wrong("O and LSE are both at");
  operands.lse = state[2];
  wrong("LSE and state_in.l are both at");

  problem.want_lse = false;
  problem.carry_out = true;
  operands.lse = nullptr;
  operands.o = nullptr;
  operands.state_out = operands.state_in;  // in place
  CHECK_NOTHROW(validate(problem, operands));
  operands.state_out.m = operands.state_in.l;
  wrong("state_out.m and state_in.l are both at");
  operands.state_out = {other[0], other[1], other[1]};
  wrong("state_out.m and state_out.l are both at");
  operands.state_out = {static_cast<float*>(const_cast<void*>(operands.k)), other[1], other[2]};
  wrong("state_out.acc and K are both at");
  problem.seq_k = 0;  // then there is no K
  CHECK_NOTHROW(validate(problem, operands));
}

TEST_CASE("inputs may be broadcast and run backwards; strides of single steps do not matter") {
  Problem problem = good();
  Operands operands = memory(problem);
  operands.k_strides.batch = 0;
  operands.q_strides.row = -operands.q_strides.row;
  CHECK_NOTHROW(validate(problem, operands));
  problem.batch = 1;
  operands.o_strides.batch = 3;
  CHECK_NOTHROW(validate(problem, operands));
}

}  // namespace
