#include "autotune/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "annulus/types.h"
#include "autotune/replay.h"
#include "autotune/report/markup.h"
#include "autotune/report/page_parts.h"
#include "autotune/report/plots.h"
#include "autotune/report/story.h"
#include "autotune/report/tables.h"

namespace annulus::autotune::report {
namespace {

constexpr std::size_t kMostLeftOut = 200;  // lines that are written

constexpr const char* kBegin =
    R"(<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'" />
<title>Tuning report</title><style>
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --faint: #d9dde2;
  --quiet: #667080; --dot: #7c93b2; --best: #1f6fd1; --winner: #c2410c; --median: #157f3d;
  --row: #f4f6f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e6ea; --paper: #14171b; --faint: #333a42;
  --quiet: #98a2af; --dot: #6f87a8; --best: #6aa9f7; --winner: #fb923c; --median: #4ade80;
  --row: #1c2127; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 3rem;
  border-top: 1px solid var(--faint); padding-top: 1rem; overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; } a { color: var(--best); }
.wide { overflow: auto; max-height: 32rem; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
td:first-child { white-space: nowrap; } th, td { text-align: left; vertical-align: top; padding: .2rem .7rem .2rem 0;
  border-bottom: 1px solid var(--faint); overflow-wrap: anywhere; min-width: 4.6rem; }
thead th { position: sticky; top: 0; background: var(--paper); }
.facts th { font-weight: normal; color: var(--quiet); white-space: nowrap; }
tr.winner td { color: var(--winner); font-weight: bold; } tr.default td { font-weight: bold; }
figure { margin: .4rem 0 1.2rem; } figcaption { color: var(--quiet); font-size: .86rem;
  max-width: 48rem; }
.multiples { display: flex; flex-wrap: wrap; gap: .6rem; }
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .title { fill: var(--quiet); } .middle { text-anchor: middle; } .end { text-anchor: end; }
.grid { stroke: var(--faint); stroke-width: .6; fill: none; }
.axis { stroke: var(--quiet); fill: none; }
.dot { stroke: var(--dot); stroke-linecap: round; fill: none; }
.line { stroke: var(--dot); stroke-width: 1.6; fill: none; }
.dot.best, .line.best { stroke: var(--best); } .dot.winner, .line.winner { stroke: var(--winner); }
.line.median { stroke: var(--median); stroke-width: 2.4; } .dot.dropped { stroke: var(--paper); }
.line.diagonal { stroke: var(--quiet); stroke-dasharray: 5 4; }
</style></head><body>
)";
constexpr const char* kEnd = "</body></html>\n";

constexpr const char* kIntroduction =
    "Each search compares configurations of kernels with the heuristic's own choice, the default, "
    "round by round. A ratio is a time over the default's: less is faster, and 1 is the default. "
    "Times of simulated devices are predicted and marked as such; they say nothing about a GPU.";

// A part of what is told of a search, which a page may do without. Those that matter most come
// first.
struct PartKind {
  const char* title;
  std::string (*write)(const Story& story);
};

std::vector<PartKind> part_kinds() {
  std::vector<PartKind> kinds = {{"Facts", facts_table}};
  for (const Plot& plot : plots()) kinds.push_back({plot.title, plot.draw});
  kinds.push_back({"Dropped candidates", dropped_table});
  kinds.push_back({"All candidates", candidates_table});
  return kinds;
}

// The results that are stored, and where those of a device and a shape are among them.
class Stored {
 public:
  explicit Stored(std::vector<tuned::ListedEntry> entries)
      : entries_(std::move(entries)), is_told_(entries_.size()) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      places_[{entries_[i].device, to_string(entries_[i].entry.shape)}].push_back(i);
    }
  }

  // Gives a story the last of its results. The others are told with it.
  void tell_with(Story* story) {
    const auto found = places_.find({story->device, story->shape});
    if (found == places_.end()) return;
    for (const std::size_t place : found->second) is_told_[place] = true;
    story->entry = entries_[found->second.back()].entry;
  }

  // Returns those that no story has.
  std::vector<const tuned::ListedEntry*> others() const {
    std::vector<const tuned::ListedEntry*> all;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!is_told_[i]) all.push_back(&entries_[i]);
    }
    return all;
  }

 private:
  std::vector<tuned::ListedEntry> entries_;
  std::vector<bool> is_told_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> places_;
};

// Makes a page. Its bytes are those of the overview with the headings to which that leads, of the
// table of results, and of the parts that the others leave room for.
class Writer {
 public:
  Writer(base::FileSystem& files, std::vector<std::string> left_out, const PageLimits& limits)
      : files_(files), limits_(limits), work_left_(limits.work), parts_(limits.bytes) {
    page_.left_out = std::move(left_out);
  }

  void tell_journals(const std::vector<FoundJournal>& journals, Stored* stored) {
    for (const FoundJournal& journal : journals) {
      std::string why = why_full();
      try {
        if (why.empty()) why = tell(journal.path, stored);
        if (!why.empty()) page_.left_out.push_back(fmt::format("'{}': {}", journal.path, why));
      } catch (const Error& error) {
        if (journal.named || error.code() == ErrorCode::kOutOfMemory) throw;
        page_.left_out.emplace_back(error.what());
      }
    }
  }

  void list_entries(const std::vector<const tuned::ListedEntry*>& entries) {
    for (const tuned::ListedEntry* listed : entries) {
      const auto listed_before = static_cast<std::size_t>(page_.entries);
      // At least a quarter of the page is for parts.
      if (listed_before == limits_.entries || listed_bytes() >= limits_.bytes / 4 * 3) {
        page_.left_out.push_back(fmt::format("{} of {} results without a journal",
                                             entries.size() - listed_before, entries.size()));
        return;
      }
      const OverviewRow row = overview_row(*listed, fmt::format("result-{}", ++page_.entries));
      overview_ += overview_line(row);
      entries_ += entry_line(*listed, row);
    }
  }

