#ifndef ANNULUS_AUTOTUNE_REPLAY_H_
#define ANNULUS_AUTOTUNE_REPLAY_H_

// Searches whose answers come from a journal (tuned/journal.h).

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

// Repeats the search of a journal, up to the journal's end, without a device. Candidates that were
// not measured yet count as not tried; the result is then not complete. Throws Error{kUnsupported}
// if the default was not measured yet.
SearchResult replay(const tuned::Journal& journal,
                    const std::function<void(const SearchProgress&)>& = {});

// The most time that replay() takes, in steps. A step takes about as long as decode_journal() takes
// for one byte. Each turn of a search evaluates all candidates. Each observation is combined with
// all earlier observations, for every candidate.
std::int64_t replay_steps(const tuned::Journal& journal);

// A workbench that returns answers from a journal, and gets all other answers from another
// workbench.
class JournalWorkbench : public Workbench {
 public:
  // `inner` gives the answers that are not in the journal, and must outlive this object. If it is
  // null, a missing answer ends the search as a stop does (Error{kCancelled}). `found` is called
  // with each new finding.
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
  // A measurement: configurations, rounds, and whether L2 is cold.
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
  std::map<std::string, std::vector<double>> tried_;  // [name]: the times of the last measurement
  // The answers of the journal that were not used yet, in their order. A search may repeat a
  // measurement.
  std::map<Question, std::deque<std::vector<std::vector<double>>>> answers_;
  std::optional<int> rest_;  // the rest that is due before the next measurement
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_REPLAY_H_
