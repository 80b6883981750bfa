#ifndef ANNULUS_AUTOTUNE_TUNER_H_
#define ANNULUS_AUTOTUNE_TUNER_H_

// Tunes one problem, from its search space to an entry for the store: enumerate, order, verify,
// measure. It does not use the store: the facade looks results up and stores them.

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

// The subject of a search.
struct Target {
  Problem problem;        // the problem that is measured
  Problem checked;        // its parts are verified: the same problem, or one with fewer heads
  tuned::ShapeKey shape;  // the key that the result is stored under
  attention::KernelConfig standard;  // the heuristic's choice
  // A class of requests that is measured instead of `problem`. Then `problem` has its sizes.
  std::optional<tuned::BatchTarget> batch = {};
  // The reason why a legal configuration is not a candidate, or no value.
  std::function<std::optional<std::string>(const attention::KernelConfig&)> why_not;
  // Writes to an entry what was measured (entry_problem.h).
  std::function<void(tuned::Entry::Origin*)> state;
};
// Requires: a valid problem. Throws as choose_config and pattern::emit do.
Target target_of(const Problem& problem, const attention::DeviceLimits& limits);
// If each run chooses blocks, a substitute for the problem is measured (stand_in.h), which is drawn
// from `seed`. Requires: selection::validate passes.
Target target_of(const Problem& problem, const Selection& selection,
                 const attention::DeviceLimits& limits, std::uint64_t seed);

// The target is a class of a batch's requests. Requires: validate(batch.problem) passes, and the
// conditions of BatchTarget. Throws as batch::choose_config does.
Target target_of(const tuned::BatchTarget& batch, const attention::DeviceLimits& limits);

// The target that an entry was found with, so that it can be measured again. Throws as problem_of,
// selected_of and batch_of (entry_problem.h) do, and as the functions above.
Target stated_target(const tuned::Entry& entry, const attention::DeviceLimits& limits,
                     std::uint64_t seed);

// The candidates of a problem in the space's order, each with the prediction of the static model,
// including the heuristic's choice. A configuration is left out if its CTAs pack heads, or its
// clusters share rows, that see different keys in this problem.
struct Candidates {
  std::vector<tuned::Trial> trials;
  std::size_t default_at = 0;
  int equal = 0;  // see Space::equal
};

// Returns no value if stopped() returned true. It is called from time to time, because counting the
// tiles of a long problem takes time. Requires: B, Sq > 0. Throws as pattern::emit does.
std::optional<Candidates> candidates_of(const Target& target, const attention::DeviceLimits& limits,
                                        const attention::PipeDevice& pipes, bool simulated,
                                        const std::function<bool()>& stopped);

// The parts of the target that its candidates are verified on (parts.h). Every candidate can be
// planned for each part.
std::vector<Problem> parts_for(const Target& target, const Candidates& candidates,
                               double max_pairs);

struct TuneJob {
  Target target;
  Candidates candidates;
  device::ContextPointer context;
  jit::KernelCache& kernels;
  attention::DeviceLimits limits;
  tuned::SearchOptions
      search;  // a journal's nominated configurations replace these if the search continues from it
  std::uint64_t seed = 0;
  // The pairs that the parts may have; 0: as many as take the oracle or the simulator about a
  // second.
  double max_pairs = 0;
  // the journal of this search, with its subject_of(); null: no journal is kept
  JournalFile* journal = nullptr;
  Turns* turns = nullptr;  // determines when the device may be used; null: at any time
  int threads = 0;         // threads of the oracle; 0: one for each processor
};

// All that the answers of a search depend on, for the first line of its journal. Only the versions
// in `origin` are used. `identity` is the identity of the device (device_key.h).
base::Json subject_of(const Target& target, const Candidates& candidates,
                      const std::string& identity, bool simulated,
                      const tuned::Entry::Origin& origin, const tuned::SearchOptions& options,
                      std::uint64_t seed);

// Runs on the default stream and waits for it. On a simulated device no other work may run
// meanwhile, or during a turn, because the search reads the device's counters. The device runs in
// checked mode for that time, which counts everything.
SearchResult tune_problem(const TuneJob& job,
                          const std::function<void(const SearchProgress&)>& progress = {});

// An entry with the comparison of a search's winner and default in the given state of L2. It has no
// shape and no origin.
tuned::Entry compared(const SearchResult& result, bool predicted, tuned::CacheState l2);

// The entry in which a result is stored. `origin` has the driver, NVRTC and clocks; the rest of it
// is filled in.
tuned::Entry entry_of(const Target& target, const SearchResult& result, bool predicted,
                      tuned::CacheState l2, tuned::Entry::Origin origin);

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_TUNER_H_
