// Makes a layout with a wanted number of blocks. Every decision uses whole numbers, so the result
// is the same on every machine.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/work.h"
#include "layout/builder.h"

namespace annulus::layout {
namespace {

// Divides `wanted` among weights whose sum is `whole`. The running sum of the shares is rounded
// down at each weight, so all shares add up to `wanted` and none exceeds its weight.
class Shares {
 public:
  Shares(std::int64_t wanted, std::int64_t whole) : wanted_(wanted), whole_(whole) {}
  std::int64_t next(std::int64_t weight) {
    if (whole_ == 0) return 0;
    const std::int64_t before = given();
    sum_ += weight;
    return given() - before;
  }

 private:
  __extension__ using Wide = __int128;
  std::int64_t given() const { return static_cast<std::int64_t>(Wide{sum_} * wanted_ / whole_); }
  std::int64_t wanted_;
  std::int64_t whole_;
  std::int64_t sum_ = 0;
};

struct Candidate {
  std::int64_t distance = 0;
  std::int32_t column = 0;
  Block block = Block::kFull;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.column < b.column;
  }
};

bool by_column(const Candidate& a, const Candidate& b) { return a.column < b.column; }

void write_row(std::vector<Candidate>* row, Builder* builder) {
  std::sort(row->begin(), row->end(), by_column);
  for (const Candidate& block : *row) builder->add(block.column, block.block);
  builder->end_row();
}

class Pruner {
 public:
  Pruner(const LayoutView& layout, std::int64_t head) : layout_(layout), head_(head) {}

  void run(std::int64_t wanted, Builder* builder) {
    std::int64_t optional = 0;
    std::int64_t firm = 0;
    for (std::int64_t row = 0; row < layout_.rows(); ++row) {
      take(row);
      firm += static_cast<std::int64_t>(firm_.size());
      optional += static_cast<std::int64_t>(optional_.size());
    }
    if (wanted < firm) {
      base::fail(ErrorCode::kInvalidArgument,
                 "head {} has {} blocks on the diagonal and in column 0, which are always kept; {} "
                 "are wanted",
                 head_, firm, wanted);
    }
    Shares shares(wanted - firm, optional);
    for (std::int64_t row = 0; row < layout_.rows(); ++row) {
      take(row);
      const auto share = shares.next(static_cast<std::int64_t>(optional_.size()));
      // Keeps the `share` nearest blocks; their order does not matter, since write_row() sorts by
      // column.
      std::nth_element(optional_.begin(), optional_.begin() + share, optional_.end());
      firm_.insert(firm_.end(), optional_.begin(), optional_.begin() + share);
      write_row(&firm_, builder);
    }
  }

 private:
  void take(std::int64_t row) {
    firm_.clear();
    optional_.clear();
    base::charge(1 + begin_of(layout_, head_, row + 1) - begin_of(layout_, head_, row));
    for (std::int64_t at = begin_of(layout_, head_, row); at < begin_of(layout_, head_, row + 1);
         ++at) {
      const std::int32_t column = layout_.indices[static_cast<std::size_t>(at)];
      const std::int64_t distance = distance_to_diagonal(layout_, row, column);
      auto& list = distance == 0 || column == 0 ? firm_ : optional_;
      list.push_back({distance, column, block_at(layout_, at)});
    }
  }

  const LayoutView& layout_;
  std::int64_t head_;
  // The blocks of one row that are never dropped, and the other blocks of the row.
  std::vector<Candidate> firm_, optional_;
};

class Adder {
 public:
  // `within` may be null.
  Adder(const LayoutView& layout, std::int64_t head, const LayoutView* within,
        std::int64_t within_head)
      : layout_(layout), head_(head), within_(within), within_head_(within_head) {}

  void run(std::int64_t wanted, std::int64_t kept, Builder* builder) {
    std::int64_t room = 0;
    base::charge(layout_.rows());
    for (std::int64_t row = 0; row < layout_.rows(); ++row) room += room_of(row);
    if (wanted - kept > room) {
      base::fail(ErrorCode::kInvalidArgument,
                 "head {} has {} blocks and room for {} more; {} are wanted", head_, kept, room,
                 wanted);
    }
    Shares shares(wanted - kept, room);
    for (std::int64_t row = 0; row < layout_.rows(); ++row) {
      const std::int64_t share = shares.next(room_of(row));
      row_.clear();
      for (std::int64_t at = begin_of(layout_, head_, row); at < begin_of(layout_, head_, row + 1);
           ++at) {
        row_.push_back({0, layout_.indices[static_cast<std::size_t>(at)], block_at(layout_, at)});
      }
      if (share > 0) within_ == nullptr ? add_nearest(row, share) : add_of_within(row, share);
      write_row(&row_, builder);
    }
  }

