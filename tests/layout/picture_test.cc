#include <doctest/doctest.h>

#include "layout/sample_layout.h"

namespace annulus {
namespace {

using test::code_of;

TEST_CASE("a text picture marks full, partial and missing blocks") {
  const BlockLayout layout = make_layout(causal() & window(31, 0), {16, 16, 80, 80});
  CHECK(text_picture(layout) ==
        "head 0: 12 of 5 x 5 blocks of 16 x 16\n"
        "+....\n"
        "#+...\n"
        "+#+..\n"
        ".+#+.\n"
        "..+#+\n");
  CHECK(text_picture(layout, {0, 3}) ==
        "head 0: 12 of 5 x 5 blocks of 16 x 16, a cell is 2 x 2 blocks\n"
        "-..\n"
        "--.\n"
        ".++\n");
  BlockLayout none;
  none.block_rows = none.block_columns = 8;
  none.indptr = {0};
  CHECK(text_picture(none) == "head 0: 0 of 0 x 0 blocks of 8 x 8\n");
}

TEST_CASE("a picture is of one head") {
  BlockLayout layout{.block_rows = 8,
                     .block_columns = 8,
                     .seq_q = 8,
                     .seq_k = 16,
                     .heads = 2,
                     .indptr = {0, 1, 2},
                     .indices = {0, 1},
                     .partial = {},
                     .head_map = {1, 0, 1}};
  CHECK(text_picture(layout, {0, 0}).ends_with("\n.#\n"));
  CHECK(text_picture(layout, {1, 0}).ends_with("\n#.\n"));
  CHECK(code_of([&] { text_picture(layout, {3, 0}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { svg_picture(layout, {-1, 0}); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { svg_picture(layout, {0, 5000}); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("an SVG has a rectangle for each run of one shade") {
  const BlockLayout layout = make_layout(causal() & window(31, 0), {16, 16, 80, 80});
  const std::string svg = svg_picture(layout);
  std::size_t count = 0;
  for (std::size_t at = svg.find("<rect "); at != std::string::npos;
       at = svg.find("<rect ", at + 1)) {
    ++count;
  }
  // No two neighbours in a row have the same class. The other rectangles are the page, the grid and
  // the legend.
  CHECK(count == 12 + 2 + 3);
  // SVG 1.1 has no hsl(), and some viewers draw it black.
  CHECK(svg.find("hsl") == std::string::npos);
  CHECK(svg.find("fill=\"#") != std::string::npos);
  for (const char* words : {">queries<", ">keys, from the first on<", ">full blocks<"}) {
    CAPTURE(words);
    CHECK(svg.find(words) != std::string::npos);
  }
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("head 0: 12 of 5 x 5 blocks of 16 x 16") != std::string::npos);
  // For any size of the grid, a picture stays small.
  const BlockLayout large = make_layout(causal(), {8, 8, 65536, 65536});
  CHECK(svg_picture(large).size() < 100000);
  CHECK(text_picture(large).size() < 64 * 65 + 100);
}

}  // namespace
}  // namespace annulus
