#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/colour.h"
#include "base/fail.h"
#include "base/math.h"
#include "layout/builder.h"

namespace annulus::layout {
namespace {

constexpr std::int64_t kMaxCells = 4096;

// Counts one head's blocks in the cells of a picture.
class Grid {
 public:
  Grid(const LayoutView& layout, const PictureOptions& options, std::int64_t default_cells)
      : layout_(layout) {
    layout.validate();
    if (options.head < 0 || (layout.query_heads() > 1 && options.head >= layout.query_heads())) {
      base::fail(ErrorCode::kInvalidArgument, "there is no head {} in a layout for {} heads",
                 options.head, layout.query_heads());
    }
    if (options.max_cells < 0 || options.max_cells > kMaxCells) {
      base::fail(ErrorCode::kInvalidArgument, "a picture of {} cells; give 1 to {}, or 0",
                 options.max_cells, kMaxCells);
    }
    const std::int64_t most = options.max_cells == 0 ? default_cells : options.max_cells;
    const std::int64_t head = layout.distinct_head(layout.query_heads() == 1 ? 0 : options.head);
    // Rows and columns have the same scale, so a square grid gives a square picture.
    scale_ = std::max<std::int64_t>(
        {1, base::ceil_div(layout.rows(), most), base::ceil_div(layout.columns(), most)});
    rows_ = base::ceil_div(layout.rows(), scale_);
    columns_ = base::ceil_div(layout.columns(), scale_);
    cells_.resize(static_cast<std::size_t>(rows_ * columns_));
    for (std::int64_t row = 0; row < layout.rows(); ++row) {
      for (std::int64_t at = begin_of(layout, head, row); at < begin_of(layout, head, row + 1);
           ++at) {
        const std::int64_t column = layout.indices[static_cast<std::size_t>(at)];
        Cell& cell = cells_[static_cast<std::size_t>(row / scale_ * columns_ + column / scale_)];
        ++cell.kept;
        cell.partial += block_at(layout, at) == Block::kPartial;
        ++kept_;
      }
    }
    caption_ =
        fmt::format("head {}: {} of {} x {} blocks of {} x {}", options.head, kept_, layout.rows(),
                    layout.columns(), layout.block_rows, layout.block_columns);
    if (scale_ > 1) caption_ += fmt::format(", a cell is {} x {} blocks", scale_, scale_);
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  const std::string& caption() const { return caption_; }

  char mark(std::int64_t row, std::int64_t column) const {
    const Cell& cell = at(row, column);
    if (cell.kept == 0) return '.';
    if (cell.kept < blocks(row, column)) return '-';
    return cell.partial > 0 ? '+' : '#';
  }
  // The shade of a cell, in 16 steps, so that neighbours with the same shade are drawn as one
  // rectangle. A partial block counts half.
  int shade(std::int64_t row, std::int64_t column) const {
    const Cell& cell = at(row, column);
    const double weight = static_cast<double>(2 * cell.kept - cell.partial) / 2;
    return static_cast<int>(std::ceil(16 * weight / static_cast<double>(blocks(row, column))));
  }

 private:
  struct Cell {
    std::int64_t kept = 0;
    std::int64_t partial = 0;
  };
  const Cell& at(std::int64_t row, std::int64_t column) const {
    return cells_[static_cast<std::size_t>(row * columns_ + column)];
  }
  std::int64_t blocks(std::int64_t row, std::int64_t column) const {
    return (std::min((row + 1) * scale_, layout_.rows()) - row * scale_) *
           (std::min((column + 1) * scale_, layout_.columns()) - column * scale_);
  }

  const LayoutView& layout_;
  std::int64_t scale_ = 1;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t kept_ = 0;
  std::vector<Cell> cells_;
  std::string caption_;
};

// The colour of a shade. 0 means that nothing is kept, and 16 that all blocks are kept and full.
std::string colour(int shade) {
  return shade == 0 ? "#f4f4f4" : base::hsl_colour(212, 0.6, (88 - shade * 3.5) / 100);
}

std::string legend(std::int64_t x, std::int64_t y) {
  std::string svg;
  const auto add = [&](int shade, const char* words) {
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n"
        "<text x=\"{}\" y=\"{}\" font-size=\"11\">{}</text>\n",
        x, y, colour(shade), x + 18, y + 10, words);
    x += 110;
  };
  add(16, "full blocks");
  add(8, "partial, or half");
  add(0, "no block");
  return svg;
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

std::string text_picture(const LayoutView& view, const PictureOptions& options) {
  const layout::Grid grid(view, options, 64);
  std::string text = grid.caption() + "\n";
  for (std::int64_t row = 0; row < grid.rows(); ++row) {
    for (std::int64_t column = 0; column < grid.columns(); ++column) {
      text += grid.mark(row, column);
    }
    text += '\n';
  }
  return text;
}

std::string svg_picture(const LayoutView& view, const PictureOptions& options) {
  const layout::Grid grid(view, options, 256);
  // Space on the left and at the top for the names of the axes, and at the bottom for the legend.
  constexpr std::int64_t kLeft = 30, kRight = 12, kTop = 54, kLegend = 34;
  const std::int64_t cell =
      std::max<std::int64_t>(2, 768 / std::max<std::int64_t>({1, grid.rows(), grid.columns()}));
  const std::int64_t width = grid.columns() * cell;
  const std::int64_t height = grid.rows() * cell;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
      "<text x=\"{2}\" y=\"24\" font-size=\"13\">{3}</text>\n"
      "<rect x=\"{2}\" y=\"{4}\" width=\"{5}\" height=\"{6}\" fill=\"{7}\"/>\n",
      std::max<std::int64_t>(width, 420) + kLeft + kRight, height + kTop + kLegend, kLeft,
      grid.caption(), kTop, width, height, layout::colour(0));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"11\">keys, from the first on</text>\n",
                     kLeft, kTop - 8);
  svg += fmt::format(
      "<text x=\"20\" y=\"{0}\" font-size=\"11\" transform=\"rotate(90 20 {0})\">queries</text>\n",
      kTop);
  for (std::int64_t row = 0; row < grid.rows(); ++row) {
    for (std::int64_t column = 0; column < grid.columns();) {
      const int shade = grid.shade(row, column);
      const std::int64_t begin = column;
      while (column < grid.columns() && grid.shade(row, column) == shade) ++column;
      if (shade == 0) continue;
      svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                         kLeft + begin * cell, kTop + row * cell, (column - begin) * cell, cell,
                         layout::colour(shade));
    }
  }
  return svg + layout::legend(kLeft, kTop + height + 12) + "</svg>\n";
}

}  // namespace annulus::inline v0
