#include <memory>

#include "base/fail.h"
#include "base/thread_pool.h"
#include "base/work.h"
#include "layout/entries.h"
#include "pattern/classify.h"

namespace annulus::inline v0 {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::int64_t kManyRows = 4096;

}  // namespace

LayoutSizes sizes_of(const LayoutView& layout) {
  return {layout.block_rows, layout.block_columns, layout.seq_q, layout.seq_k,
          layout.query_heads()};
}

BlockLayout make_layout(const Pattern& pattern, const LayoutSizes& sizes,
                        const LayoutOptions& options) {
  const base::Work work(options.work, "making a layout");
  const LayoutView like = layout::checked(sizes);
  const int threads = options.threads;
  if (threads < 0 || threads > kMaxThreads) {
    base::fail(ErrorCode::kInvalidArgument, "{} threads; give 1 to {}, or 0 for all cores", threads,
               kMaxThreads);
  }
  // Starting a thread takes as long as a few hundred rows, so short layouts are made by the
  // caller's thread.
  std::unique_ptr<base::ThreadPool> pool;
  if (threads > 1 || (threads == 0 && like.rows() >= kManyRows)) {
    pool = std::make_unique<base::ThreadPool>(threads);
  }
  const auto extent = pattern::Extent::whole(sizes.seq_q, sizes.seq_k);
  pattern::check_layouts(pattern.node(), extent);
  return pattern::make_layout(pattern, extent, sizes.block_rows, sizes.block_columns, sizes.heads,
                              {sizes.seq_k, options.layer}, pool.get());
}

}  // namespace annulus::inline v0
