// Computes which blocks information reaches, layer by layer. Each row of blocks has one row of
// bits.

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "base/fail.h"
#include "base/work.h"
#include "layout/builder.h"

namespace annulus::layout {
namespace {

// The most pairs of blocks. Two matrices with a bit for each pair are stored at a time, which take
// 4 GiB for this number.
constexpr double kMaxPairs = 17179869184.0;  // 2^34
// More layers than any model has. Each layer adds an entry to the result, even if nothing changes
// any more.
constexpr int kMaxLayers = 1024;

// A matrix of bits: rows of blocks by columns of blocks.
class Bits {
 public:
  Bits(std::int64_t rows, std::int64_t columns)
      : words_((columns + 63) / 64), bits_(static_cast<std::size_t>(rows * words_), 0) {}
  void set(std::int64_t row, std::int64_t column) {
    line(row)[column / 64] |= std::uint64_t{1} << (column % 64);
  }
  void unite(std::int64_t row, const Bits& other, std::int64_t other_row) {
    base::charge(1 + words_ / 4);  // one step for four words
    std::uint64_t* to = line(row);
    const std::uint64_t* from = other.line(other_row);
    for (std::int64_t word = 0; word < words_; ++word) to[word] |= from[word];
  }
  double count() const {
    std::int64_t sum = 0;
    for (const std::uint64_t word : bits_) sum += std::popcount(word);
    return static_cast<double>(sum);
  }

 private:
  std::uint64_t* line(std::int64_t row) { return bits_.data() + row * words_; }
  const std::uint64_t* line(std::int64_t row) const { return bits_.data() + row * words_; }
  std::int64_t words_;
  std::vector<std::uint64_t> bits_;
};

// The blocks [begin, end) of an axis that have a position in [first, last]; empty if no block does.
struct Overlap {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Overlap overlap(std::int64_t first, std::int64_t last, std::int64_t length, std::int64_t block) {
  first = std::max<std::int64_t>(first, 0);
  last = std::min(last, length - 1);
  if (first > last) return {};
  return {first / block, last / block + 1};
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

std::vector<double> reachability(const LayoutView& view, int layers) {
  const base::Work work({}, "finding what layers reach");
  view.validate();
  if (layers < 1 || layers > layout::kMaxLayers) {
    base::fail(ErrorCode::kInvalidArgument, "{} layers; give 1 to {}", layers, layout::kMaxLayers);
  }
  const std::int64_t rows = view.rows();
  const std::int64_t columns = view.columns();
  const double all = static_cast<double>(rows) * static_cast<double>(columns);
  if (all > layout::kMaxPairs) {
    base::fail(
        ErrorCode::kUnsupported,
        "reachability of {} x {} blocks is more than 2^34 pairs; use larger blocks by reblock()",
        rows, columns);
  }
  const std::int64_t shift = view.seq_k - view.seq_q;  // row + shift is the row's position
  std::set<std::int64_t> heads;                        // the distinct heads of all query heads
  for (std::int64_t head = 0; head < view.query_heads(); ++head) {
    heads.insert(view.distinct_head(head));
  }
  base::expect(static_cast<std::int64_t>(all / 256), "a bit for each pair of blocks");
  layout::Bits once(rows, columns);  // the column blocks that one layer carries to each row
  for (std::int64_t row = 0; row < rows; ++row) {
    base::charge(1 + columns / 256);
    for (const std::int64_t head : heads) {
      base::charge(static_cast<std::int64_t>(view.row(head, row).size()));
      for (const std::int32_t column : view.row(head, row)) once.set(row, column);
    }
    // A row keeps the information that it has (the residual connection). Later layers take this
    // from `reached`.
    const auto own =
        layout::overlap(row * view.block_rows + shift, (row + 1) * view.block_rows - 1 + shift,
                        view.seq_k, view.block_columns);
    for (std::int64_t column = own.begin; column < own.end; ++column) once.set(row, column);
  }
  std::vector<double> shares;
  layout::Bits reached = std::move(once);
  for (int layer = 1; layer <= layers; ++layer) {
    base::charge(static_cast<std::int64_t>(all / 64));
    shares.push_back(all > 0 ? reached.count() / all : 0);
    if (layer == layers) break;
    // Nothing changed, so nothing will change in later layers.
    if (layer > 1 && shares.back() == shares[shares.size() - 2]) {
      shares.resize(static_cast<std::size_t>(layers), shares.back());
      break;
    }
    layout::Bits next = reached;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const std::int64_t head : heads) {
        for (const std::int64_t column : view.row(head, row)) {
          // The rows of blocks at the positions of these keys pass on all information that has
          // reached them.
          const auto sources = layout::overlap(column * view.block_columns - shift,
                                               (column + 1) * view.block_columns - 1 - shift,
                                               view.seq_q, view.block_rows);
          for (std::int64_t source = sources.begin; source < sources.end; ++source) {
            next.unite(row, reached, source);
          }
        }
      }
    }
    reached = std::move(next);
  }
  return shares;
}

}  // namespace annulus::inline v0
