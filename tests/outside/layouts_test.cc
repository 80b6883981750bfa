// Block layouts through the public interface: all operations, and every format in both directions.
#include "annulus/layout.h"
#include "annulus/types.h"
#include "outside/outside.h"

namespace {

using namespace annulus;

constexpr LayoutSizes kSizes = {32, 32, 256, 256, 2};

TEST_CASE("layouts of a pattern: on the host, on the device, from the cache, in a file") {
  const test::ScratchFolder scratch;
  const Pattern pattern = causal() & window(100, 0);
  const BlockLayout made = make_layout(pattern, kSizes);
  CHECK(make_layout(test::device(), pattern, kSizes) == made);
  const LayoutView view = made;
  REQUIRE_NOTHROW(view.validate());
  REQUIRE_NOTHROW(view.validate_sizes());
  CHECK(view.rows() == 8);
  CHECK(view.columns() == 8);
  CHECK(view.row(0, 0).size() == 1);
  CHECK(view.partial_row(0, 0).size() == 1);
  CHECK(copy(view) == made);
  CHECK(sizes_of(view).block_rows == 32);
  CHECK(block_density(view).value == doctest::Approx(statistics(view).block_density.value));
  const PatternStatistics of_pattern = statistics(pattern, kSizes);
  CHECK(of_pattern.overhead > 1);
  CHECK(of_pattern.layout.kept == statistics(view).kept);
  save_layout(view, scratch.path("a.layout"));
  CHECK(copy(MappedLayout(scratch.path("a.layout")).view()) == made);

  LayoutCache cache;
  const LayoutQuery query(pattern, 32, 32);
  const auto first = cache.get(query, 256, 256);
  CHECK(cache.get(query, 256, 256) == first);
  CHECK(!query.key(256, 256).empty());
  CHECK(cache.counters().hits == 1);
  cache.clear();
  CHECK(cache.counters().entries == 0);
  CHECK(text_picture(view).find('\n') != std::string::npos);
  CHECK(svg_picture(view).find("<svg") != std::string::npos);
}

TEST_CASE("a scope bounds calls that take no limit") {
  // One row of 2^24 columns with no kept blocks. Its transpose has 2^24 rows.
  const BlockLayout wide = {.block_rows = 16,
                            .block_columns = 16,
                            .seq_q = 16,
                            .seq_k = std::int64_t{1} << 28,
                            .heads = 1,
                            .indptr = {0, 0},
                            .indices = {},
                            .partial = {}};
  const WorkScope scope({.steps = 1'000'000});
  CHECK_THROWS_WITH_AS(transpose(wide), doctest::Contains("WorkScope"), Error);
  CHECK(scope.steps() < 1'000'000);
}

TEST_CASE("layouts have an algebra") {
  const LayoutSizes one = {32, 32, 256, 256, 1};
  const BlockLayout lower = make_layout(causal(), one), near = make_layout(window(40, 40), one);
  const BlockLayout either = unite(lower, near), both = intersect(lower, near);
  CHECK(copy(unite(both, subtract(lower, near))).indices == lower.indices);
  CHECK(difference(either, either).only_first == 0);
  CHECK(difference(either, both).only_first > 0);
  CHECK(transpose(transpose(lower)).indices == lower.indices);
  CHECK(reblock(lower, 64, 64).rows() == 4);
  const Segment half[] = {{0, 128}};
  CHECK(slice(lower, half, half).seq_q == 128);
  // There are 64 blocks. A quarter of them is 16. With 0.2 the result is 13.3, rounded to 13.
  CHECK(block_density(with_density(lower, {0.25})).value == 0.25);
  CHECK(block_density(with_density(near, {0.2}, lower)).value == 13.0 / 64);
  CHECK(reachability(near, 8).back() == doctest::Approx(1.0));
  const BlockLayout heads_differ = make_layout(heads({causal(), dense()}), kSizes);
  CHECK(head_of(heads_differ, 1).indices.size() == 64);
  CHECK(share_heads(part_heads(heads_differ)).indices == share_heads(heads_differ).indices);
}

TEST_CASE("every format holds a layout: there and back is the same") {
  const test::ScratchFolder scratch;
  const BlockLayout made = make_layout(random(3, 1, 32) | window(20, 0), kSizes);
  const auto kept = [&](const BlockLayout& other) {
    return difference(made, other).only_first + difference(made, other).only_second;
  };
  CHECK(kept(from_mask(kSizes, to_mask(made))) == 0);
  const BitsetArrays bits = to_bitset(made);
  CHECK(kept(from_bitset(kSizes, bits.kept, bits.partial)) == 0);
  const CsrArrays csr = to_csr(made);
  CHECK(kept(from_csr(kSizes, csr.indptr, csr.indices, csr.partial)) == 0);
  const std::vector<std::int32_t> narrow(csr.indptr.begin(), csr.indptr.end());
  CHECK(kept(from_csr(kSizes, narrow, csr.indices, csr.partial)) == 0);
  const CooArrays coo = to_coo(made);
  CHECK(kept(from_coo(kSizes, coo.heads, coo.rows, coo.columns, coo.partial)) == 0);
  const TopKArrays topk = to_topk(made);
  CHECK(kept(from_topk(kSizes, topk.k, topk.indices, topk.partial)) == 0);
  const FlexArrays flex = to_flex(made);
  CHECK(kept(from_flex(kSizes, flex.kv_num_blocks, flex.kv_indices, flex.full_kv_num_blocks,
                       flex.full_kv_indices)) == 0);

  const LayoutSizes one = {32, 32, 256, 256, 1};
  const BlockLayout lower = make_layout(block_dilated(2, 32), one);
  const FlashInferArrays pages = to_flashinfer(lower);
  CHECK(from_flashinfer(one, pages.indptr, pages.indices).layout.indices == lower.indices);
  CHECK(exact_layout(lower, std::vector<std::uint8_t>(lower.indices.size() * 32 * 32, 1)).indices ==
        lower.indices);

  const Pattern lines = vertical_slash({1, 9}, {0, 17});
  const VerticalSlashArrays arrays = to_vertical_slash(lines, 1);
  CHECK(from_vertical_slash(arrays.heads, arrays.verticals, arrays.slashes).visible(0, 40, 9));

  CHECK(layout_format("csr") == LayoutFormat::kCsr);
  CHECK(std::string(to_string(LayoutFormat::kNpy)) == "npy");
  export_layout(made, scratch.path("mask.npy"), LayoutFormat::kNpy);
  CHECK(kept(import_layout(scratch.path("mask.npy"), LayoutFormat::kNpy, kSizes)) == 0);
}

}  // namespace
