#include "attention/tiles/row_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "attention/tiles/tile_runs.h"
#include "base/work.h"

namespace annulus::attention {
namespace {

using kernels::RowGroup;
using kernels::RowRuns;

// A kernel searches the groups one by one for the group of its row.
constexpr std::size_t kMaxGroups = 32;
// The most rows after which a progression may repeat. With a longer period, groups would take as
// much memory as single records.
constexpr std::int64_t kMaxPeriod = 256;
// The least number of terms of a progression that is worth a group.
constexpr std::int64_t kLeastTerms = 4;

RowRuns difference(const RowRuns& a, const RowRuns& b) { return a.stepped(b, -1); }

class GroupFinder {
 public:
  GroupFinder(pattern::Classifier& classifier, std::int64_t head)
      : classifier_(classifier),
        head_(head),
        period_(classifier.block_columns() /
                std::gcd(classifier.block_rows(), classifier.block_columns())) {}

  std::optional<RowGroups> run() {
    if (period_ > kMaxPeriod) return std::nullopt;
    for (std::int64_t row = 0; row < classifier_.rows();) {
      std::int64_t taken = add_progression(row, classifier_.alike_rows(row));
      if (taken == 0) {
        add_one(row);
        taken = 1;
      }
      if (has_more_runs_ || made_.groups.size() > kMaxGroups) return std::nullopt;
      row += taken;
    }
    put_in_order();
    return std::move(made_);
  }

 private:
  RowRuns at(std::int64_t row) {
    const std::optional<RowRuns> runs = row_of_runs(classifier_.row(head_, row));
    has_more_runs_ = has_more_runs_ || !runs;
    return runs.value_or(RowRuns{});
  }

  void add(std::int64_t row, std::int64_t rows, const std::vector<RowRuns>& records,
           const std::vector<RowRuns>& steps) {
    made_.groups.push_back({.row = static_cast<int>(row),
                            .rows = static_cast<int>(rows),
                            .order = 0,
                            .descending = 0,
                            .period = static_cast<int>(records.size()),
                            .first = static_cast<int>(made_.runs.size()),
                            .padding = {}});
    made_.runs.insert(made_.runs.end(), records.begin(), records.end());
    made_.runs.insert(made_.runs.end(), steps.begin(), steps.end());
  }

  // Adds a row to the last group if the row continues it, else as a group of its own.
  void add_one(std::int64_t row) {
    const RowRuns runs = at(row);
    if (!made_.groups.empty()) {
      RowGroup& last = made_.groups.back();
      if (last.runs_of(made_.runs.data(), static_cast<int>(row)) == runs) {
        ++last.rows;
        return;
      }
    }
    add(row, 1, {runs}, {RowRuns{}});
  }

  // Adds the leading rows, of the `alike` rows from `row` on, that form a progression. Returns
  // their number. Over a period of rows, moving ends move by whole tiles. So each number of a
  // record is a linear function of the term, or the positive part of one: for example the number of
  // full tiles between a moving end and a fixed end, or the distance of two runs that meet. If such
  // a function lies on one line at the terms 0, 1 and n, it is linear from 0 to n, for every n.
  std::int64_t add_progression(std::int64_t row, std::int64_t alike) {
    const std::int64_t terms = alike / period_;
    if (terms < kLeastTerms) return 0;
    std::vector<RowRuns> records, steps;
    for (std::int64_t i = 0; i < period_; ++i) records.push_back(at(row + i));
    for (std::int64_t i = 0; i < period_; ++i) {
      steps.push_back(difference(at(row + period_ + i), records[static_cast<std::size_t>(i)]));
    }
    const auto is_linear_at = [&](std::int64_t term) {
      for (std::int64_t i = 0; i < period_; ++i) {
        const auto which = static_cast<std::size_t>(i);
        if (!(at(row + term * period_ + i) ==
              records[which].stepped(steps[which], static_cast<int>(term)))) {
          return false;
        }
      }
      return true;
    };
    std::int64_t linear = 1, bent = terms;  // terms at which the record is linear, and at which it
                                            // is not
    if (is_linear_at(terms - 1)) linear = terms - 1;
    while (bent - linear > 1) {
      const std::int64_t middle = linear + (bent - linear) / 2;
      (is_linear_at(middle) ? linear : bent) = middle;
    }
    if (linear + 1 < kLeastTerms) return 0;
    const auto is_same = [&](const RowRuns& runs) { return runs == records.front(); };
    const auto is_zero = [](const RowRuns& step) { return step == RowRuns{}; };
    if (std::ranges::all_of(records, is_same) && std::ranges::all_of(steps, is_zero)) {
      records.resize(1);
      steps.resize(1);
    }
    add(row, (linear + 1) * period_, records, steps);
    return (linear + 1) * period_;
  }

