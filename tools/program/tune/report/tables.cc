#include "program/tune/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program/tune/report/markup.h"
#include "program/tune/report/text.h"
#include "program/tune/tuned_text.h"

namespace annulus::program::report {
namespace {

constexpr std::size_t kMaxRows = 2000;

// The most bytes of a text from a file. A text is cut after kMaxCharacters characters and an
// ellipsis, with at most 4 bytes for each character.
constexpr std::size_t kMaxBytes = 4 * (kMaxCharacters + 1);

using Headings = std::initializer_list<const char*>;

// Opens a table inside an element that scrolls, up to its first row.
void open_table(Headings headings, Markup* markup) {
  markup->open("div", {{"class", "wide"}}).open("table").open("thead").open("tr");
  for (const char* heading : headings) markup->element("th", heading);
  markup->close().close().open("tbody");
}

std::string table_of(Headings headings, std::string_view lines) {
  Markup markup;
  open_table(headings, &markup);
  return markup.part(lines).close().close().close().take();
}

// A table with a row of headings. It writes a limited number of rows and counts all of them.
class Table {
 public:
  explicit Table(Headings headings) { open_table(headings, &markup_); }
  void row(const std::vector<std::string>& cells, const char* style = "each") {
    if (++rows_ > kMaxRows) return;
    markup_.open("tr", {{"class", style}});
    for (const std::string& cell : cells) markup_.element("td", cell);
    markup_.close();
  }
  std::string take() {
    markup_.close().close().close();
    if (rows_ > kMaxRows) {
      markup_.element("p", fmt::format("{} further rows are left out.", rows_ - kMaxRows));
    }
    return markup_.take();
  }

