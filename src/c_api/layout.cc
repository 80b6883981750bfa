// The C interface of layouts. Each function converts its arguments and calls annulus/layout.h.
#include "annulus/c_layout.h"
#include "annulus/c_tools.h"

#include <algorithm>

#include "annulus/layout.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

constexpr StructName kBlockLayout = {"annulus_block_layout", "ANNULUS_BLOCK_LAYOUT_INIT"};
constexpr StructName kLayoutSizes = {"annulus_layout_sizes", "ANNULUS_LAYOUT_SIZES_INIT"};
constexpr StructName kLayoutOptions = {"annulus_layout_options", "ANNULUS_LAYOUT_OPTIONS_INIT"};
constexpr StructName kLayoutStatistics = {"annulus_layout_statistics",
                                          "ANNULUS_LAYOUT_STATISTICS_INIT"};
constexpr StructName kPictureOptions = {"annulus_picture_options", "ANNULUS_PICTURE_OPTIONS_INIT"};
constexpr StructName kLayoutDifference = {"annulus_layout_difference",
                                          "ANNULUS_LAYOUT_DIFFERENCE_INIT"};

annulus_layout_options read_options(const annulus_layout_options* given) {
  const annulus_layout_options defaults = ANNULUS_LAYOUT_OPTIONS_INIT;
  return given == nullptr ? defaults : read_struct(kLayoutOptions, given, defaults);
}

LayoutOptions options_of(const annulus_layout_options& c) {
  if (c.threads < 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} threads of the host; give a number, or 0 for one for each core", c.threads);
  }
  return {.layer = c.layer, .threads = c.threads, .work = work_limit_of(c.max_work, c.cancel)};
}

annulus_layout_statistics to_c(const LayoutStatistics& counts) {
  annulus_layout_statistics c = ANNULUS_LAYOUT_STATISTICS_INIT;
  c.rows = counts.rows;
  c.columns = counts.columns;
  c.heads = counts.heads;
  c.distinct_heads = counts.distinct_heads;
  c.kept = counts.kept;
  c.partial = counts.partial;
  c.block_density = counts.block_density.value;
  c.shortest_row = counts.shortest_row;
  c.longest_row = counts.longest_row;
  c.empty_rows = counts.empty_rows;
  c.shortest_column = counts.shortest_column;
  c.longest_column = counts.longest_column;
  c.empty_columns = counts.empty_columns;
  c.row_imbalance = counts.row_imbalance;
  c.column_imbalance = counts.column_imbalance;
  c.mean_distance = counts.mean_distance;
  c.bytes = counts.bytes;
  return c;
}

std::vector<Segment> segments_of(const char* name, const annulus_segment* c, std::size_t count) {
  if (count > 0) check_pointer(name, c);
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < count; ++i) segments.push_back({c[i].start, c[i].length});
  return segments;
}

// Makes a layout from one or two others.
template <typename Make>
annulus_status from_one(annulus_layout* layout, annulus_layout** result, const Make& make) {
  return guarded([&] {
    const LayoutPin pin(layouts(), number(layout));
    check_pointer("result (where the handle goes)", result);
    give_layout(result, make(pin->view()));
  });
}

template <typename Make>
annulus_status from_two(annulus_layout* a, annulus_layout* b, annulus_layout** result,
                        const Make& make) {
  return guarded([&] {
    const LayoutPin first(layouts(), number(a));
    const LayoutPin second(layouts(), number(b));
    check_pointer("result (where the handle goes)", result);
    give_layout(result, make(first->view(), second->view()));
  });
}

}  // namespace

HandleTable<LayoutObject>& layouts() {
  static auto* table = new HandleTable<LayoutObject>("layout", 0xc7);
  return *table;
}

LayoutView LayoutObject::view() const {
  if (const auto* own = std::get_if<BlockLayout>(&held)) return *own;
  if (const auto* mapped = std::get_if<MappedLayout>(&held)) return mapped->view();
  return std::get<std::shared_ptr<const GridLayout>>(held)->layout;
}

LayoutSizes sizes_of(const annulus_layout_sizes* given) {
  const annulus_layout_sizes c =
      read_struct(kLayoutSizes, given, annulus_layout_sizes ANNULUS_LAYOUT_SIZES_INIT);
  return {c.block_rows, c.block_columns, c.seq_q, c.seq_k, c.heads};
}

}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_layout_make(const char* pattern, const annulus_block_layout* blocks,
                                   const annulus_layout_sizes* sizes,
                                   const annulus_layout_options* given, annulus_layout** layout) {
  return guarded([&] {
    check_pointer("layout (where the handle goes)", layout);
    const Pattern parsed = pattern_of(pattern, blocks);
    const LayoutSizes of = c_api::sizes_of(sizes);
    const annulus_layout_options c = read_options(given);
    const LayoutOptions options = options_of(c);
    if (c.device == nullptr) return give_layout(layout, make_layout(parsed, of, options));
    const DevicePin pin(devices(), number(c.device));
    give_layout(layout, make_layout(pin->device, parsed, of, options));
  });
}

annulus_status annulus_layout_create(const annulus_block_layout* arrays, annulus_layout** layout) {
  return guarded([&] {
    check_pointer("arrays", arrays);
    BlockLayout made = *layout_of(arrays);
    made.validate();
    give_layout(layout, std::move(made));
  });
}

annulus_status annulus_layout_destroy(annulus_layout* layout) {
  return guarded([&] { layouts().erase(number(layout)); });
}

