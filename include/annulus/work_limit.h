#ifndef ANNULUS_WORK_LIMIT_H_
#define ANNULUS_WORK_LIMIT_H_

// A bound on what one call does on the host, and the way to end it early. Calls whose time depends
// on a pattern take one: parsing, layouts, statistics, planning, rings. Tuning has a time limit and
// a flag of its own.
//
//   PlanOptions options;
//   options.work.steps = 20'000'000;                           // a tenth of the default
//   options.work.cancelled = [&flag] { return flag.load(); }; // set by another thread
//
// Calls that work on a layout, and the oracle, take none; a WorkScope bounds them:
//
//   const WorkScope scope({.steps = 0, .cancelled = [&flag] { return flag.load(); }});
//   const Reference expected = reference(problem, inputs);
//
// Work is counted in steps, not in time: keys of a leaf, tiles of a list, calls in the text of a
// mask. So the same call is refused on every machine or on none, however busy it is. A step is
// about five nanoseconds of one core. What is in a cache already costs nothing.

#include "annulus/language.h"

#include <cstdint>
#include <functional>
#include <memory>

#include "annulus/version.h"

namespace annulus::inline v0 {

// About a second of work on one core.
constexpr std::int64_t kDefaultWorkSteps = 200'000'000;

struct WorkLimit {
  // A call that needs more throws Error{kLimit}, at once where an estimate shows it; 0: no limit.
  // Steps are compared when a few thousand are together, so smaller calls always pass.
  std::int64_t steps = kDefaultWorkSteps;
  // Asked every few ten microseconds of work, from any thread that works for the call. Once it is
  // true the call throws Error{kCancelled}. What runs inside NVRTC or the driver is not
  // interrupted. It must neither throw nor call the library.
  std::function<bool()> cancelled = {};
};

// Bounds all calls that its thread makes while it lives, as one: their steps count together, and
// no WorkLimit that they are given is asked. Without a scope, what makes, converts or counts a
// layout has the default limit, and the oracle (annulus/oracle.h) has none. A scope inside of
// another does nothing.
class ANNULUS_EXPORT WorkScope {
 public:
  // Throws Error{kInvalidArgument} for a negative number of steps, and Error{kCancelled} where the
  // calls are cancelled already.
  explicit WorkScope(const WorkLimit& limit);
  ~WorkScope();  // on the thread that made it, and before an older one
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

  // Steps so far, those of an outer scope included.
  std::int64_t steps() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_WORK_LIMIT_H_