 private:
  Markup markup_;
  std::size_t rows_ = 0;
};

std::string cycles_text(double cycles) {
  return std::isfinite(cycles) ? fmt::format("{:.0f}", cycles) : "none";
}

std::string tried_text(const Search& search) {
  const auto done = static_cast<double>(search.decision->tried + search.decision->dropped);
  return fmt::format("{} tried, {} dropped, of {} candidates ({:.1f} %)", search.decision->tried,
                     search.decision->dropped, search.candidates,
                     100 * done / static_cast<double>(search.candidates));
}

using Facts = std::vector<std::pair<std::string, std::string>>;

void add_outcome(const Search& search, Facts* facts) {
  if (!search.decision) {
    facts->emplace_back("outcome", search.why_undecided);
    facts->emplace_back("candidates", std::to_string(search.candidates));
    return;
  }
  const Decision& decision = *search.decision;
  facts->emplace_back("winner", search.winner().configuration);
  facts->emplace_back("default", search.standard().configuration);
  if (decision.runner_up) {
    facts->emplace_back("runner-up", decision.trials[*decision.runner_up].configuration);
  }
  facts->emplace_back("ratio to the default", ratio_text(search));
  facts->emplace_back(
      search.predicted ? "predicted" : "measured, median",
      fmt::format("{}, the default's {}", time_text(decision.winner_time, search.predicted),
                  time_text(decision.default_time, search.predicted)));
  facts->emplace_back("candidates", tried_text(search));
}

// A journal has no clock; the result that was made of it has.
void add_origin(const Search& search, Facts* facts) {
  if (!search.stored) {
    facts->emplace_back("when", "not stated: no stored result of this device and shape is here");
    return;
  }
  const Stored& stored = *search.stored;
  facts->emplace_back("when", fmt::format("{}, by the stored result of this device and shape",
                                          date_text(stored.when)));
  if (!stored.pattern.empty()) facts->emplace_back("pattern", stored.pattern);
  if (stored.clock_mhz > 0) {
    facts->emplace_back(
        "clocks", fmt::format("{} MHz, memory {} MHz", stored.clock_mhz, stored.memory_clock_mhz));
  }
}

std::vector<std::string> candidate_cells(const Search& search, std::size_t turn,
                                         std::size_t index) {
  const Trial& trial = search.decision->trials[index];
  std::vector<std::string> cells = {turn > 0 ? std::to_string(turn) : "", trial.configuration,
                                    cycles_text(trial.predicted_cycles)};
  if (trial.outcome != Trial::Outcome::kTried) {
    cells.emplace_back(trial.outcome == Trial::Outcome::kDropped ? "dropped" : "not tried");
    return cells;
  }
  cells.emplace_back("tried");
  cells.push_back(search.predicted ? cycles_text(trial.time) : fmt::format("{:.2f}", trial.time));
  cells.push_back(ratio_text(trial.ratio));
  cells.push_back(std::to_string(trial.rounds));
  return cells;
}

const char* style_of(const Search& search, std::size_t index) {
  if (index == search.decision->winner) return "winner";
  return index == search.decision->default_at ? "default" : "each";
}

std::string stored_ratio(const Stored& stored) {
  if (stored.configuration == stored.default_configuration) return "1: the default stays";
  return ratio_text(stored.ratio) + (stored.predicted ? ", predicted" : "");
}

}  // namespace

std::string facts_table(const Search& search) {
  Facts facts = {{"journal", search.journal}};
  facts.insert(facts.end(), search.facts.begin(), search.facts.end());
  add_origin(search, &facts);
  facts.emplace_back("times", search.predicted ? "predicted, not measured" : "measured");
  facts.emplace_back(
      "search",
      ending_text(search) +
          (search.damaged
               ? "; the bytes after the last whole line of the journal are damaged and not used"
               : ""));
  add_outcome(search, &facts);
  Markup markup;
  markup.open("table", {{"class", "facts"}}).open("tbody");
  for (const auto& [name, text] : facts) {
    markup.open("tr").element("th", name).element("td", text).close();
  }
  return markup.close().close().take();
}

std::string dropped_table(const Search& search) {
  if (search.decision->dropped == 0) return Markup().element("p", "None was dropped.").take();
  Table table({"configuration", "why"});
  for (const Step& step : search.decision->order) {
    if (!step.dropped) continue;
    const Trial& trial = search.decision->trials[step.trial];
    table.row({trial.configuration, trial.reason});
  }
  return table.take();
}

std::string candidates_table(const Search& search) {
  Table table({"turn", "configuration", "predicted cycles, static model", "outcome",
               search.predicted ? "predicted cycles, counted work" : "time, us",
               search.predicted ? "ratio of predicted cycles" : "ratio to the default", "rounds"});
  std::vector<bool> told(search.decision->trials.size());
  for (std::size_t i = 0; i < search.decision->order.size(); ++i) {
    const std::size_t index = search.decision->order[i].trial;
    told[index] = true;
    table.row(candidate_cells(search, i + 1, index), style_of(search, index));
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (!told[i]) others.push_back(i);
  }
  std::ranges::stable_sort(
      others, {}, [&](std::size_t i) { return search.decision->trials[i].predicted_cycles; });
  for (const std::size_t index : others) {
    table.row(candidate_cells(search, 0, index), style_of(search, index));
  }
  return table.take();
}

OverviewRow overview_row(const Search& search, std::string id) {
  OverviewRow row{std::move(id),
                  search.device.substr(0, kMaxBytes),
                  search.shape.substr(0, kMaxBytes),
                  "",
                  ratio_text(search),
                  search.predicted,
                  ending_text(search)};
  if (search.decision) row.winner = search.winner().configuration.substr(0, kMaxBytes);
  return row;
}

OverviewRow overview_row(const Stored& stored, std::string id) {
  return {std::move(id),
          stored.device.substr(0, kMaxBytes),
          stored.shape.substr(0, kMaxBytes),
          stored.configuration.substr(0, kMaxBytes),
          stored_ratio(stored),
          stored.predicted,
          stored.complete ? "ended by itself; no journal" : "cut short; no journal"};
}

std::string overview_line(const OverviewRow& row) {
  Markup markup;
  markup.open("tr").open("td").link(row.id, row.id).close();
  for (const std::string& cell : {row.device, row.shape, row.winner, row.ratio}) {
    markup.element("td", cell);
  }
  markup.element("td", row.predicted ? "predicted" : "measured").element("td", row.ending);
  return markup.close().take();
}

std::string overview_table(std::string_view lines) {
  return table_of({"", "device", "shape", "winner", "ratio to the default", "times", "search"},
                  lines);
}

std::string entry_line(const Stored& stored, const OverviewRow& row) {
  Markup markup;
  markup.open("tr", {{"id", row.id}}).element("td", row.id);
  for (const std::string& cell :
       {row.device, row.shape, row.winner, stored.default_configuration, row.ratio,
        time_text(stored.time, stored.predicted), time_text(stored.default_time, stored.predicted),
        version_text(stored.driver), version_text(stored.nvrtc), date_text(stored.when),
        stored.path}) {
    markup.element("td", cell);
  }
  return markup.close().take();
}

std::string entries_table(std::string_view lines) {
  return table_of({"", "device", "shape", "winner", "default", "ratio to the default",
                   "winner's time", "default's time", "driver", "NVRTC", "when", "place"},
                  lines);
}

}  // namespace annulus::program::report
