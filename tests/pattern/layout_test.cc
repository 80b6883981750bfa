#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "pattern/layout_file.h"
#include "pattern/random_pattern.h"
#include "support/faulty_files.h"
#include "support/options.h"

namespace annulus::pattern {
namespace {

using base::Random;
using test::code_of;

// A layout of 3 x 4 blocks of 2 x 3 over 5 x 10, with one head.
BlockLayout small() {
  return {.block_rows = 2,
          .block_columns = 3,
          .seq_q = 5,
          .seq_k = 10,
          .heads = 1,
          .indptr = {0, 2, 2, 5},
          .indices = {0, 3, 1, 2, 3},
          .partial = {}};
}

void refused(const BlockLayout& layout, const std::string& part) {
  std::string message;
  CHECK(code_of([&] { layout.validate(); }, &message) == ErrorCode::kInvalidArgument);
  CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  CHECK(code_of([&] { blocks(layout); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("a layout counts its blocks, ragged ones included") {
  const BlockLayout layout = small();
  layout.validate();
  CHECK(layout.rows() == 3);
  CHECK(layout.columns() == 4);
  CHECK(layout.row(0, 1).empty());
  CHECK(layout.row(0, 2).size() == 3);
  CHECK(block_density(layout).value == doctest::Approx(5.0 / 12.0));
  CHECK(BlockLayout{}.rows() == 0);
  CHECK(block_density(BlockLayout{}).value == 0.0);
}

TEST_CASE("an explicit layout is aligned as its own problem was, and ends where it ends") {
  const Pattern pattern = blocks(small());  // row 0 is at position 10 - 5
  CHECK(pattern.visible(0, 5, 0));
  CHECK(pattern.visible(0, 6, 2));
  CHECK_FALSE(pattern.visible(0, 6, 3));
  CHECK(pattern.visible(0, 6, 9));
  CHECK_FALSE(pattern.visible(0, 7, 0));
  CHECK(pattern.visible(0, 9, 3));
  CHECK_FALSE(pattern.visible(0, 4, 0));
  CHECK_FALSE(pattern.visible(0, 10, 9));
  CHECK_FALSE(pattern.visible(0, 9, 10));
  CHECK_FALSE(pattern.visible(0, 9, -1));
  CHECK_FALSE(pattern.visible(0, INT64_MIN, 3));
}

TEST_CASE("a layout of many heads keeps them apart") {
  BlockLayout layout = small();
  layout.heads = 2;
  layout.indptr = {0, 2, 2, 5, 5, 6, 6};
  layout.indices.push_back(1);
  layout.validate();
  const Pattern pattern = blocks(layout);
  CHECK(pattern.visible(0, 5, 0));
  CHECK_FALSE(pattern.visible(1, 5, 0));
  CHECK(pattern.visible(1, 7, 4));
}

TEST_CASE("heads may share their blocks") {
  BlockLayout layout = small();
  layout.heads = 2;
  layout.indptr = {0, 2, 2, 5, 5, 6, 6};
  layout.indices.push_back(1);
  layout.head_map = {1, 0, 1};
  layout.validate();
  CHECK(layout.query_heads() == 3);
  CHECK(layout.distinct_head(2) == 1);
  CHECK(block_density(layout).value == doctest::Approx((1 + 5 + 1) / 36.0));
  const Pattern pattern = blocks(layout);
  CHECK(pattern.heads() == 3);
  CHECK_FALSE(pattern.visible(0, 5, 0));
  CHECK(pattern.visible(1, 5, 0));
  CHECK(pattern.visible(2, 7, 4));
  CHECK(code_of([&] { pattern.visible(3, 5, 0); }) == ErrorCode::kInvalidArgument);
  BlockLayout one = small();
  one.head_map = {0};  // one query head, or any number of them
  CHECK(one.query_heads() == 1);
  CHECK(blocks(one).visible(7, 5, 0));
}

TEST_CASE("the first bad entry is named") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto changed = [](const std::function<void(BlockLayout&)>& change) {
    BlockLayout layout = small();
    change(layout);
    return layout;
  };
  refused(changed([](auto& l) { l.block_rows = 0; }), "R is 0");
  refused(changed([](auto& l) { l.block_columns = -4; }), "C is -4");
  refused(changed([&](auto& l) { l.block_rows = most; }), "R is");
  refused(changed([](auto& l) { l.seq_q = -1; }), "Sq is -1");
  refused(changed([&](auto& l) { l.seq_k = most; }), "Sk is");
  refused(changed([](auto& l) { l.heads = 0; }), "heads is 0");
  refused(changed([&](auto& l) { l.heads = most; }), "heads is");
  refused(changed([](auto& l) { l.seq_q = std::int64_t{1} << 48; }), "indptr has 4 entries");
  refused(changed([](auto& l) {
            l.seq_k = std::int64_t{1} << 48;
            l.block_columns = 1;
          }),
          "number of block columns");
  refused(changed([](auto& l) {
            l.heads = 1 << 20;
            l.seq_q = std::int64_t{1} << 48;
            l.block_rows = 1;
          }),
          "indptr has 4 entries");
  refused(changed([](auto& l) { l.indptr.clear(); }), "indptr has 0 entries");
  refused(changed([](auto& l) { l.indptr.push_back(5); }), "indptr has 5 entries");
  refused(changed([](auto& l) { l.indptr[0] = 1; }), "indptr[0] is 1");
  refused(changed([](auto& l) { l.indptr[2] = 1; }), "indptr[2] is 1");
  refused(changed([](auto& l) { l.indptr[1] = -1; }), "indptr[1] is -1");
  refused(changed([](auto& l) { l.indptr[3] = 6; }), "indptr ends at 6");
  refused(changed([](auto& l) { l.indptr[3] = 4; }), "indptr ends at 4");
  refused(changed([](auto& l) { l.indices[1] = 4; }), "indices[1] = 4");
  refused(changed([](auto& l) { l.indices[0] = -1; }), "indices[0] = -1");
  refused(changed([](auto& l) { l.indices[3] = 1; }), "there twice");
  refused(changed([](auto& l) { l.indices[4] = 1; }), "not in ascending order");
  refused(changed([](auto& l) { l.partial = {0}; }), "partial has 1");
  refused(changed([](auto& l) { l.partial = {0, 1, 2, 0, 0}; }), "partial[2] is 2");
  refused(changed([](auto& l) { l.head_map = {0, 1}; }), "head_map[1] is 1");
  refused(changed([](auto& l) { l.head_map = {0, 0, -1}; }), "head_map[2] is -1");
  refused(changed([](auto& l) { l.head_map.resize((1 << 20) + 1); }), "number of query heads");
}

TEST_CASE("layouts survive their file") {
  test::ScratchFolder folder;
  Random random(test::seed_of(41));
  const std::string path = folder / "x.layout";
  for (int i = 0; i < 50; ++i) {
    BlockLayout layout =
        test::random_layout(&random, random.below(200), random.below(200), 1 + random.below(3));
    if (i % 3 == 0) layout.head_map.assign(random.below(6), 0);
    if (i % 2 == 0) {
      for (std::size_t j = 0; j < layout.indices.size(); ++j) {
        layout.partial.push_back(static_cast<std::uint8_t>(random.below(2)));
      }
    }
    save_layout(layout, path);
    CHECK(load_layout(path) == layout);
  }
  BlockLayout bad = small();
  bad.indices[0] = 77;
  CHECK(code_of([&] { save_layout(bad, path); }) == ErrorCode::kInvalidArgument);
  CHECK_NOTHROW(load_layout(path));
  CHECK(code_of([&] { save_layout(small(), folder / "no/such"); }) == ErrorCode::kFile);
  CHECK(code_of([&] { load_layout(folder / "missing"); }) == ErrorCode::kFile);
}

// The header of a file with some changed numbers and a right digest.
std::vector<std::byte> forged(std::vector<std::byte> bytes,
                              const std::function<void(std::int64_t*)>& change) {
  std::int64_t words[16];
  std::memcpy(words, bytes.data(), sizeof(words));
  change(words);
  const base::Digest digest = base::digest(std::as_bytes(std::span(words)).first(112));
  std::memcpy(words + 14, digest.bytes.data(), 16);
  std::memcpy(bytes.data(), words, sizeof(words));
  return bytes;
}

TEST_CASE("a file that was made to harm is refused, and the first fault is named") {
  BlockLayout layout = small();
  layout.head_map = {0, 0};
  layout.partial = {0, 1, 0, 0, 0};
  const std::vector<std::byte> good = format_layout(layout);
  CHECK(parse_layout(good, "x").query_heads() == 2);
  const auto refused_file = [&](const char* part,
                                const std::function<void(std::int64_t*)>& change) {
    std::string message;
    const auto bytes = forged(good, change);
    CHECK(code_of([&] { parse_layout(bytes, "x"); }, &message) == ErrorCode::kInvalidFile);
    CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  };
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  // Words by their offsets: 16 R, 24 C, 32 Sq, 40 Sk, 48 heads, 56 map, 64 kept, 72 flags, 80
  // bytes.
  refused_file("ANNULAYT", [](auto* word) { word[0] ^= 1; });
  refused_file("version 2", [](auto* word) { word[1] += 1; });
  refused_file("bytes of header", [](auto* word) { word[1] += std::int64_t{64} << 32; });
  refused_file("reserved bytes", [](auto* word) { word[13] = 1; });
  refused_file("truncated", [](auto* word) { word[10] += 64; });
  refused_file("too long", [](auto* word) { word[10] -= 64; });
  for (const std::int64_t wrong : {std::int64_t{-1}, most, -most - 1}) {
    refused_file("do not fit", [&](auto* word) { word[7] = wrong; });
    refused_file("do not fit", [&](auto* word) { word[8] = wrong; });
    refused_file("do not fit", [&](auto* word) { word[9] = wrong; });
    refused_file("do not fit", [&](auto* word) { word[6] = wrong; });
    refused_file("", [&](auto* word) { word[2] = wrong; });
    refused_file("", [&](auto* word) { word[4] = wrong; });
  }
  refused_file("C is 0", [](auto* word) { word[3] = 0; });
  refused_file("Sk is -1", [](auto* word) { word[5] = -1; });
  refused_file("flags", [](auto* word) { word[9] = 3; });
  refused_file("bytes of arrays", [](auto* word) { word[6] = 40; });
  refused_file("indices[1] = 3", [](auto* word) { word[5] = 7; });
  refused_file("the arrays are damaged", [](auto* word) { word[11] ^= 1; });
  std::string message;
  CHECK(code_of([&] { parse_layout({}, "x"); }, &message) == ErrorCode::kInvalidFile);
  CHECK(message.find("0 bytes") != std::string::npos);
}

TEST_CASE("every altered byte and every shorter file is refused") {
  Random random(test::seed_of(42));
  for (const bool flags : {false, true}) {
    BlockLayout layout = test::random_layout(&random, 100, 100, 2);
    if (flags) layout.partial.assign(layout.indices.size(), 1);
    layout.head_map = {0, 1, 1};
    const std::vector<std::byte> good = format_layout(layout);
    CHECK(copy(parse_layout(good, "x")) == layout);
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::vector<std::byte> bytes = good;
      bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
      REQUIRE(code_of([&] { parse_layout(bytes, "x"); }) == ErrorCode::kInvalidFile);
      const std::vector<std::byte> shorter(good.begin(),
                                           good.begin() + static_cast<std::ptrdiff_t>(at));
      REQUIRE(code_of([&] { parse_layout(shorter, "x"); }) == ErrorCode::kInvalidFile);
    }
    std::vector<std::byte> longer = good;
    longer.push_back(std::byte{0});
    CHECK(code_of([&] { parse_layout(longer, "x"); }) == ErrorCode::kInvalidFile);
  }
}

TEST_CASE("the bytes of a file are those that were agreed") {
  BlockLayout layout = small();
  const std::vector<std::byte> bytes = format_layout(layout);
  CHECK(bytes.size() == 256);
  CHECK(base::digest(bytes).hex() == "56ce003b40339bc1fd42a4710c1404e2");
  std::int64_t indptr[4];
  std::memcpy(indptr, bytes.data() + 128, sizeof(indptr));
  CHECK(indptr[1] == 2);
  CHECK(indptr[3] == 5);
}

TEST_CASE("a mapped layout is the file's own bytes, and outlives its replacement") {
  test::ScratchFolder folder;
  const std::string path = folder / "x.layout";
  BlockLayout layout = small();
  layout.head_map = {0, 0, 0};
  save_layout(layout, path);
  const MappedLayout mapped(path);
  const MappedLayout other = mapped;
  CHECK(copy(mapped.view()) == layout);
  CHECK(other.view().indices.data() == mapped.view().indices.data());
  save_layout(small(), path);
  CHECK(copy(other.view()) == layout);
  CHECK(copy(MappedLayout(path).view()) == small());
  CHECK(code_of([&] { MappedLayout(folder / "missing"); }) == ErrorCode::kFile);
  CHECK(code_of([&] { MappedLayout(folder.path()); }) == ErrorCode::kInvalidFile);
  base::FileSystem files;
  base::write_file_atomically(files, path, {});
  CHECK(code_of([&] { MappedLayout wrong(path); }) == ErrorCode::kInvalidFile);
}

TEST_CASE("a full or failing disk leaves the old layout") {
  test::ScratchFolder folder;
  const std::string path = folder / "x.layout";
  save_layout(small(), path);
  BlockLayout other = small();
  other.indices[0] = 1;
  for (int call = 0;; ++call) {
    test::FaultyFiles files;
    files.fail_at = call;
    files.code = ENOSPC;
    const ErrorCode code = code_of([&] { write_layout(files, path, other); });
    if (code == ErrorCode{0} && files.calls() <= call) break;
    const BlockLayout found = load_layout(path);
    CHECK((found == small() || found == other));
    if (code != ErrorCode{0}) CHECK(code == ErrorCode::kFile);
    REQUIRE(call < 100);
  }
  CHECK(load_layout(path) == other);
}

}  // namespace
}  // namespace annulus::pattern
