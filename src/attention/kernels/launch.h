#ifndef ANNULUS_ATTENTION_KERNELS_LAUNCH_H_
#define ANNULUS_ATTENTION_KERNELS_LAUNCH_H_

// What a kernel is launched with: how many CTAs of what size, which heads and rows work together,
// and the arguments of a launch for a range of batches.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "annulus/attention.h"
#include "attention/kernels/kernel_config.h"
#include "base/math.h"
#include "device/context.h"
#include "device/launches.h"
#include "params/attention_params.h"

namespace annulus::attention {

// What the CTAs of a cluster, or one without, compute of one work: each a tile row of as many heads
// as it takes, of the same tile row or of neighbouring ones.
struct WorkGroup {
  int rows = 1;   // tile rows
  int heads = 1;  // that share K and V and a list
  friend bool operator==(const WorkGroup&, const WorkGroup&) = default;
};
// The group of a CTA without a cluster, or of a cluster whose heads share its copies.
WorkGroup packed_heads(const KernelConfig& config);
// The group of a cluster whose tile rows share its copies.
WorkGroup rows_together(const KernelConfig& config);

// Works of a launch of `batches`, with `rows` tile rows, or parts of them, for each head.
std::int64_t work_count(const Problem& problem, const WorkGroup& group, std::int64_t rows,
                        std::int64_t batches);

// Batches [first_batch, first_batch + batches) in one launch.
struct BatchRange {
  std::int64_t first_batch = 0;
  std::int64_t batches = 0;
};

// As many batches as a grid has in z.
inline constexpr std::int64_t kMaxGridZ = 65535;

// The largest of a plan's launches.
struct LaunchShape {
  unsigned grid_x = 0;            // tile rows or their parts; or CTAs that stay for all work, in
                                  // whole clusters
  unsigned grid_y = 0;            // H, or 1
  unsigned grid_z = 0;            // batches, or 1
  unsigned threads = 0;           // per CTA
  std::int64_t shared_bytes = 0;  // dynamic
};

// With `rows` tile rows, or parts of them, for each head. Requires: a valid problem with B, Sq > 0.
LaunchShape launch_shape(const KernelConfig& config, const Problem& problem, const WorkGroup& group,
                         std::int64_t rows, int multiprocessors);

// The values of a kernel's arguments, in its order. They lie in the object itself, so that making
// them allocates nothing and a copy of them is as good.
class LaunchArguments {
 public:
  template <typename T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    static_assert(sizeof(T) <= kBytes / 2, "an argument of this size leaves too little room");
    const std::size_t at = base::round_up(used_, kAlignment);
    used_ = at + sizeof(T);
    // The place in the object; parameters() adds where the object is then.
    places_.at(count_) = {at, sizeof(T)};
    ++count_;
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  // The arguments as a LaunchSink takes them; they hold until the next call, while this does.
  std::span<const device::LaunchParameter> parameters() {
    for (std::size_t i = 0; i < count_; ++i) {
      parameters_[i] = {bytes_.data() + places_[i].offset, places_[i].bytes};
    }
    return std::span(parameters_).first(count_);
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kBytes = 4096;  // that a kernel's arguments may have
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

// What a family is told of a launch.
struct BindRequest {
  const device::Context& context;
  const KernelConfig& config;
  const Problem& problem;
  const WorkGroup& group;
  const LaunchShape& shape;
  std::int64_t rows;  // tile rows, or parts of them, for each head
  const Operands& operands;
  const BatchRange& range;
  const kernels::AttentionParams& parameters;  // of this range
};

// A launch that is ready but for its stream.
struct BoundLaunch {
  device::Extent grid;
  LaunchArguments arguments;
};

// Throws Error{kUnsupported} for operands that no launch of the configuration could be bound to.
void check_strides(const KernelConfig& config, const Problem& problem, const Operands& operands);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_LAUNCH_H_
