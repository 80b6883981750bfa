#include "tuned/shape_key.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "annulus/types.h"
#include "support/random_problem.h"
#include "tuned/batch_key.h"

namespace annulus::tuned {
namespace {

Problem problem(std::int64_t seq, const char* pattern = "causal") {
  Problem made;
  made.heads = 8;
  made.kv_heads = 2;
  made.seq_q = made.seq_k = seq;
  made.dim_qk = made.dim_v = 64;
  made.pattern = Pattern::parse(pattern);
  return made;
}

TEST_CASE("problems that differ little share a key, others do not") {
  const ShapeKey key = shape_key(problem(4096));
  CHECK(to_string(key) ==
        "D64 bf16, causal, 0.42 to 0.59 of the blocks, group 4, queries 3445 to 4870, keys 3445 to "
        "4870, heads 6 to 11");
  CHECK(kind_text(key) == "D64 bf16, causal, about 0.5 of the blocks");
  CHECK(kind_text(shape_key(problem(4096, "dense"))) == "D64 bf16, dense");
  CHECK(shape_key(problem(4000)) == key);
  CHECK(shape_key(problem(4700)) == key);
  CHECK(shape_key(problem(5000)) != key);
  Problem other = problem(4096);
  other.want_lse = true;
  other.q0 = 17;
  other.k0 = 17;
  CHECK(shape_key(other) == key);  // properties that do not affect the speed

  std::vector<Problem> all(11, problem(4096));
  all[0].dim_qk = all[0].dim_v = 128;
  all[1].dtype = Dtype::kFloat16;
  all[2].kv_heads = 8;
  all[3].carry_in = true;
  all[4].carry_out = true;
  all[5].score.softcap = 3;
  all[6].score.scale = -1.0;
  all[7].seq_q = 1;
  all[8].batch = 2;
  all[9].pattern = window(127, 0) & causal();
  all[10].score = Score::parse("score_mod(score + 1)");
  std::set<ShapeKey> keys = {key};
  std::set<std::string> texts = {to_string(key)}, digests = {digest(key).hex()};
  for (const Problem& each : all) {
    keys.insert(shape_key(each));
    texts.insert(to_string(shape_key(each)));
    digests.insert(digest(shape_key(each)).hex());
  }
  CHECK(keys.size() == all.size() + 1);
  CHECK(texts.size() == keys.size());
  CHECK(digests.size() == keys.size());
}

TEST_CASE("score expressions are classed by what they cost") {
  const auto class_of = [](const std::string& expression) {
    Problem made = problem(512);
    made.score = Score::parse("score_mod(" + expression + ")");
    return shape_key(made).expression;
  };
  CHECK(shape_key(problem(512)).expression == ExpressionClass::kNone);
  CHECK(class_of("score + 0.5 * (k - q)") == ExpressionClass::kShort);
  CHECK(class_of("score + 0.25 * (k - q)") == ExpressionClass::kShort);
  std::string some = "score", many = "score";
  for (int i = 0; i < 2; ++i) some = "tanh(" + some + ")";
  for (int i = 0; i < 8; ++i) many = "tanh(" + many + ")";
  CHECK(class_of(some) == ExpressionClass::kLoop);
  CHECK(class_of(many) == ExpressionClass::kLong);
}

TEST_CASE("patterns are classed by what a partial tile costs") {
  CHECK(shape_key(problem(512, "dense")).pattern == PatternClass::kDense);
  CHECK(shape_key(problem(512, "causal")).pattern == PatternClass::kCausal);
  CHECK(shape_key(problem(512, "causal & window(64,0)")).pattern == PatternClass::kPositions);
  CHECK(shape_key(problem(512, "dilated(3)")).pattern == PatternClass::kLists);
  CHECK(shape_key(problem(512, "causal | natten(9,9,3)")).pattern == PatternClass::kLists);
  CHECK(shape_key(problem(512, "causal | global([3])")).pattern == PatternClass::kPositions);
  CHECK(shape_key(problem(512, "dense")).density == 0);
  CHECK(shape_key(problem(512, "~dense")).density == kNoBlocks);
  CHECK(shape_key(problem(8192, "window(127,127)")).density == 9);  // 3 blocks of 64 in a row
}

TEST_CASE("any problem has a key, and equal keys have equal texts") {
  for (std::uint64_t index = 0; index < 300; ++index) {
    const Problem each = test::random_problem(5, index);
    const ShapeKey key = shape_key(each);
    CHECK(key == shape_key(each));
    CHECK(key.branches == static_cast<int>(each.pattern.branches().size()));
    CHECK(key.density >= 0);
    CHECK(key.density <= kNoBlocks);
    CHECK(key.queries >= 0);
    CHECK(key.heads >= 0);
  }
}

TEST_CASE("a sum has a key of its own, by what its branches are together") {
  const ShapeKey key = shape_key(problem(4096, "sum(causal, dense)"));
  CHECK(kind_text(key) == "D64 bf16, sum of 2, causal, about 0.71 of the blocks");
  CHECK(key.density == 1);  // the mean of 1/2 and 1
  CHECK(shape_key(problem(4096, "sum(dense, causal)")) == key);
  CHECK(shape_key(problem(4096, "sum(causal, dilated(9))")).pattern == PatternClass::kLists);
  const ShapeKey three = shape_key(problem(4096, "sum(causal, dense, dense)"));
  CHECK(three.branches == 3);
  CHECK(shape_key(problem(4096, "sum(dense, dense)")).density == 0);
  ShapeKey alone = key;
  alone.branches = 1;
  for (const ShapeKey& other : {three, alone}) {
    CHECK(other != key);
    CHECK(digest(other) != digest(key));
    CHECK_FALSE(length_distance(key, other));
  }
  CHECK(why_other_kind(alone, key) == "a pattern that is not a sum, not a sum of 2");
  // The keys of entries for other patterns are unchanged.
  CHECK(digest(shape_key(problem(4096))).hex() == "e83f0b9a30ce1993599e0f95731b81f8");
}

TEST_CASE("requests of batches have keys of their own, by the bounds alone") {
  BatchProblem batch;
  batch.heads = 8;
  batch.kv_heads = 2;
  batch.dim_qk = batch.dim_v = 64;
  batch.pattern = causal();
  batch.page_rows = 32;
  batch.most = {.requests = 16, .rows = 400, .rows_of_one = 64, .keys_of_one = 8192};
  using batch::RequestClass;
  CHECK(classes_within(batch) ==
        std::vector{RequestClass::kFewQueries, RequestClass::kManyQueries});
  const ShapeKey few = shape_key(batch, RequestClass::kFewQueries);
  const ShapeKey many = shape_key(batch, RequestClass::kManyQueries);
  CHECK(kind_text(few) == "D64 bf16, requests of few queries, pages of a multiple of 16, causal");
  CHECK(few.heads == 7);
  CHECK(few.keys == 26);
  CHECK(few != many);
  CHECK(why_other_kind(many, few) ==
        "requests of many queries, pages of a multiple of 16, not requests of few queries, pages "
        "of a multiple of 16");
  BatchProblem other = batch;
  other.most.keys = 16 * 1024;  // a pool with less room
  CHECK(shape_key(other, RequestClass::kFewQueries).keys == 20);
  other = batch;
  other.page_rows = 128;
  CHECK(digest(shape_key(other, RequestClass::kFewQueries)) != digest(few));
  other = batch;
  other.most.rows_of_one = 16;
  CHECK(classes_within(other) == std::vector{RequestClass::kFewQueries});
  other.block_keys = 64;
  other.max_blocks = 8;
  CHECK(kind_text(shape_key(other, RequestClass::kFewQueries)).find("blocks of 64 keys") !=
        std::string::npos);
}

TEST_CASE("only lengths may differ, and they are counted in half powers of two") {
  const ShapeKey key = shape_key(problem(4096));
  ShapeKey other = key;
  CHECK(length_distance(key, other) == 0);
  other.queries += 3;
  other.keys -= 2;
  CHECK(length_distance(key, other) == 5);
  other.heads += 1;
  CHECK_FALSE(length_distance(key, other));
  other = key;
  other.density += 1;
  CHECK_FALSE(length_distance(key, other));
}

}  // namespace
}  // namespace annulus::tuned
