#include "autotune/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autotune/report/markup.h"

namespace annulus::autotune::report {
namespace {

constexpr std::size_t kMostRows = 2000;

using Headings = std::initializer_list<const char*>;

// Opens a table in an element that scrolls, up to its rows.
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

// A table with a line of headings, which writes so many rows and counts all.
class Table {
 public:
  explicit Table(Headings headings) { open_table(headings, &markup_); }
  void row(const std::vector<std::string>& cells, const char* style = "each") {
    if (++rows_ > kMostRows) return;
    markup_.open("tr", {{"class", style}});
    for (const std::string& cell : cells) markup_.element("td", cell);
    markup_.close();
  }
  std::string take() {
    markup_.close().close().close();
    if (rows_ > kMostRows) {
      markup_.element("p", fmt::format("{} further rows are left out.", rows_ - kMostRows));
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

std::string tried_text(const Story& story) {
  const auto done = static_cast<double>(story.result->tried + story.result->dropped);
  return fmt::format("{} tried, {} dropped, of {} candidates ({:.1f} %)", story.result->tried,
                     story.result->dropped, story.candidates,
                     100 * done / static_cast<double>(story.candidates));
}

using Facts = std::vector<std::pair<std::string, std::string>>;

void add_outcome(const Story& story, Facts* facts) {
  if (!story.result) {
    facts->emplace_back("outcome", story.why_no_result);
    facts->emplace_back("candidates", std::to_string(story.candidates));
    return;
  }
  const SearchResult& result = *story.result;
  facts->emplace_back("winner", to_string(story.winner().config));
  facts->emplace_back("default", to_string(story.standard().config));
  if (result.runner_up) {
    facts->emplace_back("runner-up", to_string(result.trials[*result.runner_up].config));
  }
  facts->emplace_back("ratio to the default", ratio_text(story));
  facts->emplace_back(
      story.predicted ? "predicted" : "measured, median",
      fmt::format("{}, the default's {}", time_text(result.winner_time, story.predicted),
                  time_text(result.default_time, story.predicted)));
  facts->emplace_back("candidates", tried_text(story));
}

// A journal has no clock; the result that was made of it has.
void add_origin(const Story& story, Facts* facts) {
  if (!story.entry) {
    facts->emplace_back("when", "not stated: no stored result of this device and shape is here");
    return;
  }
  const tuned::Entry::Origin& origin = story.entry->origin;
  facts->emplace_back("when", fmt::format("{}, by the stored result of this device and shape",
                                          date_text(origin.when)));
  if (!origin.pattern.empty()) facts->emplace_back("pattern", origin.pattern);
  if (origin.clock_mhz > 0) {
    facts->emplace_back(
        "clocks", fmt::format("{} MHz, memory {} MHz", origin.clock_mhz, origin.memory_clock_mhz));
  }
}

std::vector<std::string> candidate_cells(const Story& story, std::size_t turn, std::size_t index) {
  const tuned::Trial& trial = story.result->trials[index];
  std::vector<std::string> cells = {turn > 0 ? std::to_string(turn) : "", to_string(trial.config),
                                    cycles_text(trial.predicted)};
  if (trial.outcome != tuned::Trial::Outcome::kTried) {
    cells.emplace_back(trial.outcome == tuned::Trial::Outcome::kDropped ? "dropped" : "not tried");
    return cells;
  }
  cells.emplace_back("tried");
  cells.push_back(story.predicted ? cycles_text(trial.time) : fmt::format("{:.2f}", trial.time));
  cells.push_back(ratio_text(trial.ratio));
  cells.push_back(std::to_string(trial.rounds));
  return cells;
}

const char* style_of(const Story& story, std::size_t index) {
  if (index == story.result->winner) return "winner";
  return index == story.result->default_at ? "default" : "each";
}

std::string stored_ratio(const tuned::Entry& entry) {
  if (entry.config == entry.default_config) return "1: the default stays";
  const double middle = static_cast<double>(entry.time) /
                        static_cast<double>(std::max<std::int64_t>(1, entry.default_time));
  const std::string text = ratio_text({static_cast<double>(entry.ratio_low_ppm) / 1e6, middle,
                                       static_cast<double>(entry.ratio_high_ppm) / 1e6});
  return text + (entry.predicted ? ", predicted" : "");
}

}  // namespace

std::string facts_table(const Story& story) {
  Facts facts = {{"journal", story.path}};
  facts.insert(facts.end(), story.facts.begin(), story.facts.end());
  add_origin(story, &facts);
  facts.emplace_back("times", story.predicted ? "predicted, none is measured" : "measured");
  facts.emplace_back(
      "search", ending_text(story) + (story.damaged ? "; what stands behind the last whole line of "
                                                      "the journal is damaged and not used"
                                                    : ""));
  add_outcome(story, &facts);
  Markup markup;
  markup.open("table", {{"class", "facts"}}).open("tbody");
  for (const auto& [name, text] : facts) {
    markup.open("tr").element("th", name).element("td", text).close();
  }
  return markup.close().close().take();
}

std::string dropped_table(const Story& story) {
  if (story.result->dropped == 0) return Markup().element("p", "None was dropped.").take();
  Table table({"configuration", "why"});
  for (const Step& step : story.steps) {
    if (!step.dropped) continue;
    const tuned::Trial& trial = story.result->trials[step.trial];
    table.row({to_string(trial.config), trial.reason});
  }
  return table.take();
}

std::string candidates_table(const Story& story) {
  Table table({"turn", "configuration", "predicted cycles, static model", "outcome",
               story.predicted ? "predicted cycles, counted work" : "time, us",
               story.predicted ? "ratio of predicted cycles" : "ratio to the default", "rounds"});
  std::vector<bool> told(story.result->trials.size());
  for (std::size_t i = 0; i < story.steps.size(); ++i) {
    const std::size_t index = story.steps[i].trial;
    told[index] = true;
    table.row(candidate_cells(story, i + 1, index), style_of(story, index));
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (!told[i]) others.push_back(i);
  }
  std::ranges::stable_sort(others, {},
                           [&](std::size_t i) { return story.result->trials[i].predicted; });
  for (const std::size_t index : others) {
    table.row(candidate_cells(story, 0, index), style_of(story, index));
  }
  return table.take();
}

OverviewRow overview_row(const Story& story, std::string id) {
  // A journal's text may be long, a character has up to 4 bytes, and what is cut is written so.
  constexpr std::size_t kMostBytes = 4 * (kMostCharacters + 1);
  OverviewRow row{std::move(id),
                  story.device.substr(0, kMostBytes),
                  story.shape.substr(0, kMostBytes),
                  "",
                  ratio_text(story),
                  story.predicted,
                  ending_text(story)};
  if (story.result) row.winner = to_string(story.winner().config);
  return row;
}

OverviewRow overview_row(const tuned::ListedEntry& listed, std::string id) {
  const tuned::Entry& entry = listed.entry;
  return {std::move(id),
          listed.device,
          to_string(entry.shape),
          to_string(entry.config),
          stored_ratio(entry),
          entry.predicted,
          entry.complete ? "ended by itself; no journal" : "cut short; no journal"};
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

std::string entry_line(const tuned::ListedEntry& listed, const OverviewRow& row) {
  const tuned::Entry& entry = listed.entry;
  const double unit = entry.predicted ? 1.0 : 1e3;  // microseconds of nanoseconds
  Markup markup;
  markup.open("tr", {{"id", row.id}}).element("td", row.id);
  for (const std::string& cell :
       {row.device, row.shape, row.winner, to_string(entry.default_config), row.ratio,
        time_text(static_cast<double>(entry.time) / unit, entry.predicted),
        time_text(static_cast<double>(entry.default_time) / unit, entry.predicted),
        version_text(entry.origin.driver_version), version_text(entry.origin.nvrtc_version),
        date_text(entry.origin.when), listed.path}) {
    markup.element("td", cell);
  }
  return markup.close().take();
}

std::string entries_table(std::string_view lines) {
  return table_of({"", "device", "shape", "winner", "default", "ratio to the default",
                   "winner's time", "default's time", "driver", "NVRTC", "when", "place"},
                  lines);
}

}  // namespace annulus::autotune::report
