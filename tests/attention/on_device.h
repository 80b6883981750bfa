#ifndef ANNULUS_TESTS_ATTENTION_ON_DEVICE_H_
#define ANNULUS_TESTS_ATTENTION_ON_DEVICE_H_

// The device that --device names, and the comparison of a case on it with the oracle.

#include <doctest/doctest.h>

#include "annulus/device.h"
#include "attention/oracle/reference.h"
#include "base/thread_pool.h"
#include "support/device.h"
#include "support/device_case.h"

namespace annulus::test {

// One device for all tests of the program, because opening one loads libraries.
inline const Device& device() {
  static const Device opened = Device::open(device_name());
  return opened;
}

inline base::ThreadPool& pool() {
  static base::ThreadPool threads;
  return threads;
}

inline Comparison compare(const Case& c, const DeviceAnswer& answer) {
  const Reference oracle = attention::reference(c.problem, c.inputs(), pool());
  return annulus::compare(c.problem, oracle, answer.result());
}

inline void check(const Case& c, const DeviceAnswer& answer) {
  const Comparison comparison = compare(c, answer);
  if (!comparison.within_tolerance) {
    FAIL_CHECK(c.text << "\n  row " << comparison.error_row_max << " head " << comparison.error_o
                      << " LSE " << comparison.error_lse << " in " << comparison.wrong_rows
                      << " rows: " << comparison.first_wrong);
  }
}

inline Problem problem_of(std::int64_t seq_q, std::int64_t seq_k, std::int64_t dim_qk,
                          std::int64_t dim_v, const Pattern& pattern) {
  Problem problem;
  problem.seq_q = seq_q;
  problem.seq_k = seq_k;
  problem.dim_qk = dim_qk;
  problem.dim_v = dim_v;
  problem.pattern = pattern;
  problem.want_lse = true;
  return problem;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_ATTENTION_ON_DEVICE_H_
