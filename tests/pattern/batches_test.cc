// batches(...): the definition, the trees of single batches, and rejected expressions.

#include "pattern/batches.h"

#include <doctest/doctest.h>

#include "base/random.h"
#include "pattern/classify.h"
#include "pattern/random_pattern.h"
#include "support/options.h"

namespace annulus::pattern {
namespace {

using base::Random;
using test::between;
using test::code_of;

// A random tree with batches(...) wherever a tree is permitted, even inside each other.
Pattern random_batches(Random* random, int depth,
                       const std::shared_ptr<const BlockLayout>& layout) {
  const auto inner = [&] {
    return depth > 1 && random->below(3) == 0 ? random_batches(random, depth - 1, layout)
                                              : test::random_pattern(random, 3, layout);
  };
  const Pattern a = inner(), b = inner(), c = inner();
  const Pattern turns = random->below(2) == 0 ? batches({a, b}) : batches({a, b, c});
  switch (random->below(5)) {
    case 0:
      return ~turns;
    case 1:
      return turns & inner();
    case 2:
      return inner() | turns;
    case 3:
      return heads({inner(), turns});
    default:
      return turns;
  }
}

std::shared_ptr<const BlockLayout> layout_for(Random* random) {
  return std::make_shared<const BlockLayout>(
      test::random_layout(random, between(random, 0, 60), between(random, 0, 80)));
}

TEST_CASE("batches take turns, and stand where heads may") {
  const Pattern turns = batches({causal(), dense(), sink(2)});
  const auto sees = [&](std::int64_t batch) { return turns.visible(0, 3, 5, {.batch = batch}); };
  for (const std::int64_t batch : {0, 2, 3, 5, 300}) CHECK_FALSE(sees(batch));
  for (const std::int64_t batch : {1, 4, 301}) CHECK(sees(batch));
  CHECK(turns.batches() == 3);
  CHECK(turns.distinct_batches(2) == 2);
  CHECK(turns.distinct_batches(100) == 3);
  CHECK(causal().batches() == 1);
  CHECK(causal().distinct_batches(9) == 1);
  CHECK(batches({causal()}) == causal());
  CHECK_FALSE(batches({causal(), dense()}) == heads({causal(), dense()}));
  CHECK_FALSE(batches({causal(), dense()}) == batches({dense(), causal()}));

  CHECK(turns.of_batch(4) == dense());
  CHECK(heads({turns, sink(1)}).of_batch(0) == heads({causal(), sink(1)}));
  CHECK((~turns & window(3, 0)).of_batch(5) == (~sink(2) & window(3, 0)));
  CHECK(batches({heads({causal(), dense()}), sink(1)}).of_batch(2) == heads({causal(), dense()}));
  CHECK(sum({turns, sink(4)}).of_batch(1) == sum({dense(), sink(4)}));
  CHECK(causal().of_batch(-7) == causal());
  // Two batches() next to each other repeat after 6 batches. Nested ones select by the same batch.
  const Pattern both = batches({causal(), dense()}) & turns;
  CHECK(both.batches() == 6);
  CHECK(both.of_batch(5) == (dense() & sink(2)));
  const Pattern nested = batches({batches({causal(), sink(1)}), dense()});
  CHECK(nested.batches() == 2);
  CHECK(nested.of_batch(2) == causal());  // never sink(1): batches 0, 2, ... are even
  // If a batch's child is a chain of the same operator, it becomes a part of the chain.
  CHECK((batches({causal() & sink(3), dense()}) & window(1, 1)).of_batch(0) ==
        (causal() & sink(3) & window(1, 1)));
}

TEST_CASE("batches print as what parses back") {
  for (const char* text :
       {"batches(causal, window(64, 0))", "~batches(causal | sink(1), dense)",
        "heads(batches(causal, dense), sink(2)) & keys(0, 9)",
        "batches(heads(causal, dense), head_groups(2, causal, dense), sink(1))",
        "sum(batches(causal, dense), sink(2))", "batches(batches(causal, dense), every(4, 1))"}) {
    CAPTURE(text);
    const Pattern pattern = Pattern::parse(text);
    CHECK(pattern.to_string() == text);
    CHECK(Pattern::parse(pattern.to_string()) == pattern);
  }
  CHECK(Pattern::parse("batches(causal)") == causal());
  Random random(test::seed_of(71));
  for (int i = 0; i < 300; ++i) {
    const Pattern pattern = random_batches(&random, 3, nullptr);
    CHECK(Pattern::parse(pattern.to_string()) == pattern);
  }
}

TEST_CASE("wrong batches are refused with a reason") {
  const auto refused = [](const std::string& text, const char* part) {
    CAPTURE(text);
    std::string message;
    CHECK(code_of([&] { Pattern::parse(text); }, &message) == ErrorCode::kParse);
    CHECK(message.find(part) != std::string::npos);
  };
  refused("batches()", "column 9: expected a pattern");
  refused("batches", "expected '('");
  refused("batches(causal, )", "column 17: expected a pattern");
  refused("batches(causal dense)", "')'");
  refused("batches(2, causal, dense)", "expected a pattern");
  refused("batch(causal)", "did you mean 'batches'");
  refused("batches(dense, sum(causal, dense))", "inside batches(...)");
  std::string deep, closing;
  for (int i = 0; i < 5000; ++i) {
    deep += "batches(causal, ";
    closing += ")";
  }
  refused(deep + "causal" + closing, "deeper than 64");
  std::string wide = "batches(causal";
  for (int i = 0; i < 1024; ++i) wide += ", causal";
  refused(wide + ")", "1025 leaves");

  std::string message;
  CHECK(code_of([] { batches(std::span<const Pattern>()); }, &message) ==
        ErrorCode::kInvalidArgument);
  CHECK(message.find("batches() has no arguments") != std::string::npos);
  // 61 x 67 = 4087 batches can be distinguished, but 64 x 67 cannot.
  const auto of = [](int count) {
    return batches(std::vector<Pattern>(static_cast<std::size_t>(count), causal()));
  };
  CHECK((of(61) & of(67)).batches() == 4087);
  CHECK(code_of([&] { of(64) & of(67); }, &message) == ErrorCode::kInvalidArgument);
  CHECK(message.find("4288 different batches") != std::string::npos);

  const Pattern turns = batches({causal(), dense()});
  for (const auto& action : std::vector<std::function<void()>>{
           [&] { turns.visible(0, 1, 1); }, [&] { turns.visible(0, 1, 1, {.batch = -2}); },
           [&] { turns.of_batch(-1); }, [&] { Evaluator{turns}; },
           [&] { Classifier(turns, Extent::whole(9, 9), 4, 4); },
           [&] { visible_pairs(turns, 0, Extent::whole(9, 9)); },
           [&] { make_layout(turns, Extent::whole(9, 9), 4, 4); }}) {
    message.clear();
    CHECK(code_of(action, &message) == ErrorCode::kInvalidArgument);
    CHECK(message.find("needs the number of the batch") != std::string::npos);
  }
}

TEST_CASE("trees of single batches see what the definition says, by rows, blocks and counts") {
  Random random(test::seed_of(72));
  for (int i = 0; i < 500; ++i) {
    const Pattern pattern = random_batches(&random, 3, layout_for(&random));
    CAPTURE(pattern.to_string());
    const Extent extent = {between(&random, 1, 40), between(&random, 1, 50),
                           between(&random, -20, 40), between(&random, -20, 20)};
    PatternContext context = {.seq_k = between(&random, 0, 90), .layer = 2};
    context.batch = random.below(13);
    const std::int64_t head = random.below(4);
    const Pattern one = pattern.of_batch(context.batch);
    CHECK(one.batches() == 1);
    CHECK(one.distinct_heads(60) <= pattern.distinct_heads(60));
    Evaluator evaluator(pattern, context);
    const std::int64_t size = between(&random, 3, 16);
    Classifier classifier(pattern, Placement::of(extent, context), size, size);
    std::vector<std::uint8_t> row(static_cast<std::size_t>(extent.seq_k));
    std::vector<int> seen(static_cast<std::size_t>(classifier.columns()));
    std::int64_t pairs = 0;
    for (std::int64_t q = 0; q < extent.seq_q; ++q) {
      const std::int64_t at = extent.q_position + q;
      visible_row(&evaluator, head, at, extent.k_position, extent.seq_k, row.data());
      if (q % size == 0) std::fill(seen.begin(), seen.end(), 0);
      for (std::int64_t k = 0; k < extent.seq_k; ++k) {
        const bool sees = pattern.visible(head, at, extent.k_position + k, context);
        if (sees != one.visible(head, at, extent.k_position + k, context) ||
            sees != (row[static_cast<std::size_t>(k)] == 1)) {
          FAIL("batch " << context.batch << " head " << head << " q " << at << " row of K " << k);
        }
        seen[static_cast<std::size_t>(k / size)] += sees;
        pairs += sees;
      }
      if ((q + 1) % size != 0 && q + 1 != extent.seq_q) continue;
      std::vector<int> found(seen.size(), 0);  // 1 partial, 2 full
      for (const BlockRun& run : classifier.row(head, q / size)) {
        for (std::int64_t c = run.begin; c < run.end; ++c) {
          found[static_cast<std::size_t>(c)] = run.partial ? 1 : 2;
        }
      }
      for (std::int64_t c = 0; c < classifier.columns(); ++c) {
        const auto all = (q % size + 1) * (std::min((c + 1) * size, extent.seq_k) - c * size);
        const int count = seen[static_cast<std::size_t>(c)];
        CHECK(found[static_cast<std::size_t>(c)] == (count == 0 ? 0 : count < all ? 1 : 2));
      }
    }
    CHECK(visible_pairs(pattern, head, extent, context) == pairs);
  }
}

TEST_CASE("batches that see the same are found") {
  const Pattern turns = batches({causal(), sink(3), causal(), causal()});
  BatchPatterns seen = batch_patterns(turns, 9);
  CHECK(seen.patterns == std::vector<Pattern>{causal(), sink(3)});
  CHECK(seen.of_batch == std::vector<std::int32_t>{0, 1, 0, 0});
  CHECK(batch_patterns(turns, 2).of_batch == std::vector<std::int32_t>{0, 1});
  // A problem without batches still has one pattern, for which lists are made.
  CHECK(batch_patterns(turns, 0).patterns == std::vector<Pattern>{causal()});
  CHECK(batch_patterns(causal(), 5).of_batch == std::vector<std::int32_t>{0});
  CHECK(for_batches(turns, 1) == causal());
  CHECK(for_batches(turns, 2) == turns);
  CHECK(for_batches(batches({dense(), dense()}), 7) == dense());
}

}  // namespace
}  // namespace annulus::pattern
