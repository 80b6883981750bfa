#include "ring/picture.h"

#include <fmt/core.h>

#include <cmath>

#include "base/colour.h"

namespace annulus::ring {
namespace {

constexpr int kCellWidth = 132;
constexpr int kCellHeight = 54;
constexpr int kGap = 26;
constexpr int kLeft = 150;
constexpr int kTop = 74;

// Colours of one lightness all around the wheel: neighbours differ, and black text is readable on
// each.
std::string colour(int owner, int ranks) {
  return base::hsl_colour(360.0 * owner / ranks, 0.62, 0.76);
}

int x_of(int step) { return kLeft + step * (kCellWidth + kGap); }
int y_of(int rank) { return kTop + rank * (kCellHeight + kGap); }

std::string text(int x, int y, const std::string& words, const char* anchor = "middle",
                 int size = 13) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x,
                     y, anchor, size, words);
}

std::string bytes_text(std::int64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return value == std::floor(value) ? fmt::format("{:.0f} {}", value, units[unit])
                                    : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string cell(const PlannedRing& ring, int rank, int step, const Op* compute,
                 std::int64_t tiles) {
  const int x = x_of(step);
  const int y = y_of(rank);
  std::string svg = fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" "
      "stroke=\"#888\"/>\n",
      x, y, kCellWidth, kCellHeight,
      compute == nullptr ? "#eee" : colour(compute->owner, ring.schedule.ranks));
  const int middle = x + kCellWidth / 2;
  if (compute == nullptr) return svg + text(middle, y + 32, "nothing to compute", "middle", 11);
  svg += text(middle, y + 23, fmt::format("keys of rank {}", compute->owner));
  return svg + text(middle, y + 42,
                    fmt::format("{} tiles{}", tiles, compute->last ? ", finish" : ""), "middle",
                    11);
}

// An arrow from the cell that holds a shard to the one that holds it next: one row down and one
// step on. From the last rank it is short and dashed, with the name of the rank that the shard goes
// to.
std::string arrow(const PlannedRing& ring, int rank, const Op& op) {
  const int x = x_of(op.step) + kCellWidth - 14;
  const int y = y_of(rank) + kCellHeight;
  const bool wraps = op.send_to < rank;
  const int to_x = x_of(op.step + 1) + 14;
  const int to_y = wraps ? y + kGap - 8 : y_of(op.send_to) - 3;
  std::string svg = fmt::format(
      "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"4\" "
      "marker-end=\"url(#head)\"{}/>\n",
      x, y, to_x, to_y, colour(op.send_owner, ring.schedule.ranks),
      wraps ? " stroke-dasharray=\"7 4\"" : "");
  if (wraps) svg += text(to_x + 4, to_y + 12, fmt::format("to rank {}", op.send_to), "start", 10);
  return svg;
}

}  // namespace

std::string draw(const PlannedRing& ring, const std::vector<std::vector<std::int64_t>>& tiles) {
  const Schedule& schedule = ring.schedule;
  std::int64_t sent = 0;
  std::int64_t all = 0;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    sent += schedule.bytes_sent(rank);
    all += schedule.shard_bytes[static_cast<std::size_t>(rank)];
  }
  const int width = x_of(schedule.ranks) + 10;
  const int height = y_of(schedule.ranks) + 24;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\">\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"6\" "
      "refY=\"4\" markerWidth=\"4\" markerHeight=\"4\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
      "fill=\"#666\"/></marker></defs>\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height);
  svg +=
      text(14, 26,
           fmt::format("A ring of {} ranks: {} sent, where every shard to every rank would be {}",
                       schedule.ranks, bytes_text(sent), bytes_text(all * (schedule.ranks - 1))),
           "start", 16);
  svg += text(14, 46,
              "Rows are ranks with their queries, columns are steps in time. Colour: whose keys; "
              "arrow: keys sent on; dashed: around to the first ranks",
              "start", 11);
  for (int step = 0; step < schedule.ranks; ++step) {
    svg += text(x_of(step) + kCellWidth / 2, kTop - 14, fmt::format("step {}", step));
  }
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    svg += text(14, y_of(rank) + 24, fmt::format("rank {}", rank), "start");
    svg += text(14, y_of(rank) + 42,
                fmt::format("{} queries", pattern::total_length(ring.shards.q[at])), "start", 11);
    // A cell shows the last branch's launch of its step, and the tiles of all branches together.
    std::vector<const Op*> computes(static_cast<std::size_t>(schedule.ranks), nullptr);
    std::vector<std::int64_t> of_step(static_cast<std::size_t>(schedule.ranks), 0);
    std::size_t launch = 0;
    for (const Op& op : schedule.ops[at]) {
      if (op.kind != Op::Kind::kCompute) continue;
      computes[static_cast<std::size_t>(op.step)] = &op;
      of_step[static_cast<std::size_t>(op.step)] += tiles[at][launch++];
    }
    for (int step = 0; step < schedule.ranks; ++step) {
      const auto which = static_cast<std::size_t>(step);
      svg += cell(ring, rank, step, computes[which], of_step[which]);
    }
    for (const Op& op : schedule.ops[at]) {
      if (op.send_to != kNone) svg += arrow(ring, rank, op);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace annulus::ring