  Page take() {
    Markup markup;
    markup.verbatim(kBegin).element("h1", "Tuning report").element("p", kIntroduction);
    markup.element("p", fmt::format("Searches: {}. Results without a journal: {}.", page_.searches,
                                    page_.entries));
    if (overview_.empty()) {
      markup.element("p", "Nothing was found.");
    } else {
      markup.part(overview_table(overview_));
    }
    Markup results;
    if (!entries_.empty()) {
      results.element("h2", "Results without a journal").part(entries_table(entries_));
    }
    const std::size_t others = markup.bytes() + heading_bytes_ + results.bytes();
    parts_.shrink(limits_.bytes - std::min(limits_.bytes, others));
    for (std::size_t i = 0; i < headings_.size(); ++i) write_section(i, &markup);
    markup.part(results.take());
    write_left_out(&markup);
    page_.html = markup.verbatim(kEnd).take();
    return std::move(page_);
  }

 private:
  struct Heading {
    std::string id;
    std::string markup;
    std::size_t parts = 0;
  };

  std::size_t listed_bytes() const { return overview_.size() + heading_bytes_ + entries_.size(); }

  // Why no further search is told, whatever it is. Empty where one may be.
  std::string why_full() const {
    if (headings_.size() == limits_.searches) {
      return fmt::format("a report has at most {} searches", limits_.searches);
    }
    if (listed_bytes() >= limits_.bytes / 4) return "a report has no room for a further search";
    return work_left_ == 0 ? kTooLong : "";
  }

  // Tells a search, or returns why it does not.
  std::string tell(const std::string& path, Stored* stored) {
    const std::string text = read_text(path);
    if (!spend(std::ssize(text))) {
      work_left_ = 0;
      return kTooLong;
    }
    const tuned::Journal journal = journal_of(path, text);
    if (!spend(replay_steps(journal))) return kTooLong;
    Story story = story_of(path, journal, text);
    stored->tell_with(&story);
    add(story);
    return {};
  }

  void add(const Story& story) {
    const std::size_t search = headings_.size();
    const OverviewRow row = overview_row(story, fmt::format("search-{}", search + 1));
    Heading heading{row.id, "", 1};
    heading.markup =
        Markup().element("h2", fmt::format("{}: {}, {}", row.id, row.device, row.shape)).take();
    // What a story without a result has is facts alone.
    if (story.result) heading.parts = kinds_.size();
    for (std::size_t rank = 0; rank < heading.parts; ++rank) {
      parts_.add(search, rank, [&] { return part_of(kinds_[rank], rank > 0, story); });
    }
    heading_bytes_ += heading.markup.size() + kMostOfSection;
    overview_ += overview_line(row);
    headings_.push_back(std::move(heading));
    ++page_.searches;
  }

  static std::string part_of(const PartKind& kind, bool has_title, const Story& story) {
    Markup markup;
    if (has_title) markup.element("h3", kind.title);
    return markup.part(kind.write(story)).take();
  }

  void write_section(std::size_t search, Markup* page) const {
    const Heading& heading = headings_[search];
    page->open("section", {{"id", heading.id}}).part(heading.markup);
    std::string missing;
    for (std::size_t rank = 0; rank < heading.parts; ++rank) {
      if (const std::string* part = parts_.find(search, rank)) {
        page->part(*part);
      } else {
        missing += (missing.empty() ? "" : ", ") + std::string(kinds_[rank].title);
      }
    }
    if (!missing.empty()) {
      page->element("p",
                    fmt::format("Left out, as the page would be too large: {}. A report of this "
                                "journal alone has them.",
                                missing));
    }
    page->close();
  }

  void write_left_out(Markup* page) const {
    const std::vector<std::string>& lines = page_.left_out;
    if (lines.empty()) return;
    page->element("h2", "Left out").open("ul");
    for (std::size_t i = 0; i < lines.size() && i < kMostLeftOut; ++i) {
      page->element("li", lines[i]);
    }
    if (lines.size() > kMostLeftOut) {
      page->element("li", fmt::format("and {} more", lines.size() - kMostLeftOut));
    }
    page->close();
  }

  std::string read_text(const std::string& path) {
    const std::vector<std::byte> bytes = base::read_file(files_, path, tuned::kMaxJournalBytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool spend(std::int64_t steps) {
    if (steps > work_left_) return false;
    work_left_ -= steps;
    return true;
  }

  static constexpr const char* kTooLong = "a report of it and of the others would take too long";
  // The element of a section, and what it says of the parts that are left out.
  static constexpr std::size_t kMostOfSection = 400;

  base::FileSystem& files_;
  const PageLimits limits_;
  const std::vector<PartKind> kinds_ = part_kinds();
  std::int64_t work_left_;
  Page page_;
  std::vector<Heading> headings_;
  std::string overview_, entries_;  // lines of the two tables
  std::size_t heading_bytes_ = 0;
  PageParts parts_;
};

}  // namespace

Page page_of(base::FileSystem& files, Gathered gathered, const PageLimits& limits) {
  Writer writer(files, std::move(gathered.left_out), limits);
  Stored stored(std::move(gathered.entries));
  writer.tell_journals(gathered.journals, &stored);
  writer.list_entries(stored.others());
  return writer.take();
}

}  // namespace annulus::autotune::report
