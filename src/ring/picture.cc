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

// Colours of equal lightness, spread over all hues: neighbours differ, and black text is readable
// on each.
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

// The owners of the keys that a rank computes with in a step: none, the rank itself, or the owners
// of a round's rows.
std::vector<int> owners_of(const RankSchedule& own, int rank, const Op* compute) {
  if (compute == nullptr) return {};
  if (compute->round == kOwnKeys) return {rank};
  std::vector<int> owners;
  int index = 0;
  for (const Transfer& receive : own.exchange_of(compute->round, &index)->receives) {
    if (owners.empty() || owners.back() != receive.owner) owners.push_back(receive.owner);
  }
  return owners;
}

// A cell has a coloured stripe for each owner.
std::string cell(int ranks, int rank, int step, const std::vector<int>& owners, bool last,
                 std::int64_t tiles) {
  const int x = x_of(step);
  const int y = y_of(rank);
  const int middle = x + kCellWidth / 2;
  std::string svg = fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" "
      "stroke=\"#888\"/>\n",
      x, y, kCellWidth, kCellHeight, owners.size() == 1 ? colour(owners[0], ranks) : "#eee");
  if (owners.empty()) return svg + text(middle, y + 32, "nothing to compute", "middle", 11);
  const int count = static_cast<int>(owners.size());
  for (int i = 0; i < count && count > 1; ++i) {
    const int begin = kCellWidth * i / count;
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                       x + begin, y, kCellWidth * (i + 1) / count - begin, kCellHeight,
                       colour(owners[static_cast<std::size_t>(i)], ranks));
  }
  std::string whose = "keys of rank";
  for (int i = 0; i < count && i < 3; ++i) {
    whose += fmt::format("{}{}", i == 0 ? " " : ", ", owners[static_cast<std::size_t>(i)]);
  }
  if (count > 3) whose = fmt::format("keys of {} ranks", count);
  svg += text(middle, y + 23, whose);
  return svg + text(middle, y + 42, fmt::format("{} tiles{}", tiles, last ? ", finish" : ""),
                    "middle", 11);
}

// An arrow from the cell of the step in which rows are sent to the cell of the step in which they
// are used.
std::string arrow(int ranks, int rank, const Op& op, const Transfer& send) {
  return fmt::format(
      "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"4\" "
      "marker-end=\"url(#head)\"/>\n",
      x_of(op.round) + kCellWidth, y_of(rank) + kCellHeight / 2, x_of(op.round + 1) - 3,
      y_of(send.peer) + kCellHeight / 2, colour(send.owner, ranks));
}

}  // namespace

std::string draw(const PlannedRing& ring, const std::vector<std::vector<std::int64_t>>& tiles) {
  const int ranks = ring.world.ranks();
  const std::int64_t row_bytes = packed_form(ring.world.problem).row_bytes;
  const Rounds& rounds = ring.world.rounds;
  const int steps = static_cast<int>(rounds.rounds.size()) + 1;
  const int width = x_of(steps) + 10;
  const int height = y_of(ranks) + 24;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\">\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"6\" "
      "refY=\"4\" markerWidth=\"4\" markerHeight=\"4\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
      "fill=\"#666\"/></marker></defs>\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height);
  svg +=
      text(14, 26,
           fmt::format("A ring of {} ranks: {} sent, where every shard to every rank would be {}",
                       ranks, bytes_text(rounds.rows_sent * row_bytes),
                       bytes_text(ring.world.problem.seq_k * (ranks - 1) * row_bytes)),
           "start", 16);
  svg += text(14, 46,
              "Rows are ranks with their queries, columns are steps in time. Colour: whose keys; "
              "arrow: rows sent to where they are used next",
              "start", 11);
  for (int step = 0; step < steps; ++step) {
    svg += text(x_of(step) + kCellWidth / 2, kTop - 14, fmt::format("step {}", step));
  }
  std::string arrows;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const RankSchedule& own = ring.ranks[at].schedule;
    svg += text(14, y_of(rank) + 24, fmt::format("rank {}", rank), "start");
    svg += text(14, y_of(rank) + 42,
                fmt::format("{} queries", pattern::total_length(ring.world.shards.q[at])), "start",
                11);
    // A cell shows the total number of tiles of all branches.
    std::vector<const Op*> computes(static_cast<std::size_t>(steps), nullptr);
    std::vector<std::int64_t> of_step(static_cast<std::size_t>(steps), 0);
    std::size_t launch = 0;
    for (const Op& op : own.ops) {
      if (op.kind == Op::Kind::kCompute) {
        computes[static_cast<std::size_t>(op.round + 1)] = &op;
        of_step[static_cast<std::size_t>(op.round + 1)] += tiles[at][launch++];
      }
      for (const Transfer& send : op.sends) arrows += arrow(ranks, rank, op, send);
    }
    for (int step = 0; step < steps; ++step) {
      const auto which = static_cast<std::size_t>(step);
      const Op* compute = computes[which];
      svg += cell(ranks, rank, step, owners_of(own, rank, compute),
                  compute != nullptr && compute->last, of_step[which]);
    }
  }
  svg += arrows;
  return svg + "</svg>\n";
}

}  // namespace annulus::ring
