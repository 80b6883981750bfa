#include "batch/row_forms.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "annulus/problem.h"
#include "base/fail.h"
#include "pattern/evaluate.h"
#include "pattern/interval.h"
#include "pattern/node.h"
#include "pattern/rows_alike.h"

namespace annulus::batch {
namespace {

using kernels::RowForm;
using pattern::Interval;
using pattern::IntervalSet;

// No moving end of a query within kMaxPosition is near the ends of this universe.
constexpr Interval kUniverse = {-(std::int64_t{1} << 40), std::int64_t{1} << 40};

// The text of the first leaf whose keys are not runs, if there is one.
std::optional<std::string> leaf_without_runs(const pattern::Node& node) {
  if (node.kind == pattern::Kind::kHierarchical) return "hierarchical";
  if (node.kind == pattern::Kind::kLeaf) {
    const pattern::leaves::Structure structure = pattern::leaves::structure_of(node.leaf);
    const bool has_runs = !structure.is_scattered && structure.context_block == 0 &&
                          structure.layout == nullptr &&
                          !pattern::leaves::stripes_of(node.leaf, 0, 0);
    if (has_runs) return std::nullopt;
    std::string text;
    std::visit([&](const auto& leaf) { leaf.print(&text); }, node.leaf);
    return text;
  }
  for (const pattern::NodePointer& child : node.children) {
    if (auto text = leaf_without_runs(*child)) return text;
  }
  return std::nullopt;
}

int position(std::int64_t key) {
  return static_cast<int>(std::clamp(key, -2 * kMaxPosition + 1, 2 * kMaxPosition - 1));
}

// The form of query q. `next` is the keys of the following query if that query continues the form.
RowForm form_of(std::int64_t q, const IntervalSet& keys, const IntervalSet* next) {
  RowForm form{};
  form.from = static_cast<int>(q);
  form.runs = static_cast<int>(keys.size());
  const auto end_of = [&](std::int64_t here, std::int64_t there) -> kernels::RunEnd {
    if (there == here) return {position(here), 0};
    return {position(here - q), 1};
  };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Interval& behind = next != nullptr ? (*next)[i] : keys[i];
    form.first[i] = end_of(keys[i].begin, behind.begin);
    form.end[i] = end_of(keys[i].end, behind.end);
  }
  return form;
}

// Whether the form describes exactly the keys of query q.
bool tells(const RowForm& form, std::int64_t q, const IntervalSet& keys) {
  if (static_cast<std::size_t>(form.runs) != keys.size()) return false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (position(form.first[i].at(q)) != position(keys[i].begin) ||
        position(form.end[i].at(q)) != position(keys[i].end)) {
      return false;
    }
  }
  return true;
}

// The forms of what some heads see together. The sets of keys of the heads are joined by `join`.
class FormFinder {
 public:
  using Join = void (*)(const IntervalSet&, const IntervalSet&, IntervalSet*);
  FormFinder(const Pattern& pattern, const std::vector<std::int64_t>& heads, Join join)
      : evaluator_(pattern, {}), alike_(evaluator_.pattern().node()), heads_(heads), join_(join) {}

  // Returns nullopt if there are too many forms or runs; then why_not() has the reason.
  std::optional<std::vector<RowForm>> run() {
    for (std::int64_t q = -kMaxPosition; q <= kMaxPosition && why_not_.empty();) {
      const std::int64_t left = kMaxPosition + 1 - q;
      std::int64_t rows = std::min(alike_.from(q, kUniverse), left);
      const IntervalSet keys = row(q);
      if (rows > 1) {
        const IntervalSet next = row(q + 1);
        const RowForm form = form_of(q, keys, next.size() == keys.size() ? &next : nullptr);
        // The progression only ensures the counts of keys; a form also needs the ends of each row.
        rows = last_told(form, q, rows) - q + 1;
        add(form, q, keys);
      } else {
        add(form_of(q, keys, nullptr), q, keys);
      }
      q += rows;
    }
    if (!why_not_.empty()) return std::nullopt;
    return std::move(forms_);
  }
  const std::string& why_not() const { return why_not_; }

 private:
  IntervalSet row(std::int64_t q) {
    IntervalSet keys = evaluator_.row(heads_.front(), q, kUniverse);
    for (std::size_t i = 1; i < heads_.size(); ++i) {
      join_(keys, evaluator_.row(heads_[i], q, kUniverse), &joined_);
      std::swap(keys, joined_);
    }
    if (keys.size() > kernels::kMaxRuns) {
      why_not_ = fmt::format(
          "the query at position {} sees {} runs of keys, and a batch takes up "
          "to {}",
          q, keys.size(), static_cast<int>(kernels::kMaxRuns));
      keys.clear();
    }
    return keys;
  }

