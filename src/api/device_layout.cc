// The public function that makes a layout on a device.
#include "annulus/layout.h"

#include "api/impl.h"
#include "base/work.h"
#include "jit/missing_kernel.h"
#include "layout/entries.h"
#include "selection/build_layout.h"

namespace annulus::inline v0 {

BlockLayout make_layout(const Device& device, const Pattern& pattern, const LayoutSizes& sizes,
                        const LayoutOptions& options) {
  const base::Work work(options.work, "making a layout");
  layout::checked(sizes);
  const Device::Impl& inside = api::inside(device);
  const jit::KernelsFor wanted(
      [&] { return fmt::format("a layout made on the device of {}", pattern.to_string()); });
  return selection::build_layout(inside.context, *inside.kernels, inside.arch, pattern, sizes,
                                 options.layer);
}

}  // namespace annulus::inline v0
