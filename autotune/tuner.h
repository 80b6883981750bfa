#ifndef ANNULUS_AUTOTUNE_TUNER_H_
#define ANNULUS_AUTOTUNE_TUNER_H_

// One problem from its search space to an entry for the store: enumerate, order, verify, measure.
// It knows no store: the facade decides what is looked up and where results go.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/batch_operands.h"
#include "autotune/journal_file.h"
#include "autotune/search.h"
#include "autotune/turns.h"
#include "tuned/entry.h"
#include "tuned/journal.h"
#include "tuned/space.h"

namespace annulus::autotune {

// What a search is for.
struct Target {
  Problem problem;                   // that is measured
  Problem checked;                   // whose parts are verified: the same, or one with fewer heads
  tuned::ShapeKey shape;             // that the result is kept for
  attention::KernelConfig standard;  // the heuristic's choice
  // A class of requests that is measured in place of `problem`, which then has its sizes.
  std::optional<tuned::BatchTarget> batch = {};
  // Why a configuration is no candidate although it is legal, or nothing.
  std::function<std::optional<std::string>(const attention::KernelConfig&)> why_not;
  // Writes to an entry what it is that was measured (entry_problem.h).
  std::function<void(tuned::Entry::Origin*)> state;
};
// Requires: a valid problem. Throws as choose_config and pattern::emit do.
Target target_of(const Problem& problem, const attention::DeviceLimits& limits);
// Where each run chooses blocks, a stand-in for the problem is measured (stand_in.h), which is
// drawn from `seed`. Requires: selection::validate passes.
Target target_of(const Problem& problem, const Selection& selection,
                 const attention::DeviceLimits& limits, std::uint64_t seed);

// The target is a class of a batch's requests. Requires: validate(batch.problem) passes, and what
// BatchTarget says. Throws as batch::choose_config does.
Target target_of(const tuned::BatchTarget& batch, const attention::DeviceLimits& limits);

// What an entry was found with, for measuring it again. Throws as problem_of, selected_of and
// batch_of (entry_problem.h), and as the functions above.
Target stated_target(const tuned::Entry& entry, const attention::DeviceLimits& limits,
                     std::uint64_t seed);

// The candidates of a problem in the space's order, each with the prediction of the static model,
// and the heuristic's choice among them. Configurations are left out whose CTAs pack heads, or
// whose clusters share rows, that see different keys in this problem.
struct Candidates {
  std::vector<tuned::Trial> trials;
  std::size_t default_at = 0;
  int equal = 0;  // Space::equal
};

// Empty where stopped(), which is asked now and then, turned true, since counting the tiles of a
// long problem takes time. Requires: B, Sq > 0. Throws as pattern::emit does.
std::optional<Candidates> candidates_of(const Target& target, const attention::DeviceLimits& limits,
                                        const attention::PipeDevice& pipes, bool simulated,
                                        const std::function<bool()>& stopped);

// The parts of the target that its candidates are verified on (parts.h): each of them has a plan
// for each candidate.
std::vector<Problem> parts_for(const Target& target, const Candidates& candidates,
                               double max_pairs);

struct TuneJob {
  Target target;
  Candidates candidates;
  device::ContextPointer context;
  jit::KernelCache& kernels;
  attention::DeviceLimits limits;
  tuned::SearchOptions
      search;  // those nominated are replaced by a journal's, where the search goes on
  std::uint64_t seed = 0;
  // Pairs that the parts may have; 0: as many as take the oracle, or the simulator, about a second.
  double max_pairs = 0;
  JournalFile* journal = nullptr;  // of this search, by subject_of(); null: none is kept
  Turns* turns = nullptr;          // when the device may be used; null: at any time
  int threads = 0;                 // of the oracle; 0: one per processor
};

// All that the answers of a search depend on, as the first line of its journal states it. Of
// `origin` the versions count. `identity` is that of the device (device_key.h).
base::Json subject_of(const Target& target, const Candidates& candidates,
                      const std::string& identity, bool simulated,
                      const tuned::Entry::Origin& origin, const tuned::SearchOptions& options,
                      std::uint64_t seed);

// Runs on the default stream and waits for it. On a simulated device nothing else may run
// meanwhile, or in a turn, because its counters are what is measured; it runs in checked mode for
// that time, which counts everything.
SearchResult tune_problem(const TuneJob& job,
                          const std::function<void(const SearchProgress&)>& progress = {});

// An entry without a shape and an origin, of what a search with this state of L2 found about its
// winner and the default.
tuned::Entry compared(const SearchResult& result, bool predicted, tuned::CacheState l2);

// The entry in which a result is kept. `origin` says with which driver, NVRTC and clocks it was
// found; the rest of it is filled in.
tuned::Entry entry_of(const Target& target, const SearchResult& result, bool predicted,
                      tuned::CacheState l2, tuned::Entry::Origin origin);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_TUNER_H_
