#ifndef ANNULUS_TESTS_PLANNER_TUNED_ENTRY_H_
#define ANNULUS_TESTS_PLANNER_TUNED_ENTRY_H_

// Problems and tuned results for tests of planning. The results were not measured.

#include <doctest/doctest.h>

#include <string>

#include "annulus/problem.h"
#include "attention/kernels/family.h"
#include "attention/plan/plan.h"
#include "tuned/store.h"

namespace annulus::test {

inline Problem planned_problem(const char* pattern = "causal", std::int64_t seq = 300,
                               std::int64_t dim = 64) {
  Problem problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = dim;
  problem.pattern = Pattern::parse(pattern);
  return problem;
}

// A store in memory only.
inline tuned::TunedStore tuned_store(const attention::DeviceLimits& limits) {
  tuned::StoreOptions options;
  options.device.identity = "a device";
  options.device.simulated = true;
  options.limits = limits;
  return tuned::TunedStore(options);
}

// An entry that states, by a prediction, that `config` was tuned for a problem.
inline tuned::Entry entry_for(const Problem& problem, const std::string& config) {
  tuned::Entry entry;
  entry.shape = tuned::shape_key(problem);
  entry.config = entry.default_config = attention::parse_config(config).value();
  entry.revision = entry.default_revision = entry.config.family->revision;
  entry.predicted = entry.complete = true;
  entry.time = 1;
  entry.default_time = 2;
  entry.ratio_low_ppm = entry.ratio_high_ppm = 500'000;
  entry.rounds = entry.candidates = 1;
  return entry;
}

// Stores `config` as the tuned result for a problem.
inline void keep_tuned(tuned::TunedStore& store, const Problem& problem,
                       const std::string& config) {
  const tuned::Entry entry = entry_for(problem, config);
  store.store(entry, false);
  REQUIRE(store.find_exact(entry.shape));
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_PLANNER_TUNED_ENTRY_H_
