#include <doctest/doctest.h>

#include "annulus/layout.h"
#include "layout/sample_layout.h"
#include "support/faulty_files.h"

namespace annulus {
namespace {

using base::Random;
using test::between;
using test::code_of;

BlockLayout sample(Random* random) {
  return test::random_blocks(random, test::random_sizes(random), between(random, 1, 3));
}

void refused(const std::function<void()>& action, const std::string& part) {
  std::string message;
  CHECK(code_of(action, &message) == ErrorCode::kInvalidArgument);
  CHECK_MESSAGE(message.find(part) != std::string::npos, message);
}

TEST_CASE("every format gives back what it was given") {
  Random random(61);
  for (int i = 0; i < 300; ++i) {
    const BlockLayout layout = sample(&random);
    const LayoutSizes sizes = sizes_of(layout);
    CHECK(from_mask(sizes, to_mask(layout)) == layout);
    const BitsetArrays bits = to_bitset(layout);
    CHECK(from_bitset(sizes, bits.kept, bits.partial) == layout);
    const CsrArrays csr = to_csr(layout);
    CHECK(from_csr(sizes, csr.indptr, csr.indices, csr.partial) == layout);
    const std::vector<std::int32_t> narrow(csr.indptr.begin(), csr.indptr.end());
    CHECK(from_csr(sizes, narrow, csr.indices, csr.partial) == layout);
    const TopKArrays topk = to_topk(layout);
    CHECK(from_topk(sizes, topk.k, topk.indices, topk.partial) == layout);
    const FlexArrays flex = to_flex(layout);
    CHECK(from_flex(sizes, flex.kv_num_blocks, flex.kv_indices, flex.full_kv_num_blocks,
                    flex.full_kv_indices) == layout);
    // The coordinates may have any order.
    CooArrays coo = to_coo(layout);
    for (std::size_t at = coo.rows.size(); at > 1; --at) {
      const std::size_t other = random.below(static_cast<std::uint32_t>(at));
      std::swap(coo.heads[at - 1], coo.heads[other]);
      std::swap(coo.rows[at - 1], coo.rows[other]);
      std::swap(coo.columns[at - 1], coo.columns[other]);
      if (!coo.partial.empty()) std::swap(coo.partial[at - 1], coo.partial[other]);
    }
    CHECK(from_coo(sizes, coo.heads, coo.rows, coo.columns, coo.partial) == layout);
  }
}

TEST_CASE("shared heads go out one by one") {
  Random random(62);
  for (int i = 0; i < 50; ++i) {
    BlockLayout layout = sample(&random);
    layout.head_map = {0, 0, static_cast<std::int32_t>(layout.heads - 1)};
    const BlockLayout parted = part_heads(layout);
    const LayoutSizes sizes = sizes_of(layout);
    CHECK(sizes.heads == 3);
    CHECK(from_mask(sizes, to_mask(layout)) == parted);
    const CsrArrays csr = to_csr(layout);
    CHECK(from_csr(sizes, csr.indptr, csr.indices, csr.partial) == parted);
    const TopKArrays topk = to_topk(layout);
    CHECK(from_topk(sizes, topk.k, topk.indices, topk.partial) == parted);
  }
}

// 2 x 3 blocks of 8 x 16, two of them partial.
const LayoutSizes kSmall = {8, 16, 16, 48, 1};
BlockLayout small() { return from_mask(kSmall, std::vector<std::uint8_t>{1, 0, 2, 0, 2, 1}); }

TEST_CASE("arrays are those that other libraries expect") {
  const BlockLayout layout = small();
  using Ints = std::vector<std::int32_t>;
  const FlexArrays flex = to_flex(layout);
  CHECK(flex.kv_num_blocks == Ints{1, 1});
  CHECK(flex.kv_indices == Ints{2, 0, 1, 1, 0, 2});
  CHECK(flex.full_kv_num_blocks == Ints{1, 1});
  CHECK(flex.full_kv_indices == Ints{0, 1, 2, 2, 0, 1});
  CHECK(to_csr(layout).indices == Ints{0, 2, 1, 2});
  CHECK(to_bitset(layout).kept == std::vector<std::uint32_t>{5, 6});
  CHECK(to_bitset(layout).partial == std::vector<std::uint32_t>{4, 2});
  const TopKArrays topk = to_topk(from_mask(kSmall, std::vector<std::uint8_t>{1, 1, 1, 0, 1, 0}));
  CHECK(topk.k == 3);
  CHECK(topk.indices == Ints{0, 1, 2, 1, -1, -1});
  // Without full_kv_* every block counts as partial.
  CHECK(from_flex(kSmall, Ints{2, 0}, Ints{2, 0, 1, 0, 0, 0}) ==
        from_mask(kSmall, std::vector<std::uint8_t>{2, 0, 2, 0, 0, 0}));
  // A list may be narrower than the number of columns, and the chosen blocks may be anywhere in it.
  CHECK(from_topk(kSmall, 2, Ints{-1, 2, 1, 0}) ==
        from_mask(kSmall, std::vector<std::uint8_t>{0, 0, 1, 1, 1, 0}));
}

TEST_CASE("the first bad entry of an array is named") {
  using Ints = std::vector<std::int32_t>;
  using Bytes = std::vector<std::uint8_t>;
  refused([] { from_mask(kSmall, Bytes(5)); }, "the mask has 5 entries; the sizes need 1 x 2 x 3");
  refused([] { from_mask(kSmall, Bytes{0, 0, 3, 4, 0, 0}); }, "mask[2] is 3");
  refused([] { from_mask({0, 16, 16, 48, 1}, Bytes(6)); }, "R is 0");
  refused([] { from_mask({8, 16, 16, 48, 0}, {}); }, "heads is 0");
  using Words = std::vector<std::uint32_t>;
  refused([] { from_bitset(kSmall, Words{1}); }, "the bitset has 1");
  refused([] { from_bitset(kSmall, Words{1, 8}); }, "word 1 has bit 3");
  refused([] { from_bitset(kSmall, Words{1, 2}, Words{0, 4}); }, "word 1 marks blocks as partial");
  refused([] { from_bitset(kSmall, Words{1, 2}, Words{0}); }, "partial blocks has 1");
  using Longs = std::vector<std::int64_t>;
  refused([] { from_csr(kSmall, Longs{0, 2}, Ints{0, 1}); }, "indptr has 2");
  refused([] { from_csr(kSmall, Longs{0, 2, 3}, Ints{0, 1}); }, "indptr ends at 3");
  refused([] { from_csr(kSmall, Ints{0, 2, 2}, Ints{1, 0}); }, "indices[1] = 0");
  refused([] { from_csr(kSmall, Ints{0, 2, 2}, Ints{0, 3}); }, "indices[1] = 3");
  refused([] { from_csr(kSmall, Ints{0, 2, 2}, Ints{0, 1}, Bytes{0, 7}); }, "partial[1] is 7");
  refused([] { from_coo(kSmall, {}, Ints{0, 2}, Ints{0, 0}); }, "rows[1] is 2");
  refused([] { from_coo(kSmall, {}, Ints{0, 1}, Ints{0, -1}); }, "columns[1] is -1");
  refused([] { from_coo(kSmall, {}, Ints{1, 0, 1}, Ints{2, 0, 2}); }, "columns[2] is 2, which");
  refused([] { from_coo(kSmall, Ints{0, 1}, Ints{1, 0}, Ints{2, 0}); }, "heads[1] is 1");
  refused([] { from_coo(kSmall, {}, Ints{1, 0}, Ints{2}); }, "columns has 1");
  refused([] { from_coo({8, 16, 16, 48, 2}, {}, Ints{1}, Ints{2}); }, "heads has 0");
  refused([] { from_coo(kSmall, {}, Ints{1}, Ints{2}, Bytes{2}); }, "partial[0] is 2");
  refused([] { from_topk(kSmall, 2, Ints{0, 1, 2}); }, "indices has 3 entries");
  refused([] { from_topk(kSmall, -1, Ints{}); }, "indices has 0 entries");
  refused([] { from_topk(kSmall, 2, Ints{0, 1, -2, -1}); }, "indices[2] is -2");
  refused([] { from_topk(kSmall, 2, Ints{0, 1, 2, 2}); }, "indices[3] is 2, which");
  refused([] { from_flex(kSmall, Ints{1}, Ints{0, 1, 2}); }, "kv_indices has 1");
  refused([] { from_flex(kSmall, Ints{1, 3}, Ints{0, 1, 0, 1}); }, "row 1 has 3 blocks");
  refused([] { from_flex(kSmall, Ints{1, -1}, Ints{0, 1, 0, 1}); }, "row 1 has -1 blocks");
  refused([] { from_flex(kSmall, Ints{1, 1}, Ints{0, 1, 5, 1}); }, "[2] is 5");
  refused([] { from_flex(kSmall, Ints{1, 0}, Ints{0, 0}, Ints{1, 0}, Ints{0, 0}); }, "already");
  refused([] { from_flex(kSmall, Ints{0, 0}, Ints{}, Ints{1, 0}, Ints{0, 0, 0}); }, "full_kv");
}

TEST_CASE("sizes that no array can have fail before memory is taken") {
  const LayoutSizes huge = {1, 1, std::int64_t{1} << 48, 64, 1 << 20};
  refused([&] { from_mask(huge, {}); }, "the mask has 0");
  refused([&] { from_topk(huge, 4, {}); }, "indices has 0");
  CHECK(code_of([&] { from_coo(huge, {}, {}, {}); }) == ErrorCode::kUnsupported);
  CHECK(code_of([&] {
          from_topk({1, 1, std::int64_t{1} << 40, 64, 16}, 0, {});
        }) == ErrorCode::kUnsupported);
  CHECK(code_of([&] { from_flex(huge, {}, {}); }) == ErrorCode::kInvalidArgument);
  BlockLayout wide{.block_rows = 1,
                   .block_columns = 1,
                   .seq_q = 3,
                   .seq_k = INT32_MAX,
                   .heads = 1,
                   .indptr = {0, 0, 0, 0},
                   .indices = {},
                   .partial = {}};
  CHECK(code_of([&] { to_mask(wide); }) == ErrorCode::kUnsupported);
  CHECK(code_of([&] { to_flex(wide); }) == ErrorCode::kUnsupported);
  CHECK(to_csr(wide).indices.empty());
}

// A random mask of the pairs of kept blocks, made of cells of r x c.
std::vector<std::uint8_t> random_pairs(Random* random, const BlockLayout& layout, std::int64_t r,
                                       std::int64_t c) {
  std::vector<std::uint8_t> mask;
  for (std::size_t block = 0; block < layout.indices.size(); ++block) {
    std::vector<std::uint8_t> cells(
        static_cast<std::size_t>(layout.block_rows * layout.block_columns));
    for (std::uint8_t& cell : cells) cell = random->below(3) != 0;
    for (std::int64_t i = 0; i < layout.block_rows; ++i) {
      for (std::int64_t j = 0; j < layout.block_columns; ++j) {
        mask.push_back(cells[static_cast<std::size_t>(i / r * layout.block_columns + j / c)]);
      }
    }
  }
  return mask;
}

TEST_CASE("FlashInfer's rows keep the mask of each pair") {
  Random random(63);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t r = 1 << random.below(3), c = 1 << random.below(3);
    BlockLayout sizes;
    sizes.block_rows = r * (1 << random.below(3));
    sizes.block_columns = c * (1 << random.below(3));
    sizes.seq_q = sizes.block_rows * between(&random, 1, 5);
    sizes.seq_k = sizes.block_columns * between(&random, 1, 5);
    BlockLayout whole = test::random_blocks(&random, sizes, 1);
    whole.partial.clear();
    const std::vector<std::uint8_t> pairs = random_pairs(&random, whole, r, c);
    const FlashInferArrays arrays = to_flashinfer(whole, pairs);
    const MaskedBlocks back =
        from_flashinfer(sizes_of(whole), arrays.indptr, arrays.indices, pairs);
    CHECK(back.layout.indices == whole.indices);
    CHECK(back.mask == pairs);
    const FlashInferArrays again = to_flashinfer(back.layout, back.mask);
    CHECK(again.indptr == arrays.indptr);
    CHECK(again.mask == arrays.mask);
    // The layout with smaller blocks sees exactly the pairs of the mask.
    const BlockLayout exact = exact_layout(back.layout, back.mask);
    exact.validate();
    CHECK(exact.block_rows % r == 0);
    CHECK(exact.block_columns % c == 0);
    std::int64_t wrong = 0;
    for (std::int64_t q = 0; q < whole.seq_q; ++q) {
      for (std::int64_t k = 0; k < whole.seq_k; ++k) {
        const auto row = whole.row(0, q / whole.block_rows);
        const auto found = std::lower_bound(row.begin(), row.end(), k / whole.block_columns);
        bool visible = false;
        if (found != row.end() && *found == k / whole.block_columns) {
          const std::int64_t block = &*found - whole.indices.data();
          visible = pairs[static_cast<std::size_t>(
                        (block * whole.block_rows + q % whole.block_rows) * whole.block_columns +
                        k % whole.block_columns)] != 0;
        }
        wrong += (test::state_at(exact, 0, q, k) == 1) != visible;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("what FlashInfer cannot hold is refused") {
  const BlockLayout layout = small();
  CHECK(code_of([&] { to_flashinfer(layout); }) == ErrorCode::kUnsupported);
  BlockLayout whole = layout;
  whole.partial.clear();
  CHECK(to_flashinfer(whole).indices.size() == 4);
  BlockLayout ragged = whole;
  ragged.seq_k = 47;
  CHECK(code_of([&] { to_flashinfer(ragged); }) == ErrorCode::kUnsupported);
  BlockLayout many = whole;
  many.head_map = {0, 0};
  CHECK(code_of([&] { to_flashinfer(many); }) == ErrorCode::kUnsupported);
  refused([&] { to_flashinfer(whole, std::vector<std::uint8_t>(3)); }, "the mask has 3");
  std::vector<std::uint8_t> mask(4 * 8 * 16, 1);
  mask[77] = 2;
  refused([&] { to_flashinfer(whole, mask); }, "mask[77] is 2");
  refused([&] { exact_layout(whole, mask); }, "mask[77] is 2");
  refused(
      [&] {
        from_flashinfer(kSmall, std::vector<std::int32_t>{0, 1, 1}, std::vector<std::int32_t>{9});
      },
      "indices[0] = 9");
}

constexpr LayoutFormat kFormats[] = {
    LayoutFormat::kLayout, LayoutFormat::kNpy,  LayoutFormat::kRaw,
    LayoutFormat::kCsr,    LayoutFormat::kCoo,  LayoutFormat::kBitset,
    LayoutFormat::kTopK,   LayoutFormat::kFlex, LayoutFormat::kFlashInfer};

// FlashInfer's format has only one head and full blocks.
BlockLayout fit(LayoutFormat format, BlockLayout layout) {
  if (format != LayoutFormat::kFlashInfer) return layout;
  layout = head_of(layout, 0);
  layout.seq_q = layout.rows() * layout.block_rows;
  layout.seq_k = layout.columns() * layout.block_columns;
  layout.partial.clear();
  return layout;
}

TEST_CASE("files of every format give back what they were given") {
  test::ScratchFolder folder;
  const std::string path = folder / "x";
  Random random(64);
  for (const LayoutFormat format : kFormats) {
    CHECK(layout_format(to_string(format)) == format);
    for (int i = 0; i < 30; ++i) {
      const BlockLayout layout = fit(format, sample(&random));
      export_layout(layout, path, format);
      const bool bare = format == LayoutFormat::kRaw || format == LayoutFormat::kNpy;
      LayoutSizes sizes = sizes_of(layout);
      // A length of 0 cannot be requested, because it means that the file gives the length.
      if (bare && layout.seq_q * layout.seq_k == 0) continue;
      if (!bare) sizes = {0, 0, 0, 0, 0};
      CHECK(import_layout(path, format, sizes) == layout);
      // The file and the request must agree.
      if (layout.block_rows > 1 && !bare) {
        CHECK(code_of([&] {
                import_layout(path, format, {1, 0, 0, 0, 0});
              }) == ErrorCode::kInvalidFile);
      }
    }
  }
  std::string message;
  CHECK(code_of([] { layout_format("bsr"); }, &message) == ErrorCode::kInvalidArgument);
  CHECK(message.find("layout, npy, raw, csr, coo, bitset, topk, flex, flashinfer") !=
        std::string::npos);
}

TEST_CASE("damaged files of every format are refused or read as another layout") {
  test::ScratchFolder folder;
  test::FaultyFiles files;  // writes without syncing the disk
  const std::string path = folder / "x";
  Random random(65);
  for (const LayoutFormat format : kFormats) {
    const BlockLayout layout = fit(format, test::random_blocks(&random,
                                                               {.block_rows = 8,
                                                                .block_columns = 8,
                                                                .seq_q = 64,
                                                                .seq_k = 64,
                                                                .heads = 2,
                                                                .indptr = {},
                                                                .indices = {},
                                                                .partial = {}},
                                                               2));
    export_layout(layout, path, format);
    const std::vector<std::byte> good = base::read_file(files, path, 1 << 20);
    const LayoutSizes sizes = {8, 8, 0, 0, 0};
    for (int i = 0; i < 150; ++i) {
      std::vector<std::byte> bytes = good;
      if (i % 3 == 0) {
        bytes.resize(random.below(static_cast<std::uint32_t>(good.size())));
      } else {
        const std::size_t at = random.below(static_cast<std::uint32_t>(bytes.size()));
        bytes[at] = static_cast<std::byte>(random.below(256));
      }
      base::write_file_atomically(files, path, bytes);
      BlockLayout found;
      const ErrorCode code = code_of([&] { found = import_layout(path, format, sizes); });
      // Only the library's own format has a digest. The other formats must at least give a valid
      // layout.
      if (code == ErrorCode{0}) {
        found.validate();
        if (format == LayoutFormat::kLayout) CHECK(found == layout);
      } else {
        CHECK((code == ErrorCode::kInvalidFile || code == ErrorCode::kUnsupported));
      }
    }
  }
  CHECK(code_of([&] { import_layout(folder / "none", LayoutFormat::kCsr); }) == ErrorCode::kFile);
  CHECK(code_of([&] { import_layout(folder / "none", LayoutFormat::kNpy); }) == ErrorCode::kFile);
}

TEST_CASE("npy files are NumPy's, and others are refused") {
  test::ScratchFolder folder;
  base::FileSystem files;
  const std::string path = folder / "x.npy";
  const auto write = [&](const std::string& header, std::size_t data, char version = 1) {
    std::string text = "\x93NUMPY";
    text += version;
    text += '\0';
    text += static_cast<char>(header.size());
    text += '\0';
    if (version > 1) text += std::string(2, '\0');
    text += header + std::string(data, '\1');
    base::write_file_atomically(files, path, std::as_bytes(std::span(text)));
  };
  const auto code = [&](std::string* message) {
    return code_of([&] { import_layout(path, LayoutFormat::kNpy, {8, 8, 0, 0, 0}); }, message);
  };
  std::string message;
  const std::string good = "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }";
  for (const char version : {1, 2, 3}) {
    write(good + "   \n", 6, version);
    CHECK(import_layout(path, LayoutFormat::kNpy, {8, 8, 0, 0, 0}).indices.size() == 6);
  }
  // The last block may be cut off. Only the caller can state that.
  CHECK(import_layout(path, LayoutFormat::kNpy, {8, 8, 13, 0, 0}).seq_q == 13);
  CHECK(code_of([&] {
          import_layout(path, LayoutFormat::kNpy, {8, 8, 17, 0, 0});
        }) == ErrorCode::kInvalidFile);
  const auto refused_header = [&](const std::string& header, const char* part,
                                  std::size_t data = 6) {
    write(header, data);
    CHECK(code(&message) == ErrorCode::kInvalidFile);
    CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  };
  refused_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "'<f4'");
  refused_header("{'descr': '|b1', 'fortran_order': True, 'shape': (2, 3), }", "column-major");
  refused_header("{'descr': '|b1', 'fortran_order': False, 'shape': (6,), }", "1 dimensions");
  refused_header("{'descr': '|b1', 'fortran_order': False, 'shape': (2, 4), }", "6 bytes");
  refused_header("{'descr': '|b1', 'fortran_order': False, 'shape': (-2, -3), }",
                 "not a whole number");
  refused_header("{'descr': '|b1', 'fortran_order': False, }", "missing key");
  refused_header("{'descr': '|b1', 'shape': (2, 3), 'shape': (2, 3)}", "repeated");
  refused_header("{'descr': '|b1", "without an end");
  refused_header("{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), } x", "after its end");
  refused_header("", "NumPy does not write");
  refused_header("{'descr': '|b1', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
                 "6 bytes");
  refused_header("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 2, 3), }",
                 "a mask without a head", 0);
  write(good, 6, 9);
  CHECK(code(&message) == ErrorCode::kInvalidFile);
  CHECK(message.find("unknown version") != std::string::npos);
  base::write_file_atomically(files, path, {});
  CHECK(code(&message) == ErrorCode::kInvalidFile);
}

}  // namespace
}  // namespace annulus
