#include "program/tune/report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "annulus/types.h"
#include "program/tune/report/markup.h"
#include "program/tune/report/page_parts.h"
#include "program/tune/report/plots.h"
#include "program/tune/report/tables.h"

namespace annulus::program::report {
namespace {

constexpr std::size_t kMaxLeftOut = 200;  // the most lines about left-out items

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
    "Times of simulated devices are predicted and marked as such; they are not times of a GPU.";

// A kind of part in the description of a search. A page may leave parts out. The most important
// kinds come first.
struct PartKind {
  const char* title;
  std::string (*write)(const Search& search);
};

std::vector<PartKind> part_kinds() {
  std::vector<PartKind> kinds = {{"Facts", facts_table}};
  for (const Plot& plot : plots()) kinds.push_back({plot.title, plot.draw});
  kinds.push_back({"Dropped candidates", dropped_table});
  kinds.push_back({"All candidates", candidates_table});
  return kinds;
}

// Makes a page. The page has room for the overview with the headings to which it links, for the
// table of results, and then for parts.
class Writer {
 public:
  explicit Writer(std::size_t max_bytes) : max_bytes_(max_bytes), parts_(max_bytes) {}

  // Adds a search, if there is room for it.
  void add(const Search& search) {
    if (listed_bytes() >= max_bytes_ / 4) {
      page_.left_out.push_back(
          fmt::format("'{}': a report has no room for a further search", search.journal));
      return;
    }
    const std::size_t number = headings_.size();
    const OverviewRow row = overview_row(search, fmt::format("search-{}", number + 1));
    Heading heading{row.id, "", 1};
    heading.markup =
        Markup().element("h2", fmt::format("{}: {}, {}", row.id, row.device, row.shape)).take();
    // A search without a decision has only facts.
    if (search.decision) heading.parts = kinds_.size();
    for (std::size_t rank = 0; rank < heading.parts; ++rank) {
      parts_.add(number, rank, [&] { return part_of(kinds_[rank], rank > 0, search); });
    }
    heading_bytes_ += heading.markup.size() + kMaxOfSection;
    overview_ += overview_line(row);
    headings_.push_back(std::move(heading));
    ++page_.searches;
  }

  // Adds a result. Returns false if there is no room, because at least a quarter of the page is
  // kept for parts.
  bool add(const Stored& stored) {
    if (listed_bytes() >= max_bytes_ / 4 * 3) return false;
    const OverviewRow row = overview_row(stored, fmt::format("result-{}", ++page_.entries));
    overview_ += overview_line(row);
    entries_ += entry_line(stored, row);
    return true;
  }

  void leave_out(std::string line) { page_.left_out.push_back(std::move(line)); }

  // `lines` and `further` more lines describe what the document leaves out.
  Page take(const std::vector<std::string>& lines, std::int64_t further) {
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
    parts_.shrink(max_bytes_ - std::min(max_bytes_, others));
    for (std::size_t i = 0; i < headings_.size(); ++i) write_section(i, &markup);
    markup.part(results.take());
    write_left_out(lines, further, &markup);
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

  static std::string part_of(const PartKind& kind, bool has_title, const Search& search) {
    Markup markup;
    if (has_title) markup.element("h3", kind.title);
    return markup.part(kind.write(search)).take();
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

  void write_left_out(std::vector<std::string> lines, std::int64_t further, Markup* page) const {
    lines.insert(lines.end(), page_.left_out.begin(), page_.left_out.end());
    if (lines.empty()) return;
    if (lines.size() > kMaxLeftOut) {
      further += std::ssize(lines) - static_cast<std::ptrdiff_t>(kMaxLeftOut);
      lines.resize(kMaxLeftOut);
    }
    page->element("h2", "Left out").open("ul");
    for (const std::string& line : lines) page->element("li", line);
    if (further > 0) page->element("li", fmt::format("and {} more", further));
    page->close();
  }

  // The most bytes of a section's tags, and of its sentence about parts that were left out.
  static constexpr std::size_t kMaxOfSection = 400;

  const std::size_t max_bytes_;
  const std::vector<PartKind> kinds_ = part_kinds();
  Page page_;
  std::vector<Heading> headings_;
  std::string overview_, entries_;  // rows of the two tables
  std::size_t heading_bytes_ = 0;
  PageParts parts_;
};

}  // namespace

Page page_of(const Document& document, std::size_t max_bytes) {
  Writer writer(max_bytes);
  for (std::size_t i = 0; i < document.searches(); ++i) writer.add(document.search(i));
  const std::size_t results = document.results();
  for (std::size_t i = 0; i < results; ++i) {
    if (writer.add(document.result(i))) continue;
    writer.leave_out(fmt::format("{} of {} results without a journal", results - i, results));
    break;
  }
  return writer.take(document.left_out(), document.further_left_out());
}

}  // namespace annulus::program::report
