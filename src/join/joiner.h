#ifndef ANNULUS_JOIN_JOINER_H_
#define ANNULUS_JOIN_JOINER_H_

// Joins partial outputs of ranks (annulus/join.h). Determines the placement of bytes, and the
// launches and messages of a run.

#include <cstdint>
#include <optional>
#include <string>

#include "annulus/join.h"
#include "batch/merger.h"
#include "join/slices.h"

namespace annulus::join {

// The data that a run of `rows` rows sends and receives. Only the data of `rank` itself depends on
// `rank`. It is computed without allocating, because every run computes it.
struct Layout {
  JoinedSlices cut = JoinedSlices::kAll;  // whether partial outputs travel whole or in slices
  bool gathers = false;                   // a second exchange sends the merged slices to all ranks
  // of this rank's partial output; if `cut` is kAll, each slice is the whole output
  Slices partial;
  Slices merged;  // the slices of the merged output, if it is gathered
  // Offsets in the workspace, in bytes: the slices that are sent, the slices that are received
  // (this rank's slice from every rank), and the merged slices of all ranks.
  std::int64_t sent_at = 0, received_at = 0, merged_at = 0;
  std::int64_t end = 0;
  std::int64_t bytes_sent = 0;
};
Layout lay_out(const JoinProblem& problem, std::int64_t rows, int ranks, int rank);
// The largest workspace of a run of up to max_rows. A run with fewer rows may need more than a run
// with max_rows, because the slices are cut differently.
std::int64_t max_workspace(const JoinProblem& problem, int ranks);

// The reason for the number of exchanges, for users.
std::string reason_of(const JoinProblem& problem, const Layout& layout, int ranks);

class Joiner {
 public:
  // Gets the kernels. Requires: validate(problem) passes, and there are 1 to kMaxMergeInputs
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
  // The slice that `rank` has sent, or that this rank would send to itself.
  MergeInput input(const JoinOperands& operands, const Layout& layout, char* workspace,
                   int rank) const;
  void merge(device::LaunchSink& to, const JoinOperands& operands, const Layout& layout,
             char* workspace) const;
  // The tensors of the partial output, and of the joined output.
  WholeTensors partial(const JoinOperands& operands) const;
  WholeTensors joined(const JoinOperands& operands) const;

  JoinProblem problem_;
  int ranks_;
  int rank_;
  Layout most_;
  std::int64_t workspace_bytes_;
  SliceMover pack_, unpack_;
  // Merge the slices of all heads, and of this rank's heads. No value if nothing is merged in this
  // way.
  std::optional<batch::Merger> all_heads_, own_heads_;
};

}  // namespace annulus::join

#endif  // ANNULUS_JOIN_JOINER_H_
