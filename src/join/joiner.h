#ifndef ANNULUS_JOIN_JOINER_H_
#define ANNULUS_JOIN_JOINER_H_

// Joins partial answers over ranks (annulus/join.h): which bytes go where, and the launches and
// messages of a run.

#include <cstdint>
#include <optional>
#include <string>

#include "annulus/join.h"
#include "batch/merger.h"
#include "join/slices.h"

namespace annulus::join {

// What a run of so many rows sends and receives. It depends on `rank` only in what concerns that
// rank alone, and is made without allocating, since every run makes one.
struct Layout {
  JoinedSlices cut = JoinedSlices::kAll;  // how partial answers are cut: all of them, or slices
  bool gathers = false;                   // merged slices go to all ranks in a second exchange
  Slices partial;  // of this rank's partial answer; with `cut` kAll each is everything
  Slices merged;   // of what is merged, where that is gathered
  // In the workspace, bytes: what is sent, what comes (a slice of this rank from every rank), and
  // the merged slices of all ranks.
  std::int64_t sent_at = 0, received_at = 0, merged_at = 0;
  std::int64_t end = 0;
  std::int64_t bytes_sent = 0;
};
Layout lay_out(const JoinProblem& problem, std::int64_t rows, int ranks, int rank);
// The most workspace of a run of up to most_rows. Fewer rows may need more than most_rows, as they
// are cut elsewhere.
std::int64_t most_workspace(const JoinProblem& problem, int ranks);

// Why it is done in so many exchanges, for people.
std::string reason_of(const JoinProblem& problem, const Layout& layout, int ranks);

class Joiner {
 public:
  // Gets the kernels. Requires: validate(problem) passes, and there are 1 to kMostMergeInputs
  // ranks.
  Joiner(jit::KernelCache& kernels, jit::Arch arch, const JoinProblem& problem, int ranks,
         int rank);

  const JoinProblem& problem() const { return problem_; }
  const Layout& most() const { return most_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }

  void run(device::LaunchSink& to, const JoinOperands& operands, void* workspace,
           const Exchange& exchange) const;

 private:
  void check(const JoinOperands& operands, const Layout& layout, const void* workspace) const;
  void check_partial(const JoinOperands& operands) const;
  void check_joined(const JoinOperands& operands, std::int64_t rows, std::int64_t heads) const;
  // What `rank` has sent, or this rank would send, of its slice.
  MergeInput input(const JoinOperands& operands, const Layout& layout, char* workspace,
                   int rank) const;
  void merge(device::LaunchSink& to, const JoinOperands& operands, const Layout& layout,
             char* workspace) const;
  // The tensors of the partial answer, or of the joined one.
  WholeTensors partial(const JoinOperands& operands) const;
  WholeTensors joined(const JoinOperands& operands) const;

  JoinProblem problem_;
  int ranks_;
  int rank_;
  Layout most_;
  std::int64_t workspace_bytes_;
  SliceMover pack_, unpack_;
  // Merge slices of all heads, and of this rank's; none where nothing is merged so.
  std::optional<batch::Merger> all_heads_, own_heads_;
};

}  // namespace annulus::join

#endif  // ANNULUS_JOIN_JOINER_H_
