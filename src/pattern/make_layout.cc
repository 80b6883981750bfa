#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "base/fail.h"
#include "base/math.h"
#include "base/thread_pool.h"
#include "base/work.h"
#include "pattern/classify.h"
#include "pattern/node.h"

namespace annulus::pattern {
namespace {

// A bound on memory: 2^31 blocks take 10 GB with their flags. The largest layout file
// (layout_file.h) follows from it, and layout/builder.cc and selection/build_layout.cc have the
// same bound.
constexpr std::int64_t kMaxKept = std::int64_t{1} << 31;
// The number of rows that a thread takes at a time.
constexpr std::int64_t kRowsOfPart = 128;

// Steps of work that a row of blocks takes, even if it has no block.
constexpr std::int64_t kStepsOfRow = 6;

// A run in 8 bytes. If no two kept blocks are neighbours, each block is a run, and writing larger
// records would take more time than finding the runs.
struct ShortRun {
  std::int32_t begin;
  std::uint32_t count_and_class;  // twice the count, plus 1 for a partial run
};

// The runs of consecutive rows of blocks, counted through all heads. There are few runs, but there
// may be millions of blocks, so the memory for blocks is allocated once, when all parts are known.
struct Part {
  std::vector<ShortRun> runs;
  std::vector<std::int64_t> ends;  // the blocks of this part up to the end of each row
  bool any_partial = false;
};

void for_each(base::ThreadPool* pool, std::int64_t count,
              const std::function<void(std::int64_t, int)>& body) {
  if (pool != nullptr) return pool->parallel_for(count, body);
  for (std::int64_t i = 0; i < count; ++i) body(i, 0);
}

void write(const Part& part, std::int64_t begin, std::int64_t first_line, BlockLayout* layout) {
  std::int32_t* index = layout->indices.data() + begin;
  std::uint8_t* partial = layout->partial.data() + (layout->partial.empty() ? 0 : begin);
  for (const ShortRun& run : part.runs) {
    const std::uint32_t count = run.count_and_class / 2;
    for (std::uint32_t i = 0; i < count; ++i) {
      *index++ = static_cast<std::int32_t>(static_cast<std::uint32_t>(run.begin) + i);
    }
    if (layout->partial.empty()) continue;
    if (run.count_and_class % 2 == 0) {
      partial += count;
      continue;
    }
    for (std::uint32_t i = 0; i < count; ++i) *partial++ = 1;
  }
  auto line = static_cast<std::size_t>(first_line);
  for (const std::int64_t end : part.ends) layout->indptr[++line] = begin + end;
}

// A layout of these sizes and heads without its rows.
BlockLayout without_rows(const Pattern& pattern, const Extent& extent, std::int64_t block_rows,
                         std::int64_t block_columns, std::int64_t heads) {
  BlockLayout layout{.block_rows = block_rows,
                     .block_columns = block_columns,
                     .seq_q = extent.seq_q,
                     .seq_k = extent.seq_k,
                     .heads = distinct_heads(pattern.node(), heads),
                     .indptr = {},
                     .indices = {},
                     .partial = {}};
  for (std::int64_t head = 0; layout.heads > 1 && layout.heads < heads && head < heads; ++head) {
    layout.head_map.push_back(static_cast<std::int32_t>(head % layout.heads));
  }
  return layout;
}

// Classifies lines [first, last) into a part and returns the number of its blocks. Each head has
// `rows` lines.
std::int64_t classify(Classifier& classifier, std::int64_t rows, std::int64_t first,
                      std::int64_t last, Part* part) {
  std::int64_t count = 0;
  for (std::int64_t line = first; line < last; ++line) {
    const std::vector<BlockRun>& runs = classifier.row(line / rows, line % rows);
    const std::size_t before = part->runs.size();
    part->runs.resize(before + runs.size());
    ShortRun* out = part->runs.data() + before;
    for (const BlockRun& run : runs) {
      *out++ = {static_cast<std::int32_t>(run.begin),
                static_cast<std::uint32_t>(run.end - run.begin) * 2 + run.partial};
      count += run.end - run.begin;
      part->any_partial = part->any_partial || run.partial;
    }
    part->ends.push_back(count);
  }
  // The steps of the rows, and of the blocks that join() will write.
  base::charge((last - first) * kStepsOfRow + count / 4);
  return count;
}

// Copies the parts one after another into the arrays of a layout of `lines` rows of blocks.
void join(const std::vector<Part>& parts, std::int64_t lines, base::ThreadPool* pool,
          BlockLayout* layout) {
  std::vector<std::int64_t> begins;
  std::int64_t sum = 0;
  bool any_partial = false;
  for (const Part& part : parts) {
    begins.push_back(sum);
    sum += part.ends.back();
    any_partial = any_partial || part.any_partial;
  }
  try {
    layout->indptr.resize(static_cast<std::size_t>(lines) + 1);
    layout->indices.resize(static_cast<std::size_t>(sum));
    if (any_partial) layout->partial.resize(static_cast<std::size_t>(sum));
  } catch (const std::bad_alloc&) {
    base::fail(ErrorCode::kOutOfMemory, "no memory for a layout of {} kept blocks", sum);
  }
  for_each(pool, static_cast<std::int64_t>(parts.size()), [&](std::int64_t index, int) {
    const auto at = static_cast<std::size_t>(index);
    write(parts[at], begins[at], index * kRowsOfPart, layout);
  });
}

}  // namespace

BlockLayout make_layout(const Pattern& pattern, const Extent& extent, std::int64_t block_rows,
                        std::int64_t block_columns, std::int64_t heads,
                        const PatternContext& context, base::ThreadPool* pool) {
  const Placement placement = Placement::of(extent, context);
  std::vector<std::unique_ptr<Classifier>> classifiers(
      pool == nullptr ? 1 : static_cast<std::size_t>(pool->threads()));
  classifiers[0] = std::make_unique<Classifier>(pattern, placement, block_rows, block_columns);
  const std::int64_t rows = classifiers[0]->rows();
  if (classifiers[0]->columns() > std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kInvalidArgument, "{} columns of blocks; a layout holds fewer than 2^31",
               classifiers[0]->columns());
  }
  BlockLayout layout = without_rows(pattern, extent, block_rows, block_columns, heads);
  const std::int64_t lines = layout.heads * rows;
  base::expect(lines * kStepsOfRow, "the rows of the layout");
  std::vector<Part> parts(static_cast<std::size_t>(base::ceil_div(lines, kRowsOfPart)));
  std::atomic<std::int64_t> kept{0};
  for_each(pool, static_cast<std::int64_t>(parts.size()), [&](std::int64_t index, int worker) {
    auto& classifier = classifiers[static_cast<std::size_t>(worker)];
    if (!classifier) {
      classifier = std::make_unique<Classifier>(pattern, placement, block_rows, block_columns);
    }
    const std::int64_t first = index * kRowsOfPart;
    const std::int64_t count =
        classify(*classifier, rows, first, std::min(first + kRowsOfPart, lines),
                 &parts[static_cast<std::size_t>(index)]);
    if (kept.fetch_add(count) + count > kMaxKept) {
      base::fail(ErrorCode::kOutOfMemory,
                 "more than 2^31 blocks of {} x {} are kept of Sq {} x Sk {}; use larger blocks",
                 block_rows, block_columns, extent.seq_q, extent.seq_k);
    }
  });
  join(parts, lines, pool, &layout);
  return layout;
}

}  // namespace annulus::pattern
