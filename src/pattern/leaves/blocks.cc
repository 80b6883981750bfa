#include "pattern/leaves/blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pattern/check_number.h"
#include "pattern/layout_file.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr std::string_view kHideOutside = "hide_outside";

// The arguments of blocks: [ "file" ] [ "," "hide_outside" ]. There is no comma if no file is
// named.
Pattern parse_blocks(Arguments* read) {
  std::string path;
  bool hides = read->next_is_word(kHideOutside);
  if (!hides && !read->next_is(')')) {
    path = read->quoted();
    hides = read->next_is(',');
    if (hides) read->expect(',', "after the file of blocks");
  }
  if (hides) read->expect_word(kHideOutside, "as the last argument of blocks");
  return read->built([&] {
    const Pattern read_layout = read->load_blocks(path);
    if (!hides) return read_layout;
    Blocks hiding = std::get<Blocks>(read_layout.node().leaf);
    hiding.outside = OutsideLayout::kHidden;
    return make_leaf(std::move(hiding));
  });
}

constexpr Word kBlocksWords[] = {
    {"blocks", "blocks(\"file\")", "the blocks that a layout in a file keeps", parse_blocks}};

std::string in_quotes(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text.push_back('\\');
    text.push_back(c);
  }
  return text + '"';
}

// The position of the layout's first row.
std::int64_t origin_of(const BlockLayout& layout) { return layout.seq_k - layout.seq_q; }

// Appends the keys that one row of blocks keeps.
void append_kept(std::span<const std::int32_t> kept, const BlockLayout& layout, Interval universe,
                 IntervalSet* out) {
  const Interval inside = intersection(universe, {0, layout.seq_k});
  if (inside.empty()) return;
  const std::int64_t width = layout.block_columns;
  for (auto at = std::lower_bound(kept.begin(), kept.end(), inside.begin / width);
       at != kept.end() && *at * width < inside.end; ++at) {
    append(out, intersection({*at * width, (*at + 1) * width}, inside));
  }
}

}  // namespace

void Blocks::check() {
  if (layout == nullptr) base::fail(ErrorCode::kInvalidArgument, "blocks: the layout is null");
  if (outside != OutsideLayout::kRefused && outside != OutsideLayout::kHidden) {
    base::fail(ErrorCode::kInvalidArgument, "blocks: {} is not a value of OutsideLayout",
               static_cast<int>(outside));
  }
}

void Blocks::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "blocks({}", in_quotes(name));
  if (outside == OutsideLayout::kHidden)
    fmt::format_to(std::back_inserter(*text), ", {}", kHideOutside);
  text->push_back(')');
}

bool Blocks::visible(const Pair& pair) const {
  const std::int64_t row = difference(pair.q, origin_of(*layout));
  if (row < 0 || row >= layout->seq_q || pair.k < 0 || pair.k >= layout->seq_k) return false;
  const std::span<const std::int32_t> kept =
      layout->row(layout->distinct_head(pair.head), row / layout->block_rows);
  return std::binary_search(kept.begin(), kept.end(), pair.k / layout->block_columns);
}

void Blocks::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const std::int64_t origin = origin_of(*layout);
  const Interval rows = {question.queries.begin - origin, question.queries.end - origin};
  const Interval inside = intersection(rows, {0, layout->seq_q});
  if (inside.empty() || (wanted == Wanted::kAll && inside != rows)) return;
  const std::int64_t own_head = layout->distinct_head(question.head);
  join_rows(
      rows_of(inside, layout->block_rows), wanted,
      [&](std::int64_t row, IntervalSet* keys) {
        append_kept(layout->row(own_head, row), *layout, question.universe, keys);
      },
      out);
}

bool Blocks::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Blocks::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Blocks::alike_rows() const { return 0; }

std::int64_t Blocks::next_form(std::int64_t q) const {
  const std::int64_t row = q - origin_of(*layout);
  if (row >= layout->seq_q) return kNever;
  const std::int64_t next =
      row < 0 ? 0 : std::min(layout->seq_q, next_multiple(row, layout->block_rows));
  return q + (next - row);
}

std::int64_t Blocks::next_end(std::int64_t, std::int64_t position) const {
  return std::min(if_above(layout->seq_k, position),
                  next_multiple(position, layout->block_columns));
}

MovingEnds Blocks::moving_ends(std::int64_t) const { return {}; }

Piece Blocks::code(MaskWriter* write) const { return write->blocks(layout, name); }

Structure Blocks::structure() const {
  return {.head_period = 1,  // apart from the heads of the layout, which `heads` states
          .context_block = 0,
          .agreeing_rows = 0,
          .is_scattered = true,
          .heads = layout->query_heads(),
          .blocks = BlockSize{layout->block_rows, layout->block_columns, false},
          .layout = layout.get(),
          .outside = outside};
}

std::span<const Word> Blocks::words() { return kBlocksWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern blocks(std::shared_ptr<const BlockLayout> layout, OutsideLayout outside) {
  if (layout == nullptr) base::fail(ErrorCode::kInvalidArgument, "blocks: the layout is null");
  layout->validate();
  std::string name = "#" + pattern::layout_digest(*layout).hex();
  return pattern::make_leaf(pattern::leaves::Blocks{std::move(layout), std::move(name), outside});
}

Pattern blocks(BlockLayout layout, OutsideLayout outside) {
  return blocks(std::make_shared<const BlockLayout>(std::move(layout)), outside);
}

Pattern blocks(const std::string& path, OutsideLayout outside) {
  return pattern::make_leaf(pattern::leaves::Blocks{
      std::make_shared<const BlockLayout>(load_layout(path)), path, outside});
}

}  // namespace annulus::inline v0
