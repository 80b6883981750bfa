// Converts layouts to and from the arrays of FlexAttention and FlashInfer.

#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "base/work.h"
#include "layout/entries.h"

namespace annulus::layout {
namespace {

// FlexAttention's lists of the full or of the partial blocks: counts [lines] and indices [lines,
// width].
struct Lists {
  const char* name;
  std::span<const std::int32_t> counts;
  std::span<const std::int32_t> indices;
  Block block;

  void check(const LayoutView& like) const {
    if (like.rows() == 0) return;
    check_count(name, counts.size(), {like.heads, like.rows()});
    check_count(name, indices.size(), {like.heads, like.rows(), width()});
  }
  std::int64_t width() const {
    return counts.empty() ? 0
                          : static_cast<std::int64_t>(indices.size()) /
                                static_cast<std::int64_t>(counts.size());
  }
  void add_line(std::int64_t line, Entries* entries) const {
    if (counts.empty()) return;
    const std::int32_t count = counts[static_cast<std::size_t>(line)];
    if (count < 0 || count > width()) {
      base::fail(ErrorCode::kInvalidArgument, "{}: row {} has {} blocks; its list has {} entries",
                 name, line, count, width());
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = line * width() + i;
      entries->add(indices[static_cast<std::size_t>(at)], block, at);
    }
  }
};

// The largest block size among size, size / 2, size / 4, ... and at last 1, for which the rows (or
// columns) of each block are all the same. same(i - 1, i) compares two rows, or two columns, of all
// blocks at once.
template <typename Same>
std::int64_t largest_uniform(std::int64_t size, const Same& same) {
  base::expect(2 * size, "the rows and columns of a block");
  base::charge(2 * size);
  std::vector<char> equal(static_cast<std::size_t>(size), 1);  // whether i is the same as i - 1
  for (std::int64_t i = 1; i < size; ++i) equal[static_cast<std::size_t>(i)] = same(i - 1, i);
  const auto uniform = [&](std::int64_t part) {
    for (std::int64_t i = 1; i < size; ++i) {
      if (i % part != 0 && !equal[static_cast<std::size_t>(i)]) return false;
    }
    return true;
  };
  std::int64_t part = size;
  while (!uniform(part) && part % 2 == 0) part /= 2;
  return uniform(part) ? part : 1;
}

void check_mask(const LayoutView& view, std::span<const std::uint8_t> mask) {
  check_count(
      "the mask", mask.size(),
      {static_cast<std::int64_t>(view.indices.size()), view.block_rows, view.block_columns});
  const auto bad = std::find_if(mask.begin(), mask.end(), [](std::uint8_t bit) { return bit > 1; });
  if (bad != mask.end()) {
    base::fail(ErrorCode::kInvalidArgument, "mask[{}] is {}; it must be 0 or 1", bad - mask.begin(),
               *bad);
  }
}

void check_whole_blocks(const LayoutView& view) {
  if (view.query_heads() != 1 || view.heads != 1) {
    base::fail(ErrorCode::kUnsupported,
               "FlashInfer's block-sparse rows have one head; take one of {} with head_of()",
               view.query_heads());
  }
  if (view.seq_q % view.block_rows != 0 || view.seq_k % view.block_columns != 0) {
    base::fail(ErrorCode::kUnsupported, "Sq {} x Sk {} is not a whole number of {} x {} blocks",
               view.seq_q, view.seq_k, view.block_rows, view.block_columns);
  }
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

using layout::Block;
using layout::Builder;

BlockLayout from_flex(const LayoutSizes& sizes, std::span<const std::int32_t> kv_num_blocks,
                      std::span<const std::int32_t> kv_indices,
                      std::span<const std::int32_t> full_kv_num_blocks,
                      std::span<const std::int32_t> full_kv_indices) {
  const base::Work work({}, "reading a BlockMask");
  const LayoutView like = layout::checked(sizes);
  const layout::Lists some = {"kv_indices", kv_num_blocks, kv_indices, Block::kPartial};
  const layout::Lists full = {"full_kv_indices", full_kv_num_blocks, full_kv_indices, Block::kFull};
  some.check(like);
  if (!full.counts.empty() || !full.indices.empty()) full.check(like);
  Builder builder(sizes.block_rows, sizes.block_columns, sizes.seq_q, sizes.seq_k, sizes.heads);
  layout::Entries entries("a list of blocks", like.columns());
  const std::size_t lines = layout::array_size("indptr", {sizes.heads, like.rows()});
  for (std::size_t line = 0; line < lines; ++line) {
    some.add_line(static_cast<std::int64_t>(line), &entries);
    full.add_line(static_cast<std::int64_t>(line), &entries);
    entries.finish(&builder);
  }
  return builder.finish({});
}

FlexArrays to_flex(const LayoutView& from) {
  const base::Work work({}, "writing a BlockMask");
  from.validate();
  const std::int64_t columns = from.columns();
  FlexArrays to;
  const std::size_t lines = layout::array_size("kv_num_blocks", {from.query_heads(), from.rows()});
  to.kv_num_blocks.assign(lines, 0);
  to.full_kv_num_blocks.assign(lines, 0);
  to.kv_indices.resize(
      layout::array_size("kv_indices", {from.query_heads(), from.rows(), columns}));
  to.full_kv_indices.resize(to.kv_indices.size());
  std::vector<Block> row(static_cast<std::size_t>(columns));
  std::size_t line = 0;
  // Writes the columns of a class first and then all other columns, because FlexAttention's index
  // lists are permutations of all columns.
  const auto write = [&](Block block, std::vector<std::int32_t>* counts,
                         std::vector<std::int32_t>* indices) {
    auto head = static_cast<std::size_t>(columns) * line;
    auto tail = head + static_cast<std::size_t>(std::count(row.begin(), row.end(), block));
    (*counts)[line] = static_cast<std::int32_t>(tail - head);
    for (std::int64_t column = 0; column < columns; ++column) {
      const bool of_class = row[static_cast<std::size_t>(column)] == block;
      (*indices)[of_class ? head++ : tail++] = static_cast<std::int32_t>(column);
    }
  };
  for (std::int64_t query = 0; query < from.query_heads(); ++query) {
    const std::int64_t head = from.distinct_head(query);
    for (std::int64_t i = 0; i < from.rows(); ++i, ++line) {
      base::charge(3 * columns);
      std::fill(row.begin(), row.end(), Block::kNone);
      for (std::int64_t at = layout::begin_of(from, head, i);
           at < layout::begin_of(from, head, i + 1); ++at) {
        row[static_cast<std::size_t>(from.indices[static_cast<std::size_t>(at)])] =
            layout::block_at(from, at);
      }
      write(Block::kPartial, &to.kv_num_blocks, &to.kv_indices);
      write(Block::kFull, &to.full_kv_num_blocks, &to.full_kv_indices);
    }
  }
  return to;
}

MaskedBlocks from_flashinfer(const LayoutSizes& sizes, std::span<const std::int32_t> indptr,
                             std::span<const std::int32_t> indices,
                             std::span<const std::uint8_t> mask) {
  layout::check_whole_blocks(layout::checked(sizes));
  MaskedBlocks result;
  result.layout = from_csr(sizes, indptr, indices);
  if (mask.empty()) return result;
  layout::check_mask(result.layout, mask);
  result.mask.assign(mask.begin(), mask.end());
  const std::int64_t pairs = sizes.block_rows * sizes.block_columns;
  bool any = false;
  for (std::size_t at = 0; at < indices.size(); ++at) {
    const auto block =
        mask.subspan(at * static_cast<std::size_t>(pairs), static_cast<std::size_t>(pairs));
    const bool hidden = std::find(block.begin(), block.end(), 0) != block.end();
    result.layout.partial.push_back(hidden ? 1 : 0);
    any = any || hidden;
  }
  if (!any) result.layout.partial.clear();
  return result;
}

FlashInferArrays to_flashinfer(const LayoutView& from, std::span<const std::uint8_t> mask) {
  from.validate();
  layout::check_whole_blocks(from);
  if (from.indices.size() > std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kUnsupported, "{} kept blocks; FlashInfer takes fewer than 2^31",
               from.indices.size());
  }
  if (mask.empty() && std::count(from.partial.begin(), from.partial.end(), 1) > 0) {
    base::fail(
        ErrorCode::kUnsupported,
        "some blocks are partial; give the mask of their pairs, or a layout of whole blocks");
  }
  if (!mask.empty()) layout::check_mask(from, mask);
  const BlockLayout one = head_of(from, 0);
  return {{one.indptr.begin(), one.indptr.end()},
          {one.indices.begin(), one.indices.end()},
          {mask.begin(), mask.end()}};
}

// The largest r x c that divides the mask into uniform pieces is found for rows and columns
// independently, over all blocks at once. Then each new block is as visible as its first pair.
BlockLayout exact_layout(const LayoutView& from, std::span<const std::uint8_t> mask) {
  const base::Work work({}, "finding the blocks of a mask");
  from.validate();
  layout::check_whole_blocks(from);
  layout::check_mask(from, mask);
  const std::int64_t rows = from.block_rows;
  const std::int64_t columns = from.block_columns;
  const auto blocks = static_cast<std::int64_t>(from.indices.size());
  const auto visible = [&](std::int64_t block, std::int64_t row, std::int64_t column) {
    return mask[static_cast<std::size_t>((block * rows + row) * columns + column)];
  };
  // In blocks of r x c every block of the mask is either all visible or all hidden.
  const std::int64_t r = layout::largest_uniform(rows, [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const auto line = mask.subspan(static_cast<std::size_t>((block * rows + a) * columns),
                                     static_cast<std::size_t>(columns));
      const auto next = mask.subspan(static_cast<std::size_t>((block * rows + b) * columns),
                                     static_cast<std::size_t>(columns));
      if (!std::ranges::equal(line, next)) return false;
    }
    return true;
  });
  const std::int64_t c = layout::largest_uniform(columns, [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (std::int64_t row = 0; row < rows; ++row) {
        if (visible(block, row, a) != visible(block, row, b)) return false;
      }
    }
    return true;
  });
  Builder builder(r, c, from.seq_q, from.seq_k, 1);
  const std::int64_t head = from.distinct_head(0);
  for (std::int64_t row = 0; row < from.seq_q / r; ++row) {
    const std::int64_t old = row * r / rows;
    for (std::int64_t at = layout::begin_of(from, head, old);
         at < layout::begin_of(from, head, old + 1); ++at) {
      for (std::int64_t key = 0; key < columns; key += c) {
        if (visible(at, row * r % rows, key) == 0) continue;
        builder.add((from.indices[static_cast<std::size_t>(at)] * columns + key) / c, Block::kFull);
      }
    }
    builder.end_row();
  }
  return builder.finish({});
}

}  // namespace annulus::inline v0
