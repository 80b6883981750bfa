#include "batch/row_forms.h"

#include <algorithm>
#include <optional>

#include "annulus/attention.h"
#include "base/fail.h"
#include "pattern/evaluate.h"
#include "pattern/node.h"
#include "pattern/rows_alike.h"

namespace annulus::batch {
namespace {

using kernels::RowForm;
using pattern::Interval;
using pattern::IntervalSet;

// No moving end of a query within kMaxPosition comes near the ends of this universe.
constexpr Interval kUniverse = {-(std::int64_t{1} << 40), std::int64_t{1} << 40};

// The text of the first leaf whose keys are no runs, if there is one.
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

// The form of query q, of which `next` are the keys of the query behind it where that goes on in
// the same way.
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

// Whether the form tells the keys of query q.
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

class FormFinder {
 public:
  explicit FormFinder(const Pattern& pattern)
      : pattern_(pattern), evaluator_(pattern, {}), alike_(evaluator_.pattern().node()) {}

  std::vector<RowForm> run() {
    for (std::int64_t q = -kMaxPosition; q <= kMaxPosition;) {
      const std::int64_t left = kMaxPosition + 1 - q;
      std::int64_t rows = std::min(alike_.from(q, kUniverse), left);
      const IntervalSet keys = row(q);
      if (rows > 1) {
        const IntervalSet next = row(q + 1);
        const RowForm form = form_of(q, keys, next.size() == keys.size() ? &next : nullptr);
        // The progression of counts promises this; the ends of a row are what is needed.
        rows = last_told(form, q, rows) - q + 1;
        add(form, q, keys);
      } else {
        add(form_of(q, keys, nullptr), q, keys);
      }
      q += rows;
    }
    return std::move(forms_);
  }

 private:
  IntervalSet row(std::int64_t q) {
    const IntervalSet& keys = evaluator_.row(0, q, kUniverse);
    if (keys.size() <= kernels::kMostRuns) return keys;
    base::fail(ErrorCode::kUnsupported,
               "the query at position {} sees {} runs of keys in '{}', and a batch takes up to {}; "
               "plan each request by itself",
               q, keys.size(), pattern_.to_string(), static_cast<int>(kernels::kMostRuns));
  }

  // The last of the rows that the form tells, if it tells all before it.
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
    if (forms_.size() == kernels::kMostForms) {
      base::fail(ErrorCode::kUnsupported,
                 "what queries see changes its form more than {} times in '{}', last at position "
                 "{}, which is more than a batch takes; plan each request by itself",
                 static_cast<int>(kernels::kMostForms), pattern_.to_string(), q);
    }
    forms_.push_back(form);
  }

  // Whether the ends of b move as those of a do.
  static bool goes_on(const RowForm& a, const RowForm& b) {
    for (int i = 0; i < b.runs; ++i) {
      if (a.first[i].moves != b.first[i].moves || a.end[i].moves != b.end[i].moves) return false;
    }
    return true;
  }

  const Pattern& pattern_;
  pattern::Evaluator evaluator_;
  pattern::RowsAlike alike_;
  std::vector<RowForm> forms_;
};

}  // namespace

std::vector<RowForm> find_forms(const Pattern& pattern, std::int64_t heads) {
  if (pattern.branches().size() > 1) {
    base::fail(ErrorCode::kUnsupported,
               "sum(...) has no kernel for batches; run its branches with carried states");
  }
  if (pattern.batches() > 1 || pattern.distinct_heads(heads) != 1) {
    base::fail(ErrorCode::kUnsupported,
               "'{}' shows {} different pairs, but all heads of all requests of a batch see the "
               "same; plan a batch for each group of heads that do",
               pattern.to_string(), pattern.batches() > 1 ? "batches" : "heads");
  }
  if (const auto leaf = leaf_without_runs(pattern.node())) {
    base::fail(ErrorCode::kUnsupported,
               "{} has no kernel for batches, because the keys of a query are not a few runs; plan "
               "each request by itself",
               *leaf);
  }
  return FormFinder(pattern).run();
}

int most_runs(const std::vector<RowForm>& forms) {
  // Queries on both sides of a boundary see together what a tile of them sees.
  int most = 1;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    most = std::max(most, forms[i].runs);
    if (i == 0) continue;
    constexpr int kAll = static_cast<int>(kMaxPosition);
    const kernels::KeyRuns runs =
        kernels::runs_of(forms.data(), static_cast<int>(forms.size()),
                         std::max(forms[i].from - 1, -kAll), 2, -kAll, 2 * (kAll - 1));
    for (int run = 0; run < kernels::kMostRuns; ++run) {
      if (runs.begin[run] < runs.end[run]) most = std::max(most, run + 1);
    }
  }
  return most;
}

}  // namespace annulus::batch
