#include "base/fail.h"
#include "layout/entries.h"
#include "pattern/classify.h"

namespace annulus::inline v0 {

LayoutSizes sizes_of(const LayoutView& layout) {
  return {layout.block_rows, layout.block_columns, layout.seq_q, layout.seq_k,
          layout.query_heads()};
}

BlockLayout make_layout(const Pattern& pattern, const LayoutSizes& sizes) {
  layout::checked(sizes);
  const std::int64_t heads = pattern.heads();
  if (heads != 1 && heads != sizes.heads) {
    base::fail(ErrorCode::kInvalidArgument, "the pattern has layouts for {} heads; {} are wanted",
               heads, sizes.heads);
  }
  return pattern::make_layout(pattern, pattern::Extent::whole(sizes.seq_q, sizes.seq_k),
                              sizes.block_rows, sizes.block_columns);
}

}  // namespace annulus::inline v0
