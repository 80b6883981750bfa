#ifndef ANNULUS_ATTENTION_KERNELS_LAUNCH_H_
#define ANNULUS_ATTENTION_KERNELS_LAUNCH_H_

// The description of a launch: the number and size of its CTAs, the heads and rows that are
// computed together, and the arguments of a launch for a range of batches.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/kernel_config.h"
#include "base/math.h"
#include "device/context.h"
#include "device/launches.h"
#include "params/attention_params.h"

namespace annulus::attention {

// The heads and tile rows of one work. The CTAs of a cluster compute it, or one CTA without a
// cluster. Each CTA takes one tile row of CtaShape::heads heads; the CTAs of a cluster have the
// same tile row, or neighbouring ones.
struct WorkGroup {
  int rows = 1;   // tile rows
  int heads = 1;  // heads that share K, V and a list
  friend bool operator==(const WorkGroup&, const WorkGroup&) = default;
};
// The group of a CTA without a cluster, or of a cluster whose heads share its copies.
WorkGroup packed_heads(const KernelConfig& config);
// The group of a cluster whose tile rows share its copies.
WorkGroup rows_together(const KernelConfig& config);

// The number of works of a launch of `batches` batches, with `rows` tile rows, or parts of them,
// for each head.
std::int64_t work_count(const Problem& problem, const WorkGroup& group, std::int64_t rows,
                        std::int64_t batches);

// The groups of heads whose works persistent CTAs take together, so that their K and V stay in L2.
// A set has the number of `groups` whose K and V fit in 32 MB of the 50 MB of an H100's L2, and at
// least one. The other 18 MB are for Q and O. A group has `group_heads` heads, and `heads_per_kv`
// heads share K and V.
struct SetQuestion {
  Dims dims;
  std::int64_t element_bytes;  // bytes of an element of K and V
  std::int64_t seq_k;
  std::int64_t heads_per_kv;
  std::int64_t group_heads;
  std::int64_t groups;
};
std::int64_t groups_in_set(const SetQuestion& question);
// The question for `batches` batches of a problem whose works have this group.
SetQuestion set_question(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                         std::int64_t batches);

// Works that are drawn need not be taken strictly set by set. With a head start, the longest `rows`
// rows of all groups of the last `sets` sets come first, and then the other rows of these sets, set
// by set. Otherwise a long row of the last set may begin so late that all multiprocessors wait for
// it.
struct HeadStart {
  std::int64_t sets = 0;
  std::int64_t rows = 0;  // in works of a group of heads
  bool empty() const { return sets == 0 || rows == 0; }
  friend bool operator==(const HeadStart&, const HeadStart&) = default;
};
// The first group of the sets with a head start; `groups` if there is no head start.
std::int64_t first_ahead(const HeadStart& ahead, std::int64_t groups, std::int64_t set);
// The works of `groups` groups with `rows` works each, in the order of a head start. Each is given
// by the index that it has without a head start (find_work in templates/kernels/wgmma/work.cuh).
std::vector<std::int32_t> work_order(const HeadStart& ahead, std::int64_t groups, std::int64_t set,
                                     std::int64_t rows);

// The batches [first_batch, first_batch + batches), which are one launch.
struct BatchRange {
  std::int64_t first_batch = 0;
  std::int64_t batches = 0;
};

// The most batches of a launch: the largest grid dimension z.
inline constexpr std::int64_t kMaxGridZ = 65535;

// The most launches of a plan. The limits of grids alone never need more than half of this number
// for the batches that a problem may have. A bound run holds the parameters of each launch.
inline constexpr std::int64_t kMaxLaunches = 65536;

// The launches of a plan, one after another: each has `most` batches, except the last, which has
// the rest.
class Launches {
 public:
  Launches() = default;  // no launches
  Launches(std::int64_t batches, std::int64_t most) : batches_(batches), most_(most) {}

  std::int64_t size() const { return base::ceil_div(batches_, most_); }
  bool empty() const { return batches_ == 0; }
  BatchRange operator[](std::int64_t i) const {
    return {i * most_, std::min(most_, batches_ - i * most_)};
  }
  BatchRange front() const { return (*this)[0]; }
  // The first launch that begins with this batch or a later one.
  std::int64_t from(std::int64_t batch) const { return base::ceil_div(batch, most_); }
  friend bool operator==(const Launches&, const Launches&) = default;

 private:
  std::int64_t batches_ = 0;
  std::int64_t most_ = 1;
};

// The shape of the largest launch of a plan.
struct LaunchShape {
  unsigned grid_x = 0;            // tile rows or their parts; or persistent CTAs, in whole clusters
  unsigned grid_y = 0;            // H, or 1
  unsigned grid_z = 0;            // batches, or 1
  unsigned threads = 0;           // threads of a CTA
  std::int64_t shared_bytes = 0;  // dynamic
};

// The shape of a plan's largest launch, with `rows` tile rows, or parts of them, for each head.
// Requires: a valid problem. If B or Sq is 0 the grid is empty, and there is no launch to use it.
LaunchShape launch_shape(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                         std::int64_t rows, int multiprocessors);

// The values of a kernel's arguments, in the kernel's order. They are stored in the object itself,
// so making them allocates nothing, and the object can be copied.
class LaunchArguments {
 public:
  template <typename T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    static_assert(sizeof(T) <= kBytes / 2, "an argument of this size leaves too little room");
    const std::size_t at = base::round_up(used_, kAlignment);
    used_ = at + sizeof(T);
    // Offsets instead of pointers, because the object may be copied before parameters() is called.
    places_.at(count_) = {at, sizeof(T)};
    ++count_;
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  // The arguments in the form that a LaunchSink takes. The span is valid until the next call of
  // this function or until the object ends.
  std::span<const device::LaunchParameter> parameters() {
    for (std::size_t i = 0; i < count_; ++i) {
      parameters_[i] = {bytes_.data() + places_[i].offset, places_[i].bytes};
    }
    return std::span(parameters_).first(count_);
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kBytes = 4096;  // CUDA's limit for a kernel's arguments
  alignas(kAlignment) std::array<std::byte, kBytes> bytes_;
  struct Place {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  std::array<Place, device::kMaxLaunchParameters> places_;
  std::array<device::LaunchParameter, device::kMaxLaunchParameters> parameters_;
  std::size_t used_ = 0;
  std::size_t count_ = 0;
};

// The arguments that a family needs to bind a launch.
struct BindRequest {
  const device::Context& context;
  const KernelConfig& config;
  const Problem& problem;
  const WorkGroup& group;
  const LaunchShape& shape;
  std::int64_t rows;  // tile rows, or parts of them, for each head
  const Operands& operands;
  const BatchRange& range;
  const kernels::AttentionParams& parameters;  // the parameters for this range
  unsigned* next;             // the counter of works, for a kernel that draws them; else null
  const std::int32_t* order;  // the order in which works are drawn (work_order), on the device;
                              // may be null
};

// A launch that lacks only its stream.
struct BoundLaunch {
  device::Extent grid;
  LaunchArguments arguments;
};

// Throws Error{kUnsupported} for operands whose strides the configuration's family does not take.
void check_strides(const KernelConfig& config, const Problem& problem, const Operands& operands);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_LAUNCH_H_