 private:
  bool has(std::int64_t row, std::int64_t column) const {
    const auto columns = layout_.row(head_, row);
    return std::binary_search(columns.begin(), columns.end(), static_cast<std::int32_t>(column));
  }

  std::int64_t room_of(std::int64_t row) {
    if (within_ == nullptr) {
      return layout_.columns() - static_cast<std::int64_t>(layout_.row(head_, row).size());
    }
    take_within(row);
    return static_cast<std::int64_t>(candidates_.size());
  }

  void take_within(std::int64_t row) {
    candidates_.clear();
    base::charge(1 + begin_of(*within_, within_head_, row + 1) -
                 begin_of(*within_, within_head_, row));
    for (std::int64_t at = begin_of(*within_, within_head_, row);
         at < begin_of(*within_, within_head_, row + 1); ++at) {
      const std::int32_t column = within_->indices[static_cast<std::size_t>(at)];
      if (has(row, column)) continue;
      candidates_.push_back(
          {distance_to_diagonal(layout_, row, column), column, block_at(*within_, at)});
    }
  }

  void add_of_within(std::int64_t row, std::int64_t share) {
    take_within(row);
    std::nth_element(candidates_.begin(), candidates_.begin() + share, candidates_.end());
    row_.insert(row_.end(), candidates_.begin(), candidates_.begin() + share);
  }

  // Adds missing blocks outwards from the diagonal. On each side distances never decrease, so the
  // nearer of the next two blocks is always the nearest of all.
  void add_nearest(std::int64_t row, std::int64_t share) {
    const std::int64_t position = row * layout_.block_rows + layout_.seq_k - layout_.seq_q;
    std::int64_t right =
        std::clamp<std::int64_t>(position / layout_.block_columns, 0, layout_.columns() - 1);
    std::int64_t left = right - 1;
    while (share > 0) {
      base::charge(1);
      const bool go_left = left >= 0 && (right >= layout_.columns() ||
                                         distance_to_diagonal(layout_, row, left) <=
                                             distance_to_diagonal(layout_, row, right));
      const std::int64_t column = go_left ? left-- : right++;
      if (has(row, column)) continue;
      row_.push_back({0, static_cast<std::int32_t>(column), Block::kFull});
      --share;
    }
  }

  const LayoutView& layout_;
  std::int64_t head_;
  const LayoutView* within_;
  std::int64_t within_head_;
  std::vector<Candidate> row_, candidates_;
};

BlockLayout with_density(const LayoutView& layout, Density d, const LayoutView* within) {
  const base::Work work({}, "giving a layout a density");
  layout.validate();
  if (within != nullptr) within->validate();
  const HeadPairs heads = head_pairs(layout, within == nullptr ? layout : *within);
  if (!(d.value >= 0 && d.value <= 1)) {
    base::fail(ErrorCode::kInvalidArgument, "a density of {}; it is in [0, 1]", d.value);
  }
  const double all = static_cast<double>(layout.rows()) * static_cast<double>(layout.columns());
  if (all > 9e15) {
    base::fail(ErrorCode::kUnsupported,
               "{} x {} blocks are too many to count exactly; use larger blocks by reblock()",
               layout.rows(), layout.columns());
  }
  const auto wanted = static_cast<std::int64_t>(std::llround(d.value * all));
  base::expect(wanted, "the blocks of a head");
  Builder builder(layout.block_rows, layout.block_columns, layout.seq_q, layout.seq_k,
                  static_cast<std::int64_t>(heads.pairs.size()));
  for (const auto& [own, other] : heads.pairs) {
    const std::int64_t kept = begin_of(layout, own, layout.rows()) - begin_of(layout, own, 0);
    if (wanted <= kept) {
      Pruner(layout, own).run(wanted, &builder);
    } else {
      Adder(layout, own, within, other).run(wanted, kept, &builder);
    }
  }
  return builder.finish(heads.map);
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

BlockLayout with_density(const LayoutView& layout, Density d) {
  return layout::with_density(layout, d, nullptr);
}
BlockLayout with_density(const LayoutView& layout, Density d, const LayoutView& within) {
  return layout::with_density(layout, d, &within);
}

}  // namespace annulus::inline v0