  // Sets the launch order: groups come in the order of their longest row, and each group starts at
  // the end with longer rows.
  void put_in_order() {
    std::vector<std::pair<std::int64_t, RowGroup>> groups;
    for (RowGroup& group : made_.groups) {
      const RowRuns* const steps = made_.runs.data() + group.first + group.period;
      std::int64_t growth = 0;
      for (int i = 0; i < group.period; ++i) growth += steps[i].count;
      group.descending = growth > 0;
      groups.emplace_back(sum_group(group, made_.runs).longest_row, group);
    }
    std::ranges::stable_sort(groups, std::greater<>(), [](const auto& one) { return one.first; });
    int order = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      made_.groups[i] = groups[i].second;
      made_.groups[i].order = order;
      order += made_.groups[i].rows;
    }
  }

  pattern::Classifier& classifier_;
  const std::int64_t head_;
  const std::int64_t period_;
  bool has_more_runs_ = false;
  RowGroups made_;
};

}  // namespace

std::optional<RowGroups> find_groups(pattern::Classifier& classifier, std::int64_t head) {
  return GroupFinder(classifier, head).run();
}

RowSums sum_group(const RowGroup& group, const std::vector<RowRuns>& runs) {
  RowSums sums;
  for (int i = 0; i < std::min(group.period, group.rows); ++i) {
    const RowRuns& record = runs[static_cast<std::size_t>(group.first + i)];
    const RowRuns& step = runs[static_cast<std::size_t>(group.first + group.period + i)];
    const std::int64_t terms = (group.rows - 1 - i) / group.period + 1;
    const auto sum = [&](std::int64_t first, std::int64_t by) {
      return terms * first + terms * (terms - 1) / 2 * by;
    };
    const std::int64_t full = sum(std::int64_t{record.full_count[0]} + record.full_count[1],
                                  std::int64_t{step.full_count[0]} + step.full_count[1]);
    const std::int64_t first = record.count, last = first + (terms - 1) * step.count;
    // A length that changes can be 0 only in the first or the last term.
    const std::int64_t empty =
        step.count == 0 ? (first == 0 ? terms : 0) : (first == 0 ? 1 : 0) + (last == 0 ? 1 : 0);
    sums = (i == 0 ? RowSums{.shortest_row = first} : sums) +
           RowSums{full, sum(first, step.count) - full, std::max(first, last),
                   std::min(first, last), empty};
  }
  return sums;
}

RowSums operator+(const RowSums& a, const RowSums& b) {
  return {a.full_tiles + b.full_tiles, a.partial_tiles + b.partial_tiles,
          std::max(a.longest_row, b.longest_row), std::min(a.shortest_row, b.shortest_row),
          a.empty_rows + b.empty_rows};
}

RowSums RowGroups::sums() const {
  RowSums all;
  for (const RowGroup& group : groups) {
    const RowSums sums = sum_group(group, runs);
    all = (&group == groups.data() ? RowSums{.shortest_row = sums.shortest_row} : all) + sums;
  }
  return all;
}

bool RowGroups::are_better() const {
  constexpr std::int64_t kTimesShorter = 4;
  // No device runs more works than this at a time.
  constexpr std::int64_t kWorksAtATime = 4096;
  std::int64_t rows = 0, tiles = 0;
  std::int64_t shortest = INT64_MAX;  // the shortest of the rows so far
  std::int64_t late = 0;              // the longest row after a shorter one
  for (const RowGroup& group : groups) {
    const RowSums sums = sum_group(group, runs);
    // Rows of a group that differ by a tile are not put in order.
    if (sums.longest_row - 1 > shortest) late = std::max(late, sums.longest_row);
    shortest = std::min(shortest, sums.shortest_row);
    rows += group.rows;
    tiles += sums.tiles();
  }
  const auto bytes =
      static_cast<std::int64_t>(groups.size() * sizeof(RowGroup) + runs.size() * sizeof(RowRuns));
  const auto bytes_of_rows = rows * static_cast<std::int64_t>(sizeof(RowRuns) + sizeof(int));
  return rows > 0 && kTimesShorter * bytes <= bytes_of_rows && late * kWorksAtATime <= tiles;
}

}  // namespace annulus::attention
