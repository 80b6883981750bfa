#ifndef ANNULUS_AUTOTUNE_REPLAY_H_
#define ANNULUS_AUTOTUNE_REPLAY_H_

// Searches whose answers a journal knows (autotune/journal.h).

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "autotune/search.h"
#include "autotune/workbench.h"
#include "tuned/journal.h"

namespace annulus::autotune {

// The search that a journal is of, up to where it ends, without a device. What was not measured yet
// counts as not tried, and the result is then not complete. Throws Error{kUnsupported} where the
// default was not measured yet.
SearchResult replay(const tuned::Journal& journal,
                    const std::function<void(const SearchProgress&)>& = {});

// Returns how long replay() takes at most, in steps that each take about as long as decode_journal
// takes for a byte: a turn of the search looks at all candidates, and what it learns it compares
// with what was learnt before, for each of them.
std::int64_t replay_steps(const tuned::Journal& journal);

// A workbench that answers from a journal what is in it, and asks another one for everything else.
class JournalWorkbench : public Workbench {
 public:
  // `inner` answers what is not in the journal, and must outlive this; null: what is not known ends
  // the search, as a stop does (Error{kCancelled}). `found` is called with each new finding.
  JournalWorkbench(Workbench* inner, const tuned::Journal& journal,
                   std::function<void(const tuned::Finding&)> found = {});

  std::optional<Dropped> prepare(const attention::KernelConfig& config) override;
  void foresee(std::span<const attention::KernelConfig> next) override;
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds, tuned::CacheState l2) override;
  void rest(int attempt) override;
  bool exact() const override { return exact_; }

 private:
  using Names = std::vector<std::string>;
  // What is asked: configurations, rounds, and whether L2 is cold.
  using Question = std::tuple<Names, std::size_t, bool>;
  Workbench& inner();
  void keep(tuned::Finding finding);
  void know(const tuned::Finding& finding);
  std::vector<std::vector<double>> predict(std::span<const attention::KernelConfig> configs,
                                           const Names& names);

  Workbench* inner_;
  bool exact_;
  std::string default_config_;
  std::function<void(const tuned::Finding&)> found_;
  std::map<std::string, std::string> dropped_;
  std::map<std::string, std::vector<double>> tried_;  // by name: the times of the last measurement
  // The answers of the journal that were not given yet, in their order: a search may ask twice.
  std::map<Question, std::deque<std::vector<std::vector<double>>>> answers_;
  std::optional<int> rest_;  // that is due before the next measurement
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_REPLAY_H_
