#include "selection/build_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "attention/kernels/kernel_source.h"
#include "base/fail.h"
#include "base/math.h"
#include "device/stream.h"
#include "params/layout_params.h"
#include "pattern/classify.h"
#include "pattern/mask_code.h"
#include "pattern/node.h"
#include "selection/grid.h"

namespace annulus::selection {
namespace {

// The bound is the one of pattern/make_layout.cc, so that both give the same error.
constexpr std::int64_t kMaxKept = std::int64_t{1} << 31;

template <typename T>
T* address(const device::Buffer& buffer) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(buffer.address()));
}

template <typename T>
std::vector<T> download(const device::Context& context, const device::Buffer& buffer,
                        std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  device::copy_to_host(context, values.data(), buffer.address(), values.size() * sizeof(T));
  return values;
}

void check(const Pattern& pattern, const LayoutSizes& sizes, std::int64_t lines) {
  if (pattern.branches().size() > 1) {
    base::fail(
        ErrorCode::kUnsupported,
        "a sum(...) is not one mask for a kernel; make the layouts of its branches and unite "
        "them, or make the layout on the host");
  }
  if (sizes.seq_q > kMaxPosition || sizes.seq_k > kMaxPosition) {
    base::fail(ErrorCode::kUnsupported, "Sq {} and Sk {}; on a device lengths are up to 2^30",
               sizes.seq_q, sizes.seq_k);
  }
  if (sizes.heads > kMaxHeads) {
    base::fail(ErrorCode::kUnsupported, "{} heads; a device takes {}", sizes.heads, kMaxHeads);
  }
  if (lines >= std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kUnsupported, "{} rows of blocks of all heads; a device takes 2^31",
               lines);
  }
}

class Builder {
 public:
  Builder(const device::ContextPointer& context, jit::KernelCache& kernels, jit::Arch arch)
      : context_(context), kernels_(kernels), arch_(arch) {}

  // Classifies every block, and then collects the kept blocks in two passes. The first pass counts
  // the kept blocks of each line, and the running sums of these numbers become indptr. Then memory
  // for all blocks is allocated, and the second pass writes columns and flags.
  void build(const pattern::MaskCode& code, BlockLayout* layout) {
    const std::int64_t rows = layout->rows();
    const std::int64_t columns = layout->columns();
    const std::int64_t lines = layout->heads * rows;
    const device::Buffer classes(context_, static_cast<std::size_t>(lines * columns));
    classify(code, *layout, classes);

    const device::Buffer indptr(context_, static_cast<std::size_t>(lines + 1) * 8);
    const device::Buffer any_partial(context_, 4);
    device::fill_bytes_async(*context_, indptr.address(), 0, 8, nullptr);
    device::fill_bytes_async(*context_, any_partial.address(), 0, 4, nullptr);
    kernels::CollectParams collect = {.classes = address<const unsigned char>(classes),
                                      .indptr = address<long long>(indptr),
                                      .indices = nullptr,
                                      .partial = nullptr,
                                      .any_partial = address<int>(any_partial),
                                      .lines = static_cast<int>(lines),
                                      .columns = static_cast<int>(columns)};
    const device::Function collector = kernel("collect_blocks");
    const device::Extent grid = {blocks_for(lines, kernels::kLayoutWarps)};
    device::launch(collector, grid, {kernels::kLayoutThreads}, 0, nullptr, {&collect});
    kernels::ScanParams scan = {
        .values = address<long long>(indptr) + 1, .count = static_cast<int>(lines), .padding = 0};
    device::launch(kernel("scan_counts"), {1}, {kernels::kScanThreads}, 0, nullptr, {&scan});
    layout->indptr = download<std::int64_t>(*context_, indptr, lines + 1);
    const std::int64_t kept = layout->indptr.back();
    if (kept > kMaxKept) {
      base::fail(ErrorCode::kOutOfMemory,
                 "more than 2^31 blocks of {} x {} are kept of Sq {} x Sk {}; use larger blocks",
                 layout->block_rows, layout->block_columns, layout->seq_q, layout->seq_k);
    }
    if (kept == 0) return;
    const device::Buffer indices(context_, static_cast<std::size_t>(kept) * 4);
    const device::Buffer partial(context_, static_cast<std::size_t>(kept));
    collect.indices = address<int>(indices);
    collect.partial = address<unsigned char>(partial);
    device::launch(collector, grid, {kernels::kLayoutThreads}, 0, nullptr, {&collect});
    layout->indices = download<std::int32_t>(*context_, indices, kept);
    if (download<std::int32_t>(*context_, any_partial, 1).front() != 0) {
      layout->partial = download<std::uint8_t>(*context_, partial, kept);
    }
  }

