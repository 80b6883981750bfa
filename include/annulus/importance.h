#ifndef ANNULUS_IMPORTANCE_H_
#define ANNULUS_IMPORTANCE_H_

// Blocks that are kept from step to step and change little by little: after each run the attention
// that every kept block had is measured, and now and then an update lets the best outsiders in and
// the least used ones go.
//
//   Selection selection;                                  // rule kGiven
//   Plan plan = device.plan(problem, selection);
//   ImportanceTracker tracker(device, problem, selection, {.max_added = 2, .max_dropped = 2});
//   plan.run(stream, operands, workspace, {.given = blocks});
//   tracker.measure(stream, operands, blocks, state, own_workspace);   // after any run
//   tracker.update(stream, operands, blocks, state, own_workspace);    // every so many steps
//
// Everything stays on the device and on the caller's stream; nothing is allocated, locked or waited
// for, and all can be captured in a graph. The same operands and state give the same blocks.
//
// An update of one row of blocks: while fewer than Selection::max_blocks are kept besides sink and
// diagonal blocks, the visible block with the best score (Selection::pool) comes. Then the best one
// outside takes the place of the one inside with the least measured mass, as long as its share of
// the row's softmax over block scores is larger than that one's share of the mass that was
// measured. At most `max_added` come and `max_dropped` go; of equal scores the lower column
// comes, of equal masses the higher one goes. Sink and diagonal blocks stay.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "annulus/device.h"

namespace annulus::inline v0 {

struct TrackerOptions {
  std::int64_t max_added = 1;    // A: blocks of a row that one update may bring
  std::int64_t max_dropped = 1;  // B: and take away
};

// Immutable; any number of threads may use one at a time, each with a state and a workspace of its
// own. Copies share.
class ANNULUS_EXPORT ImportanceTracker {
 public:
  // `problem` and `selection` are those of the plan whose runs are measured. Throws what
  // Device::plan throws, and Error{kInvalidArgument} where the problem asks for no LSE, the rule is
  // not kGiven, R or C is no multiple of 8 or a number is out of range; Error{kUnsupported} for
  // Pool::kAntidiagonal and more than 65535 batches.
  ImportanceTracker(const Device& device, const Problem& problem, const Selection& selection,
                    const TrackerOptions& options = {});

  // Masses of all blocks: uint64 [B, H, rows, columns], in 2^-32 of one query's attention. Kept by
  // the caller between calls, 16-byte aligned, and zeros before the first.
  std::size_t state_bytes() const;
  // Scratch memory of every call, 16-byte aligned.
  std::size_t workspace_bytes() const;

  // Adds what each kept block had in the run of these operands, whose LSEs `operands.lse` holds.
  // Q and K as they were (not where O was written over Q). Reads K of the kept blocks once more.
  void measure(void* stream, const Operands& operands, const std::int32_t* given, void* state,
               void* workspace) const;

  // Changes `given`, [B, H, rows, max_blocks] as in SelectionBuffers, and begins masses at 0
  // again. Sink and diagonal blocks are always kept and therefore not written. Scores are of these
  // operands.
  void update(void* stream, const Operands& operands, std::int32_t* given, void* state,
              void* workspace) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_IMPORTANCE_H_
