#ifndef ANNULUS_IMPORTANCE_H_
#define ANNULUS_IMPORTANCE_H_

// Keeps a set of blocks from step to step and changes it little by little: after each run the
// attention that every kept block received is measured, and now and then an update adds the best
// blocks outside and drops the least used ones inside.
//
//   Selection selection;                                  // rule kGiven
//   Plan plan = device.plan(problem, selection);
//   ImportanceTracker tracker(device, problem, selection, {.max_added = 2, .max_dropped = 2});
//   plan.run(stream, operands, workspace, {.given = blocks});
//   tracker.measure(stream, operands, blocks, state, own_workspace);   // after any run
//   tracker.update(stream, operands, blocks, state, own_workspace);    // every so many steps
//
// Everything runs on the device, on the caller's stream. No call allocates, locks or waits, and all
// can be captured in a graph. The same operands and state give the same blocks.
//
// An update of one row of blocks: while fewer than Selection::max_blocks are kept besides sink and
// diagonal blocks, the visible block with the best score (Selection::pool) is added. Then the best
// block outside replaces the block inside with the least measured mass, as long as its share of the
// row's softmax over block scores is larger than that block's share of the measured mass. At most
// `max_added` blocks are added and `max_dropped` dropped; of equal scores the lower column is
// added, of equal masses the higher column is dropped. Sink and diagonal blocks are never dropped.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "annulus/device.h"

namespace annulus::inline v0 {

struct TrackerOptions {
  std::int64_t max_added = 1;    // A: blocks of a row that one update may add
  std::int64_t max_dropped = 1;  // B: blocks of a row that one update may drop
  WorkLimit work = {};           // of planning
};

// Immutable; copies share. Any number of threads may use one at a time, each with a state and a
// workspace of its own.
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

  // Adds the mass that each kept block received in the run of these operands, whose LSEs
  // `operands.lse` holds. Q and K must be as they were in the run, which they are not where O was
  // written over Q. It reads K of the kept blocks once more.
  void measure(void* stream, const Operands& operands, const std::int32_t* given, void* state,
               void* workspace) const;

  // Changes `given`, [B, H, rows, max_blocks] as in SelectionBuffers, and sets the masses back to
  // 0. Sink and diagonal blocks are always kept and therefore not written to it. Blocks are scored
  // from these operands.
  void update(void* stream, const Operands& operands, std::int32_t* given, void* state,
              void* workspace) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_IMPORTANCE_H_