 private:
  device::Function kernel(const char* name) {
    return get({.family = name,
                .arch = arch_,
                .file = std::string("kernels/layout/") + name + ".cu",
                .entry = name,
                .structs = {}});
  }
  device::Function get(const jit::KernelSpec& spec) { return kernels_.get(spec).kernel->function; }

  void classify(const pattern::MaskCode& code, const BlockLayout& layout,
                const device::Buffer& classes) {
    const device::Function classifier = get({.family = "classify_blocks",
                                             .arch = arch_,
                                             .file = "kernels/layout/classify_blocks.cu",
                                             .entry = "classify_blocks",
                                             .structs = {attention::mask_struct(code.text)}});
    const device::Buffer lists =
        device::upload(context_, std::span<const std::int32_t>(code.lists));
    kernels::ClassifyParams params = {};
    params.mask.lists = address<const int>(lists);
    std::copy(code.numbers.begin(), code.numbers.end(), params.mask.numbers);
    params.classes = address<unsigned char>(classes);
    params.rows = static_cast<int>(layout.rows());
    params.columns = static_cast<int>(layout.columns());
    params.block_rows = static_cast<int>(layout.block_rows);
    params.block_columns = static_cast<int>(layout.block_columns);
    params.seq_q = static_cast<int>(layout.seq_q);
    params.seq_k = static_cast<int>(layout.seq_k);
    params.q_position = static_cast<int>(layout.seq_k - layout.seq_q);
    params.k_position = 0;
    device::launch(classifier,
                   {blocks_for(params.columns, kernels::kLayoutWarps),
                    static_cast<unsigned>(std::min<std::int64_t>(params.rows, kMaxGridY)),
                    static_cast<unsigned>(layout.heads)},
                   {kernels::kLayoutThreads}, 0, nullptr, {&params});
    // `lists` is freed when this function returns, and the kernel reads it.
    device::synchronize(*context_, nullptr);
  }

  device::ContextPointer context_;
  jit::KernelCache& kernels_;
  jit::Arch arch_;
};

}  // namespace

BlockLayout build_layout(const device::ContextPointer& context, jit::KernelCache& kernels,
                         jit::Arch arch, const Pattern& pattern, const LayoutSizes& sizes,
                         std::int64_t layer) {
  pattern::check_batch(pattern.node(), {sizes.seq_k, layer});  // a layout belongs to one batch
  BlockLayout layout{.block_rows = sizes.block_rows,
                     .block_columns = sizes.block_columns,
                     .seq_q = sizes.seq_q,
                     .seq_k = sizes.seq_k,
                     .heads = pattern.distinct_heads(sizes.heads),
                     .indptr = {},
                     .indices = {},
                     .partial = {}};
  const std::int64_t lines = layout.heads * layout.rows();
  check(pattern, sizes, lines);
  for (std::int64_t head = 0; layout.heads > 1 && layout.heads < sizes.heads && head < sizes.heads;
       ++head) {
    layout.head_map.push_back(static_cast<std::int32_t>(head % layout.heads));
  }
  if (lines == 0 || layout.columns() == 0) {
    layout.indptr.assign(static_cast<std::size_t>(lines + 1), 0);
    return layout;
  }
  const pattern::Extent extent = pattern::Extent::whole(sizes.seq_q, sizes.seq_k);
  const pattern::MaskCode code = pattern::emit(
      pattern, kernels::kMaskNumbers, {layout.heads, extent.queries(), {sizes.seq_k, layer}});
  if (code.uses_blocks) {
    base::fail(ErrorCode::kUnsupported,
               "the pattern has blocks(), which is a layout already; combine layouts on the host");
  }
  Builder(context, kernels, arch).build(code, &layout);
  return layout;
}

}  // namespace annulus::selection
