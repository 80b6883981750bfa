#ifndef ANNULUS_AUTOTUNE_TURNS_H_
#define ANNULUS_AUTOTUNE_TURNS_H_

// Searching on a device that others use as well. The search has the device for a moment at a time,
// as somebody else says when.

#include <functional>
#include <memory>

#include "autotune/workbench.h"

namespace annulus::autotune {

class Turns {
 public:
  virtual ~Turns() = default;
  // Returns when the device is the search's alone. Throws Error{kCancelled} where it never will be.
  virtual void begin() = 0;
  // The device has done what it was given since begin(). Does not throw.
  virtual void end() = 0;
};

// A workbench that uses the device in turns alone: one for the check of a candidate, and one for
// some rounds of times. Kernels are compiled before a turn.
class TurnWorkbench : public Workbench {
 public:
  // Both must outlive it. `mode` makes what lives as long as a turn.
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