  // The last of the rows that the form describes, if it describes all rows before it.
  std::int64_t last_told(const RowForm& form, std::int64_t q, std::int64_t rows) {
    std::int64_t told = q, untold = q + rows;
    if (tells(form, untold - 1, row(untold - 1))) return untold - 1;
    while (untold - told > 1) {
      const std::int64_t middle = told + (untold - told) / 2;
      (tells(form, middle, row(middle)) ? told : untold) = middle;
    }
    return told;
  }

  void add(const RowForm& form, std::int64_t q, const IntervalSet& keys) {
    if (!forms_.empty() && tells(forms_.back(), q, keys) && goes_on(forms_.back(), form)) return;
    if (forms_.size() == kernels::kMaxForms) {
      why_not_ = fmt::format(
          "the keys that queries see change their form more than {} times, last at position {}, "
          "which is more than a batch takes",
          static_cast<int>(kernels::kMaxForms), q);
      return;
    }
    forms_.push_back(form);
  }

  // Whether the ends of b move in the same way as the ends of a.
  static bool goes_on(const RowForm& a, const RowForm& b) {
    for (int i = 0; i < b.runs; ++i) {
      if (a.first[i].moves != b.first[i].moves || a.end[i].moves != b.end[i].moves) return false;
    }
    return true;
  }

  pattern::Evaluator evaluator_;
  pattern::RowsAlike alike_;
  const std::vector<std::int64_t>& heads_;
  Join join_;
  IntervalSet joined_;
  std::vector<RowForm> forms_;
  std::string why_not_;
};

kernels::RowForms view(const std::vector<RowForm>& forms) {
  return {forms.data(), static_cast<int>(forms.size())};
}

}  // namespace

bool operator==(const HeadForms& a, const HeadForms& b) {
  // A form has only numbers, without padding.
  static_assert(sizeof(RowForm) == sizeof(int) * (2 + 4 * kernels::kMaxRuns));
  const auto same = [](const std::vector<RowForm>& x, const std::vector<RowForm>& y) {
    return std::ranges::equal(x, y, [](const RowForm& one, const RowForm& other) {
      return std::memcmp(&one, &other, sizeof(RowForm)) == 0;
    });
  };
  return same(a.some, b.some) && same(a.all, b.all);
}

void check_has_forms(const Pattern& pattern) {
  if (pattern.branches().size() > 1) {
    base::fail(ErrorCode::kUnsupported,
               "sum(...) has no kernel for batches; run its branches with carried states");
  }
  if (pattern.batches() > 1) {
    base::fail(
        ErrorCode::kUnsupported,
        "'{}' shows different pairs to batches, but all requests of a batch see the same; plan "
        "a batch for each group of requests that see the same",
        pattern.to_string());
  }
  if (const auto leaf = leaf_without_runs(pattern.node())) {
    base::fail(ErrorCode::kUnsupported,
               "{} has no kernel for batches, because the keys of a query are not a few runs; plan "
               "each request by itself",
               *leaf);
  }
}

HeadForms find_forms(const Pattern& pattern, const std::vector<std::int64_t>& heads) {
  HeadForms found;
  FormFinder some(pattern, heads, pattern::unite);
  if (auto forms = some.run()) {
    found.some = std::move(*forms);
  } else {
    base::fail(ErrorCode::kUnsupported, "'{}': {}; plan each request by itself",
               pattern.to_string(), some.why_not());
  }
  if (heads.size() == 1) {
    found.all = found.some;
    return found;
  }
  RowForm none{};
  none.from = static_cast<int>(-kMaxPosition);
  FormFinder all(pattern, heads, pattern::intersect);
  found.all = all.run().value_or(std::vector<RowForm>{none});
  return found;
}

int max_runs(const HeadForms& forms, std::int64_t queries) {
  int most = 1;
  for (const RowForm& form : forms.all) most = std::max(most, form.runs);
  // Runs of one moving form only grow together. So among ranges of queries that span several forms,
  // the range from the last query of the first form to the first query of the last form sees the
  // most runs.
  constexpr int kAll = static_cast<int>(kMaxPosition);
  for (std::size_t i = 0; i < forms.some.size(); ++i) {
    most = std::max(most, forms.some[i].runs);
    if (i == 0) continue;
    const int first = std::max(forms.some[i].from - 1, -kAll);
    for (std::size_t last = i; last < forms.some.size(); ++last) {
      const std::int64_t count = std::int64_t{forms.some[last].from} - first + 1;
      if (count > queries) break;
      const kernels::KeyRuns runs = kernels::runs_of(
          view(forms.some), view(forms.all), first, static_cast<int>(count), -kAll, 2 * (kAll - 1));
      for (int run = 0; run < kernels::kMaxRuns; ++run) {
        if (runs.begin[run] < runs.end[run]) most = std::max(most, run + 1);
      }
    }
  }
  return most;
}

}  // namespace annulus::batch
