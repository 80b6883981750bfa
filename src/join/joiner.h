#ifndef ANNULUS_JOIN_JOINER_H_
#define ANNULUS_JOIN_JOINER_H_

// Joins partial answers over ranks (annulus/join.h): which bytes go where, and the launches and
// messages of a run.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "annulus/join.h"
#include "batch/merger.h"
#include "jit/kernel_cache.h"
#include "params/slices_params.h"

namespace annulus::join {

// A slice as it travels: O [rows, heads, Dv], then LSE [rows, heads].
struct Slice {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t lse_at = 0;  // bytes behind its begin
  std::int64_t bytes = 0;   // a multiple of 256
};

// What a run of so many rows sends and receives. It depends on `rank` only in what concerns that
// rank alone, and is made without allocating, since every run makes one.
struct Layout {
  JoinedSlices cut = JoinedSlices::kAll;  // how partial answers are cut: all of them, or slices
  bool gathers = false;                   // merged slices go to all ranks in a second exchange
  std::array<Slice, kMostMergeInputs> slices;  // by rank; with `cut` kAll each is everything
  std::array<std::int64_t, kMostMergeInputs> begins{};  // by rank, in the memory that is sent
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

jit::KernelSpec move_spec(bool packs, jit::Arch arch);

class Joiner {
 public:
  // Gets the kernels. Requires: validate(problem) passes, and there are 1 to kMostMergeInputs
  // ranks.
  Joiner(jit::KernelCache& kernels, jit::Arch arch, const JoinProblem& problem, int ranks,
         int rank);

  const JoinProblem& problem() const { return problem_; }
  const Layout& most() const { return most_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }

  // exchange(sends, receives) carries a group of messages out.
  using Exchange = std::function<void(std::span<const SentBytes>, std::span<const ReceivedBytes>)>;
  void run(device::LaunchSink& to, const JoinOperands& operands, void* workspace,
           const Exchange& exchange) const;

 private:
  void check(const JoinOperands& operands, const Layout& layout, const void* workspace) const;
  void move(device::LaunchSink& to, const jit::LoadedKernel& kernel, const Layout& layout,
            std::int64_t rows, char* slices, void* o, const RowStrides& o_strides, float* lse,
            const RowStrides& lse_strides) const;
  void merge(device::LaunchSink& to, const JoinOperands& operands, const Layout& layout,
             char* workspace) const;

  JoinProblem problem_;
  int ranks_;
  int rank_;
  Layout most_;
  std::int64_t workspace_bytes_;
  jit::KernelLookup pack_, unpack_;
  // Merge slices of all heads, and of this rank's; none where nothing is merged so.
  std::optional<batch::Merger> all_heads_, own_heads_;
};

}  // namespace annulus::join

#endif  // ANNULUS_JOIN_JOINER_H_