annulus_status annulus_layout_get(annulus_layout* layout, annulus_block_layout* to) {
  return guarded([&] {
    const LayoutPin pin(layouts(), number(layout));
    const LayoutView view = pin->view();
    annulus_block_layout c = ANNULUS_BLOCK_LAYOUT_INIT;
    c.block_rows = view.block_rows;
    c.block_columns = view.block_columns;
    c.seq_q = view.seq_q;
    c.seq_k = view.seq_k;
    c.heads = view.heads;
    c.indptr = view.indptr.data();
    c.indptr_count = view.indptr.size();
    c.indices = view.indices.data();
    c.indices_count = view.indices.size();
    if (!view.head_map.empty()) c.head_map = view.head_map.data();
    c.head_map_count = view.head_map.size();
    if (!view.partial.empty()) c.partial = view.partial.data();
    c.partial_count = view.partial.size();
    write_struct(kBlockLayout, to, c);
  });
}

annulus_status annulus_layout_get_statistics(annulus_layout* layout,
                                             annulus_layout_statistics* to) {
  return guarded([&] {
    const LayoutPin pin(layouts(), number(layout));
    write_struct(kLayoutStatistics, to, to_c(statistics(pin->view())));
  });
}

annulus_status annulus_pattern_statistics(const char* pattern, const annulus_block_layout* blocks,
                                          const annulus_layout_sizes* sizes,
                                          const annulus_layout_options* options,
                                          annulus_layout_statistics* to) {
  return guarded([&] {
    const PatternStatistics counts = statistics(pattern_of(pattern, blocks), c_api::sizes_of(sizes),
                                                options_of(read_options(options)));
    annulus_layout_statistics c = to_c(counts.layout);
    c.pair_density = counts.pairs.value;
    c.overhead = counts.overhead;
    write_struct(kLayoutStatistics, to, c);
  });
}

annulus_status annulus_layout_reachability(annulus_layout* layout, int32_t layers, double* shares) {
  return guarded([&] {
    const LayoutPin pin(layouts(), number(layout));
    check_pointer("shares", shares);
    const std::vector<double> found = reachability(pin->view(), layers);
    std::copy(found.begin(), found.end(), shares);
  });
}

annulus_status annulus_layout_picture(annulus_layout* layout, const annulus_picture_options* given,
                                      annulus_text** picture) {
  return guarded([&] {
    const LayoutPin pin(layouts(), number(layout));
    check_pointer("picture (where the handle goes)", picture);
    const annulus_picture_options defaults = ANNULUS_PICTURE_OPTIONS_INIT;
    const annulus_picture_options c =
        given == nullptr ? defaults : read_struct(kPictureOptions, given, defaults);
    const PictureOptions options = {c.head, c.max_cells};
    give_text(picture, truth("svg", c.svg) ? svg_picture(pin->view(), options)
                                           : text_picture(pin->view(), options));
  });
}

annulus_status annulus_layout_unite(annulus_layout* a, annulus_layout* b, annulus_layout** result) {
  return from_two(a, b, result, unite);
}
annulus_status annulus_layout_intersect(annulus_layout* a, annulus_layout* b,
                                        annulus_layout** result) {
  return from_two(a, b, result, intersect);
}
annulus_status annulus_layout_subtract(annulus_layout* a, annulus_layout* b,
                                       annulus_layout** result) {
  return from_two(a, b, result, subtract);
}

annulus_status annulus_layout_transpose(annulus_layout* layout, annulus_layout** result) {
  return from_one(layout, result, transpose);
}

annulus_status annulus_layout_slice(annulus_layout* layout, const annulus_segment* rows,
                                    size_t row_count, const annulus_segment* columns,
                                    size_t column_count, annulus_layout** result) {
  return from_one(layout, result, [&](const LayoutView& view) {
    return slice(view, segments_of("rows", rows, row_count),
                 segments_of("columns", columns, column_count));
  });
}

annulus_status annulus_layout_reblock(annulus_layout* layout, int64_t block_rows,
                                      int64_t block_columns, annulus_layout** result) {
  return from_one(layout, result,
                  [&](const LayoutView& view) { return reblock(view, block_rows, block_columns); });
}

annulus_status annulus_layout_with_density(annulus_layout* layout, double density,
                                           annulus_layout* within, annulus_layout** result) {
  if (within == nullptr) {
    return from_one(layout, result,
                    [&](const LayoutView& view) { return with_density(view, Density{density}); });
  }
  return from_two(layout, within, result, [&](const LayoutView& view, const LayoutView& bounds) {
    return with_density(view, Density{density}, bounds);
  });
}

annulus_status annulus_layout_share_heads(annulus_layout* layout, annulus_layout** result) {
  return from_one(layout, result, share_heads);
}
annulus_status annulus_layout_part_heads(annulus_layout* layout, annulus_layout** result) {
  return from_one(layout, result, part_heads);
}
annulus_status annulus_layout_head(annulus_layout* layout, int64_t head, annulus_layout** result) {
  return from_one(layout, result, [&](const LayoutView& view) { return head_of(view, head); });
}

annulus_status annulus_layout_compare(annulus_layout* first, annulus_layout* second,
                                      int64_t max_lines, annulus_layout_difference* to,
                                      annulus_text** text) {
  return guarded([&] {
    const LayoutPin a(layouts(), number(first));
    const LayoutPin b(layouts(), number(second));
    check_output(kLayoutDifference, to);
    LayoutDifference found = difference(a->view(), b->view(), max_lines);
    if (text != nullptr) give_text(text, std::move(found.text));
    annulus_layout_difference c = ANNULUS_LAYOUT_DIFFERENCE_INIT;
    c.only_first = found.only_first;
    c.only_second = found.only_second;
    c.flags = found.flags;
    c.same_sizes = found.same_sizes ? 1 : 0;
    write_struct(kLayoutDifference, to, c);
  });
}

}  // extern "C"
