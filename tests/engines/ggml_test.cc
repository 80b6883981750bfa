// The call shape of ggml_flash_attn_ext. The names of the test cases are the rows of
// docs/engines.md.

#include <doctest/doctest.h>

#include <cmath>

#include "engines/engine_call.h"

namespace annulus::test::ggml {
namespace {

// Shapes are written with the outermost dimension first. ggml's ne[] begins with the innermost.
// There are two streams (ne[3]) of 3 tokens each. The cache has room for 128 tokens, and the graph
// uses 64 of them (n_kv).
constexpr std::int64_t kTokens = 3;
constexpr std::int64_t kRoom = 128;

std::vector<Request> streams() { return {{kTokens, 40, 0, 1}, {kTokens, 33, 0, 2}}; }

// A layer's cache is [streams, room, Hkv * D]. k and v are views of it with ne {D, n_kv, Hkv,
// streams}. Their nb[1], nb[2] and nb[3] are the bytes from row to row, head to head, and stream to
// stream.
void give_cache(EngineCall& call) {
  Tensor k({2, kRoom, 2, 64}), v({2, kRoom, 2, 64});
  const auto at = [&](std::size_t r, std::int64_t key, std::int64_t head) {
    return k.offset({static_cast<std::int64_t>(r), key, head});
  };
  call.write_k(&k, at);
  call.write_v(&v, at);
  call.operands.k = call.put(k);
  call.operands.v = call.put(v);
  const std::int64_t nb1 = k.stride(1) * 2, nb2 = k.stride(2) * 2, nb3 = k.stride(0) * 2;
  call.operands.k_strides = {nb3 / 2, nb1 / 2, nb2 / 2};
  call.operands.v_strides = call.operands.k_strides;
  call.metadata.k_length = call.put(call.lengths());
}

TEST_CASE("ggml: q") {
  EngineCall call(streams(), 0);
  give_cache(call);
  // The shape ne {D, tokens, H, streams} is a view of [streams, tokens, H, D].
  Tensor q({2, kTokens, 4, 64});
  call.write_q(&q, [&](std::size_t r, std::int64_t row, std::int64_t head) {
    return q.offset({static_cast<std::int64_t>(r), row, head});
  });
  const std::int64_t nb1 = q.stride(1) * 2, nb2 = q.stride(2) * 2, nb3 = q.stride(0) * 2;
  CHECK(nb3 == kTokens * nb1);  // the rows of streams are consecutive
  call.operands.q = call.put(q);
  call.operands.q_strides = {nb1 / 2, nb2 / 2};
  call.check();
}

TEST_CASE("ggml: k, v") {
  EngineCall call(streams(), 0);
  give_cache(call);
  call.check();
}

TEST_CASE("ggml: k, v of a quantised type") {
  EngineCall call(streams(), 0);
  call.problem.dtype = Dtype::kFloat8E4M3;
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

TEST_CASE("ggml: mask, causal, padded") {
  // The cells are in the order of their positions. Cells after the last are masked, up to n_kv.
  EngineCall call(streams(), 0);
  give_cache(call);
  call.problem.most.keys_of_one = 64;  // n_kv
  call.problem.most.keys = 0;
  call.check();
}

TEST_CASE("ggml: mask, sliding window") {
  EngineCall call(streams(), 0);
  give_cache(call);
  call.problem.pattern = Pattern::parse("causal & window(20, 0)");
  call.check();
}

TEST_CASE("ggml: mask of any other kind") {
  EngineCall call(streams(), 0);
  call.problem.pattern = Pattern::parse("causal & every(3, 0)");
  CHECK(call.refused() == ErrorCode::kUnsupported);
}

TEST_CASE("ggml: scale, logit_softcap") {
  EngineCall call(streams(), 0);
  give_cache(call);
  call.problem.score = all_scores();
  call.check();
}

TEST_CASE("ggml: max_bias") {
  EngineCall call(streams(), 0);
  give_cache(call);
  call.problem.score = all_scores();
  // With max_bias 8 and 4 heads, head h has the slope 2^(-8 (h + 1) / 4).
  call.problem.score.alibi.clear();
  for (int head = 0; head < 4; ++head) {
    call.problem.score.alibi.push_back(std::exp2(-8.0 * (head + 1) / 4));
  }
  call.check();
}

TEST_CASE("ggml: sinks") {
  EngineCall call(streams(), 0);
  give_cache(call);
  call.problem.score = all_scores();
  call.check();
}

TEST_CASE("ggml: res") {
  EngineCall call(streams(), 0);
  give_cache(call);
  const Tensor res({2, kTokens, 4, 64});  // ne {D, H, tokens, streams}, contiguous
  call.expect_o(res, [res](std::size_t r, std::int64_t row, std::int64_t head) {
    return res.offset({static_cast<std::int64_t>(r), row, head});
  });
  call.operands.o_strides = {res.stride(1), res.stride(2)};
  call.check();
}

}  // namespace
}  // namespace annulus::test::ggml
