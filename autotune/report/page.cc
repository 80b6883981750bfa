#include "autotune/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "annulus/error.h"
#include "autotune/report/markup.h"
#include "autotune/report/plots.h"
#include "autotune/report/story.h"
#include "autotune/report/tables.h"

namespace annulus::autotune::report {
namespace {

constexpr std::size_t kMostSearches = 1000;
constexpr std::size_t kMostEntries = 2000;
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

// Something of a search that a page may do without.
struct Part {
  std::string title;
  std::string markup;
  bool is_kept = false;
};

struct Section {
  OverviewRow row;
  std::string facts;
  std::vector<Part> parts;  // those that matter most come first
};

Section section_of(const Story& story, std::string id) {
  Section section{overview_row(story, std::move(id)), facts_table(story), {}};
  if (!story.result) return section;
  for (const Plot& plot : plots()) section.parts.push_back({plot.title, plot.draw(story)});
  section.parts.push_back({"Dropped candidates", dropped_table(story)});
  section.parts.push_back({"All candidates", candidates_table(story)});
  return section;
}

// Keeps what the page has room for: of all searches the parts that matter most, then the others.
void keep_parts(std::size_t bytes, std::vector<Section>* sections) {
  std::size_t most = 0;
  for (const Section& section : *sections) most = std::max(most, section.parts.size());
  for (std::size_t i = 0; i < most; ++i) {
    for (Section& section : *sections) {
      if (i >= section.parts.size()) continue;
      Part& part = section.parts[i];
      part.is_kept = bytes + part.markup.size() <= kMostPageBytes;
      if (part.is_kept) bytes += part.markup.size();
    }
  }
}

void write_section(const Section& section, Markup* page) {
  page->open("section", {{"id", section.row.id}});
  page->element("h2",
                fmt::format("{}: {}, {}", section.row.id, section.row.device, section.row.shape));
  page->part(section.facts);
  std::string missing;
  for (const Part& part : section.parts) {
    if (part.is_kept) {
      page->element("h3", part.title).part(part.markup);
    } else {
      missing += (missing.empty() ? "" : ", ") + part.title;
    }
  }
  if (!missing.empty()) {
    page->element("p", fmt::format("Left out, as the page would be too large: {}. A report of this "
                                   "journal alone has them.",
                                   missing));
  }
  page->close();
}

void write_left_out(const std::vector<std::string>& lines, Markup* page) {
  if (lines.empty()) return;
  page->element("h2", "Left out").open("ul");
  for (std::size_t i = 0; i < lines.size() && i < kMostLeftOut; ++i) page->element("li", lines[i]);
  if (lines.size() > kMostLeftOut) {
    page->element("li", fmt::format("and {} more", lines.size() - kMostLeftOut));
  }
  page->close();
}

std::string read_text(base::FileSystem& files, const std::string& path) {
  const std::vector<std::byte> bytes = base::read_file(files, path, kMaxJournalBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes out of `entries` those that belong to the story.
void tell_journals(base::FileSystem& files, const Gathered& gathered,
                   std::vector<ListedEntry>* entries, std::vector<Section>* sections,
                   std::vector<std::string>* left_out) {
  for (const FoundJournal& journal : gathered.journals) {
    if (sections->size() == kMostSearches) {
      left_out->push_back(
          fmt::format("'{}': a report has at most {} searches", journal.path, kMostSearches));
      continue;
    }
    try {
      const Story story = story_of(journal.path, read_text(files, journal.path), gathered.entries);
      sections->push_back(section_of(story, fmt::format("search-{}", sections->size() + 1)));
      std::erase_if(*entries, [&](const ListedEntry& listed) { return belongs_to(listed, story); });
    } catch (const Error& error) {
      if (journal.named || error.code() == ErrorCode::kOutOfMemory) throw;
      left_out->emplace_back(error.what());
    }
  }
}

}  // namespace

Page page_of(base::FileSystem& files, Gathered gathered) {
  Page page;
  page.left_out = std::move(gathered.left_out);
  std::vector<Section> sections;
  std::vector<ListedEntry> entries = gathered.entries;
  tell_journals(files, gathered, &entries, &sections, &page.left_out);
  if (entries.size() > kMostEntries) {
    page.left_out.push_back(fmt::format("{} of {} results without a journal",
                                        entries.size() - kMostEntries, entries.size()));
    entries.resize(kMostEntries);
  }
  page.searches = static_cast<int>(sections.size());
  page.entries = static_cast<int>(entries.size());
  std::vector<OverviewRow> rows, entry_rows;
  for (const Section& section : sections) rows.push_back(section.row);
  for (const ListedEntry& listed : entries) {
    entry_rows.push_back(overview_row(listed, fmt::format("result-{}", entry_rows.size() + 1)));
  }
  rows.insert(rows.end(), entry_rows.begin(), entry_rows.end());

  Markup markup;
  markup.verbatim(kBegin).element("h1", "Tuning report").element("p", kIntroduction);
  markup.element("p", fmt::format("Searches: {}. Results without a journal: {}.", page.searches,
                                  page.entries));
  if (rows.empty()) {
    markup.element("p", "Nothing was found.");
  } else {
    markup.part(overview_table(rows));
  }
  const std::string stored = entries.empty() ? "" : entries_table(entries, entry_rows);
  std::size_t bytes = markup.bytes() + stored.size();
  for (const Section& section : sections) bytes += section.facts.size() + section.row.shape.size();
  keep_parts(bytes, &sections);
  for (const Section& section : sections) write_section(section, &markup);
  if (!stored.empty()) markup.element("h2", "Results without a journal").part(stored);
  write_left_out(page.left_out, &markup);
  markup.verbatim(kEnd);
  page.html = markup.take();
  return page;
}

}  // namespace annulus::autotune::report
