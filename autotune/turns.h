#ifndef ANNULUS_AUTOTUNE_TURNS_H_
#define ANNULUS_AUTOTUNE_TURNS_H_

// Searches on a device that has other users. The search may use the device only in turns, which its
// caller grants.

#include <functional>
#include <memory>

#include "autotune/workbench.h"

namespace annulus::autotune {

class Turns {
 public:
  virtual ~Turns() = default;
  // Returns when the search may use the device alone. Throws Error{kCancelled} if that will never
  // happen.
  virtual void begin() = 0;
  // Called after the device has completed the work since begin(). Does not throw.
  virtual void end() = 0;
};

// A workbench that uses the device only in turns: one turn for the check of a candidate, and one
// for some rounds of times. Kernels are compiled before a turn.
class TurnWorkbench : public Workbench {
 public:
  // `inner` and `turns` must outlive this object. `mode` creates an object that exists during a
  // turn.
  TurnWorkbench(Workbench& inner, Turns& turns, std::function<std::shared_ptr<void>()> mode)
      : inner_(inner), turns_(turns), mode_(std::move(mode)) {}

  std::optional<Dropped> prepare(const attention::KernelConfig& config) override;
  std::vector<std::vector<double>> measure(std::span<const attention::KernelConfig> configs,
                                           int rounds, tuned::CacheState l2) override;
  void rest(int attempt) override { inner_.rest(attempt); }
  bool exact() const override { return inner_.exact(); }

 private:
  Workbench& inner_;
  Turns& turns_;
  std::function<std::shared_ptr<void>()> mode_;
};

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_TURNS_H_
