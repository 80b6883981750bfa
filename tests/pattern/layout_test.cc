#include <doctest/doctest.h>

#include <limits>

#include "base/safetensors.h"
#include "pattern/layout_file.h"
#include "pattern/random_pattern.h"
#include "support/faulty_files.h"

namespace annulus::pattern {
namespace {

using base::Random;
using test::code_of;

// 3 x 4 blocks of 2 x 3 over 5 x 10, one head.
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
}

TEST_CASE("layouts survive their file") {
  test::ScratchFolder folder;
  Random random(41);
  const std::string path = folder / "layout.safetensors";
  for (int i = 0; i < 50; ++i) {
    BlockLayout layout =
        test::random_layout(&random, random.below(200), random.below(200), 1 + random.below(3));
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

TEST_CASE("a layout's file with a wrong word or tensor is refused") {
  test::ScratchFolder folder;
  base::FileSystem files;
  const std::string path = folder / "layout.safetensors";
  const BlockLayout layout = small();
  struct Case {
    base::Metadata metadata;
    std::vector<base::NamedTensor> tensors;
  };
  const auto good = [&] {
    const auto view = [](base::TensorType type, const auto& values) {
      return base::TensorView{
          type, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))};
    };
    return Case{{{"version", "1"}, {"R", "2"}, {"C", "3"}, {"Sq", "5"}, {"Sk", "10"}},
                {{"indptr", view(base::TensorType::kI64, layout.indptr)},
                 {"indices", view(base::TensorType::kI32, layout.indices)}}};
  };
  const auto refused_file = [&](const char* part, const std::function<void(Case&)>& change) {
    Case wrong = good();
    change(wrong);
    base::write_safetensors(files, path, wrong.tensors, wrong.metadata);
    std::string message;
    CHECK(code_of([&] { load_layout(path); }, &message) == ErrorCode::kInvalidFile);
    CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  };
  base::write_safetensors(files, path, good().tensors, good().metadata);
  CHECK(load_layout(path) == layout);  // heads and digest may be missing
  refused_file("version", [](Case& c) { c.metadata.erase("version"); });
  refused_file("version 2", [](Case& c) { c.metadata["version"] = "2"; });
  refused_file("'R'", [](Case& c) { c.metadata.erase("R"); });
  refused_file("'C'", [](Case& c) { c.metadata["C"] = "3.0"; });
  refused_file("'Sq'", [](Case& c) { c.metadata["Sq"] = ""; });
  refused_file("'Sk'", [](Case& c) { c.metadata["Sk"] = "99999999999999999999"; });
  refused_file("indptr has", [](Case& c) { c.metadata["heads"] = "2"; });
  refused_file("R is 0", [](Case& c) { c.metadata["R"] = "0"; });
  refused_file("digest", [](Case& c) { c.metadata["digest"] = "00"; });
  refused_file("'indices'", [](Case& c) { c.tensors.pop_back(); });
  refused_file("'indptr'", [](Case& c) { c.tensors[0].name = "indptrs"; });
  refused_file("I32 with", [](Case& c) {
    c.tensors[0].tensor.type = base::TensorType::kI32;
    c.tensors[0].tensor.shape = {8};
  });
  refused_file("2 dimensions", [](Case& c) { c.tensors[0].tensor.shape = {2, 2}; });
  refused_file("no block layout has", [](Case& c) {
    c.tensors.push_back({"x", {base::TensorType::kU8, {0}, {}}});
  });
}

TEST_CASE("a damaged layout is noticed") {
  test::ScratchFolder folder;
  base::FileSystem files;
  const std::string path = folder / "layout.safetensors";
  Random random(42);
  save_layout(test::random_layout(&random, 300, 300), path);
  const std::vector<std::byte> good = base::read_file(files, path, 1 << 20);
  int harmless = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::byte> bytes = good;
    const std::size_t at = random.below(static_cast<std::uint32_t>(bytes.size()));
    bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
    base::write_file_atomically(files, path, bytes);
    const ErrorCode code = code_of([&] { load_layout(path); });
    // Blanks of the header may change into other blanks.
    if (code == ErrorCode{0}) ++harmless;
    CHECK((code == ErrorCode{0} || code == ErrorCode::kInvalidFile));
  }
  CHECK(harmless < 20);
}

TEST_CASE("a full or failing disk leaves the old layout") {
  test::ScratchFolder folder;
  const std::string path = folder / "layout.safetensors";
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
