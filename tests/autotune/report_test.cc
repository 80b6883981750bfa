// The page that shows searches and results: it holds their numbers, whole and escaped.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "annulus/types.h"
#include "autotune/fake_bench.h"
#include "autotune/replay.h"
#include "autotune/report/chart.h"
#include "autotune/report/markup.h"
#include "autotune/report/page.h"
#include "autotune/report/page_parts.h"
#include "autotune/report/plots.h"
#include "base/hash.h"
#include "support/faulty_files.h"
#include "tuned/journal.h"
#include "tuned/sample_entry.h"

namespace annulus::autotune {
namespace {

using test::FakeBench;
using test::sample_entry;
using test::ScratchFolder;
using test::smooth;

// What a journal is made of.
struct ReportInput {
  double noise = 0.002;  // 0: the times are predicted
  std::string device = test::sample_device().identity;
  std::string shape = to_string(sample_entry(1).shape);
  std::string reason = "spills 16 bytes";
  base::Json more = base::Json::object();  // members of the subject
};

struct Written {
  std::vector<std::string> lines;
  SearchResult result;
  std::string text() const { return fmt::format("{}", fmt::join(lines, "")); }
};

Written write_journal(const ReportInput& told) {
  const std::vector<tuned::Trial> trials = test::trials(smooth);
  const std::size_t at = test::default_of(trials);
  base::Json about = {
      {"device", told.device}, {"shape", told.shape}, {"driver", 13010}, {"nvrtc", 12080}};
  about.update(told.more);
  Written written;
  written.lines = {tuned::first_line(tuned::subject_of(about, trials, at, told.noise == 0, {}))};
  FakeBench bench(smooth, told.noise);
  for (const tuned::Trial& trial : trials) {
    if (attention::cta_shape(trial.config).stages == 4) {
      bench.dropped[to_string(trial.config)] = told.reason;
    }
  }
  std::string why;
  const tuned::Journal empty = *tuned::decode_journal(written.lines.front(), &why);
  JournalWorkbench journaled(&bench, empty, [&](const tuned::Finding& found) {
    written.lines.push_back(tuned::line_of(found));
  });
  written.result = search(trials, at, journaled, {});
  written.lines.push_back(tuned::last_line());
  return written;
}

report::Gathered gathered_of(base::FileSystem& files, const std::vector<std::string>& paths,
                             const report::GatherLimits& limits = {}) {
  report::Gathered gathered;
  gathered.limits = limits;
  for (const std::string& path : paths) report::gather(files, path, &gathered);
  return gathered;
}

report::Page page_of(const std::vector<std::string>& paths, const report::PageLimits& limits = {}) {
  base::FileSystem files;
  return report::page_of(files, gathered_of(files, paths), limits);
}

report::Story told_of(const std::string& text) {
  return report::story_of("a", report::journal_of("a", text), text);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// A reader of XML that knows as much as a page may use: elements, attributes in double quotes, and
// the references that an escaped text has.
class Reader {
 public:
  // What is wrong with the page, or nothing.
  std::string why_malformed(const std::string& page) {
    text_ = page;
    try {
      read();
      return "";
    } catch (const std::string& why) {
      return fmt::format("{} before '{:.60}'", why, text_);
    }
  }

  std::set<std::string> elements, attributes, ids, links;

 private:
  bool take(std::string_view part) {
    if (!text_.starts_with(part)) return false;
    text_.remove_prefix(part.size());
    return true;
  }
  std::string take_name() {
    const std::size_t end =
        std::min(text_.find_first_not_of("abcdefghijklmnopqrstuvwxyzBLS-0123456789"), text_.size());
    if (end == 0) throw std::string("no name");
    const std::string name(text_.substr(0, end));
    text_.remove_prefix(end);
    return name;
  }
  // Up to one of the ends, with every reference known and no bare '<' or '>'.
  std::string take_text(std::string_view ends) {
    const std::size_t end = std::min(text_.find_first_of(ends), text_.size());
    const std::string text(text_.substr(0, end));
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::string_view rest = std::string_view(text).substr(i);
      const auto begins = [&](const char* reference) { return rest.starts_with(reference); };
      static constexpr std::array kKnown = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      if (rest[0] == '&' && std::ranges::none_of(kKnown, begins)) {
        throw "unknown reference " + std::string(rest.substr(0, 10));
      }
      if (rest[0] == '>') throw std::string("bare '>'");
      if (static_cast<unsigned char>(rest[0]) < 0x20 && rest[0] != '\n') {
        throw std::string("a control");
      }
    }
    text_.remove_prefix(end);
    return text;
  }
  void take_attribute() {
    const std::string name = take_name();
    if (!take("=\"")) throw "no value of " + name;
    const std::string value = take_text("\"<");
    if (!take("\"")) throw "value of " + name + " without an end";
    attributes.insert(name);
    if (name == "id" && !ids.insert(value).second) throw "two elements are " + value;
    if (name == "href") links.insert(value);
  }
  void read() {
    if (!take("<!DOCTYPE html>\n")) throw std::string("no type");
    std::vector<std::string> open;
    while (!text_.empty()) {
      if (take("</")) {
        const std::string name = take_name();
        if (open.empty() || open.back() != name || !take(">")) throw "wrong end of " + name;
        open.pop_back();
      } else if (take("<")) {
        open.push_back(take_name());
        elements.insert(open.back());
        while (take(" ") && !text_.starts_with('/')) take_attribute();
        if (take("/>")) {
          open.pop_back();
        } else if (!take(">")) {
          throw "wrong tag " + open.back();
        }
      } else {
        take_text("<");
      }
    }
    if (!open.empty()) throw "no end of " + open.back();
  }

  std::string_view text_;
};

// A page is well-formed, links lead somewhere, and nothing runs or is loaded.
void check_page(const std::string& html) {
  Reader reader;
  const std::string why = reader.why_malformed(html);
  CHECK_MESSAGE(why.empty(), why);
  const std::set<std::string> known = {
      "html", "head", "meta",  "title", "style", "body",   "h1",         "h2",     "h3", "p",
      "a",    "div",  "table", "thead", "tbody", "tr",     "th",         "td",     "ul", "li",
      "svg",  "path", "text",  "g",     "span",  "figure", "figcaption", "section"};
  for (const std::string& name : reader.elements) CHECK_MESSAGE(known.contains(name), name);
  const std::set<std::string> plain = {"xmlns",        "lang",       "charset", "name",
                                       "content",      "http-equiv", "class",   "id",
                                       "href",         "d",          "x",       "y",
                                       "width",        "height",     "role",    "aria-label",
                                       "stroke-width", "transform",  "viewBox"};
  for (const std::string& name : reader.attributes) CHECK_MESSAGE(plain.contains(name), name);
  for (const std::string& link : reader.links) {
    CHECK(link.starts_with('#'));
    CHECK_MESSAGE(reader.ids.contains(link.substr(1)), link);
  }
  CHECK(count(html, "://") == 1);  // the name of XHTML, from which nothing is loaded
  CHECK(html.find("url(") == html.npos);
  CHECK(html.find("nan") == html.npos);
}

TEST_CASE("the reader of this test finds what is malformed") {
  const std::string begin = "<!DOCTYPE html>\n";
  CHECK(Reader().why_malformed(begin + "<p a=\"b &amp; c\">d &lt; <path d=\"M0\" /></p>").empty());
  for (const char* wrong :
       {"<p>", "</p>", "<p></a>", "<p a=b></p>", "<p>a & b</p>", "<p>a > b</p>", "<p a=\"<\"></p>",
        "<p a=\"b></p>", "<p>\x01</p>", "<p id=\"a\"><a id=\"a\"></a></p>"}) {
    CHECK_FALSE(Reader().why_malformed(begin + wrong).empty());
  }
}

TEST_CASE("text of files is escaped") {
  CHECK(report::escaped("a<b>&\"c'") == "a&lt;b&gt;&amp;&quot;c&#39;");
  CHECK(report::escaped("two\nlines\tand\r") == "two lines and ");
  CHECK(report::escaped("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  const std::string unknown = "\xef\xbf\xbd";
  // A control, a byte that begins nothing, a long form of '<', half of a character, a surrogate, a
  // turn of the direction, and what is no character.
  CHECK(report::escaped(std::string("\0", 1)) == unknown);
  CHECK(report::escaped("\x80") == unknown);
  CHECK(report::escaped("\xc0\xbc") == unknown + unknown);
  CHECK(report::escaped("\xe2\x82") == unknown + unknown);
  CHECK(report::escaped("\xed\xa0\x80") == unknown + unknown + unknown);
  for (const char* turn : {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\xae", "\xe2\x81\xa9"}) {
    CHECK(report::escaped(turn) == unknown);
  }
  CHECK(report::escaped("\xef\xbf\xbf") == unknown);
  CHECK(report::escaped("\xf5\x80\x80\x80").starts_with(unknown));
  CHECK(report::escaped("abcd", 3) == "abc\xe2\x80\xa6");
  CHECK(report::escaped("\xc3\xa9\xc3\xa9", 2) == "\xc3\xa9\xc3\xa9");
}

TEST_CASE("axes hold any values and are written at some of them") {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0.8, 1.2}, {1, 1}, {1, 1 + 1e-15}, {0, 0}, {1e-90, 1e90}, {3, 5e6}, {0.97, 1.002}}) {
    CAPTURE(low);
    CAPTURE(high);
    std::vector<report::Axis> axes = {report::linear_axis("", low, high),
                                      report::ratio_axis("", low, high)};
    if (low > 0) axes.push_back(report::log_axis("", low, high));
    for (const report::Axis& axis : axes) {
      CHECK(axis.share(low) > 0);
      CHECK(axis.share(high) < 1);
      CHECK(axis.share(low) <= axis.share(high));
      CHECK(axis.share(2 * high + 1e100) == 1);
      CHECK(axis.values.size() >= 2);
      CHECK(axis.values.size() <= 12);
    }
  }
  const report::Axis counts = report::count_axis("", 3);
  REQUIRE(counts.values.size() == 3);
  CHECK(counts.values[2].second == "3");
}

TEST_CASE("the rank correlation of what rises and falls together") {
  using Pairs = std::vector<std::pair<double, double>>;
  CHECK(*report::rank_correlation(Pairs{{1, 2}, {2, 30}, {5, 31}}) == doctest::Approx(1));
  CHECK(*report::rank_correlation(Pairs{{1, 9}, {2, 3}, {5, 1}}) == doctest::Approx(-1));
  CHECK(*report::rank_correlation(Pairs{{1, 1}, {2, 3}, {3, 2}, {4, 4}}) == doctest::Approx(0.8));
  // Ties share a rank: 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
  CHECK(*report::rank_correlation(Pairs{{1, 1}, {2, 2}, {2, 3}, {3, 4}}) ==
        doctest::Approx(0.948683));
  CHECK_FALSE(report::rank_correlation(Pairs{{1, 1}, {2, 2}}));
  CHECK_FALSE(report::rank_correlation(Pairs{{1, 1}, {1, 2}, {1, 3}}));
}

TEST_CASE("the page of a measured search has its numbers") {
  const ScratchFolder folder;
  const Written written = write_journal({});
  const SearchResult& result = written.result;
  REQUIRE(result.winner != result.default_at);
  test::write(folder / "a.journal", written.text());
  const report::Page page = page_of({folder / "a.journal"});
  check_page(page.html);
  CHECK(page.searches == 1);
  CHECK(page.entries == 0);
  CHECK(page.left_out.empty());
  const tuned::Trial& winner = result.trials[result.winner];
  const auto has = [&](const std::string& text) {
    CAPTURE(text);
    CHECK(page.html.find(text) != page.html.npos);
  };
  has("<td>" + to_string(winner.config) + "</td>");
  has(fmt::format("{:.3f} ({:.3f} to {:.3f})", winner.ratio.middle, winner.ratio.low,
                  winner.ratio.high));
  has(fmt::format("{:.2f} us, the default&#39;s {:.2f} us", result.winner_time,
                  result.default_time));
  has(fmt::format("{} tried, {} dropped, of 64 candidates", result.tried, result.dropped));
  has("<td>13.1</td>");  // the driver
  has("<td>12.8</td>");
  has("<td>ended by itself</td>");
  has("when</th><td>not stated");
  CHECK(result.dropped > 0);
  CHECK(count(page.html, "<td>spills 16 bytes</td>") == static_cast<std::size_t>(result.dropped));
  CHECK(count(page.html, "<td>tried</td>") == static_cast<std::size_t>(result.tried));
  CHECK(count(page.html, "<td>not tried</td>") ==
        64 - static_cast<std::size_t>(result.tried + result.dropped));
  CHECK(page.html.find("predicted, none is measured") == page.html.npos);
  for (const report::Plot& plot : report::plots()) has(fmt::format("<h3>{}</h3>", plot.title));
  for (const char* parameter : {"tile rows", "tile columns", "warps", "stages"}) {
    has(fmt::format("aria-label=\"{}\"", parameter));
  }
  has("The same in all of them: resident CTAs 1, query in registers 0.");
  // The same files make the same page.
  CHECK(page_of({folder / "a.journal", folder / "a.journal"}).html == page.html);
}

TEST_CASE("a story has the steps of its search and its finalists") {
  const Written written = write_journal({});
  const report::Story story = told_of(written.text());
  CHECK(story.steps.size() ==
        static_cast<std::size_t>(written.result.tried + written.result.dropped));
  CHECK(story.steps.front().trial == written.result.default_at);
  double best = 1;
  for (const report::Step& step : story.steps) {
    if (!step.dropped) best = std::min(best, step.ratio);
    CHECK(step.best == best);
  }
  CHECK(best < 0.95);
  const std::vector<std::size_t> finalists = story.finalists();
  CHECK(finalists.size() >= 1);
  CHECK(finalists.size() <= 4);
  CHECK(std::ranges::count(finalists, written.result.winner) == 1);
  for (const std::size_t index : finalists) CHECK(written.result.trials[index].other_ratio);
  const auto stated = [&](const std::string& part) {
    return std::ranges::count_if(
        story.facts, [&](const auto& fact) { return fact.first.find(part) != std::string::npos; });
  };
  CHECK(stated("L2 in its other state") == 1);
  CHECK(stated("rounds repeated") == (written.result.repeated > 0 ? 1 : 0));
  CHECK(stated("tried first") == 1);
}

TEST_CASE("what is predicted is called so") {
  const ScratchFolder folder;
  const Written written = write_journal({.noise = 0});
  test::write(folder / "a.journal", written.text());
  const std::string html = page_of({folder / "a.journal"}).html;
  check_page(html);
  CHECK(html.find("predicted, none is measured") != html.npos);
  CHECK(html.find(fmt::format("{:.0f} predicted cycles, the default&#39;s {:.0f} predicted cycles",
                              written.result.winner_time, written.result.default_time)) !=
        html.npos);
  CHECK(html.find("predicted cycles over the default&#39;s") != html.npos);
  CHECK(html.find(">time over the default") == html.npos);
  CHECK(html.find("time, us") == html.npos);
  CHECK(html.find(" us<") == html.npos);
  const report::Story story = told_of(written.text());
  CHECK(story.finalists().size() == 5);
}

TEST_CASE("a search that was cut short is told as far as it came") {
  const ScratchFolder folder;
  const Written written = write_journal({});
  std::string half;
  for (std::size_t i = 0; i < written.lines.size() / 2; ++i) half += written.lines[i];
  test::write(folder / "half.journal", half + "torn");
  test::write(folder / "none.journal", written.lines.front());
  const report::Page page = page_of({folder.path()});
  check_page(page.html);
  CHECK(page.searches == 2);
  CHECK(page.html.find("cut short by a limit, by its user or with its process; what stands behind "
                       "the last whole line of the journal is damaged and not used") !=
        page.html.npos);
  CHECK(page.html.find("the journal ends before the default configuration was measured") !=
        page.html.npos);
  const report::Story story = told_of(half);
  CHECK(story.steps.size() > 1);
  CHECK(story.steps.size() < told_of(written.text()).steps.size());
  CHECK_FALSE(story.result->complete);
}

TEST_CASE("results without a journal are rows, and one with a journal dates it") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "device");
  const tuned::Entry with = sample_entry(1), without = sample_entry(2);
  test::write(folder / ("device/" + tuned::entry_name(with) + ".tuned"), test::text_of(with));
  test::write(folder / ("device/" + tuned::entry_name(without) + ".tuned"), test::text_of(without));
  test::write(folder / "device/x.journal", write_journal({}).text());
  const tuned::Entry packed = sample_entry(3);
  test::write(folder / "b.pack",
              tuned::encode_pack({{test::sample_device("packed GPU").identity, packed}}));
  const report::Page page = page_of({folder.path()});
  check_page(page.html);
  CHECK(page.searches == 1);
  CHECK(page.entries == 2);
  const auto has = [&](const std::string& text) {
    CAPTURE(text);
    CHECK(page.html.find(text) != page.html.npos);
  };
  has("2023-11-14 22:13 UTC, by the stored result");
  has("<td>0.900 (0.890 to 0.910)</td>");
  has("<td>90.00 us</td><td>100.00 us</td>");
  has("<td>packed GPU, sm_80,");
  has("<a href=\"#result-2\">result-2</a>");
  has("ended by itself; no journal");
  // Each of them named alone.
  CHECK(page_of({folder / "b.pack"}).entries == 1);
  CHECK(page_of({folder / "device"}).searches == 1);
  CHECK(page_of({folder / ("device/" + tuned::entry_name(with) + ".tuned")}).entries == 1);
}

TEST_CASE("nothing that a file says becomes markup") {
  const ScratchFolder folder;
  const std::string hostile = "\"><script>alert(1)</script><img src=x onerror='a()'>&#60;\x01\xff";
  const Written written = write_journal({.device = hostile,
                                         .shape = hostile,
                                         .reason = hostile,
                                         .more = {{"pattern", hostile},
                                                  {"sizes", {hostile, hostile}},
                                                  {"families", {{"<b>" + hostile, hostile}}},
                                                  {"library", hostile},
                                                  {"seed", {{"<i>", {hostile}}}},
                                                  {"cold_cache", hostile}}});
  test::write(folder / "'\"><script>.journal", written.text());
  tuned::Entry entry = sample_entry(1);
  entry.origin.pattern = "dense | <script>\"'";
  test::write(
      folder / "<b>.pack",
      tuned::encode_pack({{test::sample_device("<script>\"onload='a()'").identity, entry}}));
  test::write(folder / "<script>.tuned", "<script>");
  const report::Page page = page_of({folder.path()});
  CHECK(page.searches == 1);
  CHECK(page.entries == 1);
  CHECK(page.left_out.size() == 1);
  check_page(page.html);
  CHECK(page.html.find("<script") == page.html.npos);
  CHECK(page.html.find("<img") == page.html.npos);
  CHECK(count(page.html, "&lt;script&gt;alert(1)") > 10);
}

TEST_CASE("times that are out of all proportion make a page all the same") {
  const ScratchFolder folder;
  const std::vector<tuned::Trial> trials = test::trials(smooth);
  const std::size_t at = test::default_of(trials);
  for (const bool predicted : {false, true}) {
    tuned::SearchOptions exhaustive;
    exhaustive.exhaustive = true;
    std::string text = tuned::first_line(
        tuned::subject_of({{"device", "a"}, {"shape", "b"}}, trials, at, predicted, exhaustive));
    const std::size_t rounds = predicted ? 1 : 7;
    const std::array<double, 4> extremes = {1e308, 5e-324, 1, 1e-300};
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const std::string name = to_string(trials[i].config), standard = to_string(test::kDefault);
      const std::vector<double> times(rounds, extremes[i % 4]);
      if (predicted || i == at) text += tuned::line_of({{name}, {}, {times}});
      if (!predicted) {
        text += tuned::line_of({{standard, name}, {}, {std::vector<double>(rounds, 1e-10), times}});
      }
    }
    test::write(folder / "a.journal", text);
    const report::Page page = page_of({folder / "a.journal"});
    CHECK(page.searches == 1);
    check_page(page.html);
  }
}

TEST_CASE("many searches leave plots and tables out, and the page says so") {
  const ScratchFolder folder;
  const std::string text = write_journal({}).text();
  for (int i = 0; i < 300; ++i) test::write(folder / fmt::format("{:03}.journal", i), text);
  const report::Page page = page_of({folder.path()});
  check_page(page.html);
  CHECK(page.searches == 300);
  CHECK(page.html.size() > report::PageLimits().bytes / 2);
  CHECK(page.html.size() < report::PageLimits().bytes);
  CHECK(count(page.html, "Left out, as the page would be too large:") > 100);
  CHECK(count(page.html, "<h3>Winner and default</h3>") == 300);
  for (const int i : {1, 300}) {
    CHECK(page.html.find(fmt::format("<a href=\"#search-{}\">", i)) != page.html.npos);
  }
}

TEST_CASE("a page keeps the parts that matter most, and neither makes nor holds others") {
  const auto made = [](std::size_t searches, std::size_t bytes, std::size_t most) {
    auto parts = std::make_unique<report::PageParts>(most);
    int written = 0;
    for (std::size_t search = 0; search < searches; ++search) {
      for (std::size_t rank = 0; rank < 3; ++rank) {
        parts->add(search, rank, [&] {
          ++written;
          return std::string(bytes, static_cast<char>('a' + rank));
        });
      }
    }
    return std::pair(std::move(parts), written);
  };
  const auto kept = [](const report::PageParts& parts) {
    std::vector<int> searches(3);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      for (std::size_t search = 0; search < 100; ++search) {
        const std::string* part = parts.find(search, rank);
        if (part == nullptr) continue;
        CHECK(part->front() == static_cast<char>('a' + rank));
        CHECK(search == static_cast<std::size_t>(searches[rank]));  // the first ones
        ++searches[rank];
      }
    }
    return searches;
  };
  using Kept = std::vector<int>;
  const auto [whole, all_written] = made(4, 10, 120);
  CHECK(kept(*whole) == Kept{4, 4, 4});
  CHECK(all_written == 12);
  whole->shrink(70);
  CHECK(kept(*whole) == Kept{4, 3, 0});
  whole->shrink(0);
  CHECK(kept(*whole) == Kept{0, 0, 0});
  // Rank 0 of 100 searches takes the place of what the first ones had beside it.
  const auto [most, written] = made(100, 10, 1005);
  CHECK(kept(*most) == Kept{100, 0, 0});
  CHECK(written < 220);
  const auto [few, few_written] = made(100, 10, 55);
  CHECK(kept(*few) == Kept{5, 0, 0});
  CHECK(few_written < 15);
  // What lost its place leaves it to none that matters as little.
  report::PageParts uneven(100);
  const auto add = [&](std::size_t search, std::size_t rank, std::size_t bytes) {
    uneven.add(search, rank, [&] { return std::string(bytes, 'a'); });
    return uneven.find(search, rank) != nullptr;
  };
  CHECK(add(0, 0, 40));
  CHECK(add(0, 1, 50));
  CHECK(add(1, 0, 40));
  CHECK(uneven.find(0, 1) == nullptr);
  CHECK_FALSE(add(1, 1, 10));
  CHECK(add(2, 0, 20));
}

TEST_CASE("a page is no larger than it may be, whatever its files say") {
  const ScratchFolder folder;
  const std::string hostile(100'000, '"');
  base::Json more;
  for (const char* member : {"pattern", "library", "seed", "driver", "nvrtc"})
    more[member] = hostile;
  const std::string text =
      write_journal({.device = hostile, .shape = hostile, .more = more}).text();
  for (int i = 0; i < 30; ++i) test::write(folder / fmt::format("{:02}.journal", i), text);
  std::vector<tuned::PackedEntry> packed;
  for (int i = 0; i < 50; ++i) {
    packed.push_back({test::sample_device(std::string(900, '"')).identity, sample_entry(i)});
  }
  test::write(folder / "a.pack", tuned::encode_pack(merged(packed)));
  for (const std::size_t bytes : {50'000, 100'000, 200'000, 400'000}) {
    CAPTURE(bytes);
    const report::Page page = page_of({folder.path()}, {.bytes = bytes});
    check_page(page.html);
    CHECK(page.searches > 0);
    CHECK(page.searches < 30);
    CHECK(page.entries > 0);
    CHECK(page.left_out.size() >= 30 - static_cast<std::size_t>(page.searches));
    // Two lines of the lists may be begun, and the list of what is left out comes on top.
    const std::size_t list = page.html.find("<h2>Left out</h2>");
    REQUIRE(list != page.html.npos);
    CHECK(list < bytes + 20'000);
    CHECK(count(page.html, "Left out, as the page would be too large: ") ==
          static_cast<std::size_t>(page.searches));
    CHECK(page.html.find("a report has no room for a further search") != page.html.npos);
  }
  const report::Page page = page_of({folder.path()}, {.bytes = 100'000});
  CHECK(page.left_out.back() ==
        fmt::format("{} of 50 results without a journal", 50 - page.entries));
  CHECK(page_of({folder.path()}, {.searches = 3, .entries = 4}).searches == 3);
  CHECK(page_of({folder.path()}, {.searches = 3, .entries = 4}).entries == 4);
}

TEST_CASE("searches are decided again as long as that takes no more than it may") {
  const ScratchFolder folder;
  const std::string text = write_journal({}).text();
  for (const char* name : {"a", "b", "c"})
    test::write(folder / (std::string(name) + ".journal"), text);
  const tuned::Journal journal = report::journal_of("a", text);
  const std::int64_t bytes = std::ssize(text), steps = replay_steps(journal);
  int turns = 0;
  replay(journal, [&](const SearchProgress&) { ++turns; });
  CHECK(steps >= turns * std::ssize(journal.trials));
  const auto told = [&](std::int64_t work) { return page_of({folder.path()}, {.work = work}); };
  CHECK(told(3 * (bytes + steps)).searches == 3);
  const report::Page two = told(3 * (bytes + steps) - 1);
  check_page(two.html);
  CHECK(two.searches == 2);
  REQUIRE(two.left_out.size() == 1);
  CHECK(two.left_out[0].starts_with(fmt::format("'{}': ", folder / "c.journal")));
  CHECK(told(bytes + steps - 1).searches == 0);
  // Whoever is not told is not read, once there is no room for anything.
  test::FaultyFiles files;
  report::Gathered gathered = gathered_of(files, {folder.path()});
  const std::int64_t before = files.bytes_read();
  CHECK(report::page_of(files, std::move(gathered), {.work = bytes - 1}).left_out.size() == 3);
  CHECK(files.bytes_read() - before == bytes);
}

TEST_CASE("what a search takes to be decided again grows with what it looks at") {
  const auto steps = [](std::size_t candidates, std::size_t findings, bool exhaustive) {
    tuned::Journal journal;
    journal.trials.resize(candidates);
    journal.findings.resize(findings);
    journal.options.exhaustive = exhaustive;
    return replay_steps(journal);
  };
  CHECK(steps(1000, 1'000'000, true) == 1'000'000);
  CHECK(steps(1000, 10, true) == 11'000);
  CHECK(steps(2000, 10, true) == 22'000);
  CHECK(steps(1000, 1'000'000, false) > steps(1000, 1'000'000, true));
  CHECK(steps(1000, 100, false) < steps(1000, 1000, false));
  // The largest journal that is read.
  CHECK(steps(8192, 1'000'000, false) < report::PageLimits().work);
}

TEST_CASE("a report takes no more results and files than it may, and says where it ends") {
  const ScratchFolder folder;
  std::vector<tuned::PackedEntry> packed;
  for (int i = 0; i < 5; ++i) {
    packed.push_back({test::sample_device().identity, sample_entry(i)});
  }
  const std::string pack = tuned::encode_pack(merged(packed));
  for (const char* name : {"a", "b", "c", "d"})
    test::write(folder / (std::string(name) + ".pack"), pack);
  test::write(folder / "e.tuned", test::text_of(sample_entry(9)));
  test::write(folder / "f.journal", write_journal({}).text());
  test::FaultyFiles files;
  const auto gathered = [&](const report::GatherLimits& limits) {
    return gathered_of(files, {folder.path()}, limits);
  };
  const std::int64_t start = files.bytes_read();
  CHECK(gathered({}).entries.size() == 21);
  const std::int64_t whole = files.bytes_read() - start;
  CHECK(gathered({}).left_out.empty());
  const std::int64_t before = files.bytes_read();
  const report::Gathered eight = gathered({.entries = 8});
  CHECK(files.bytes_read() - before == 2 * std::ssize(pack));
  CHECK(whole > 4 * std::ssize(pack));
  CHECK(eight.entries.size() == 8);
  CHECK(eight.journals.size() == 1);
  REQUIRE(eight.left_out.size() == 2);
  CHECK(
      eight.left_out[0] ==
      fmt::format("'{}': 2 of 5 results, as a report takes at most 8 results", folder / "b.pack"));
  CHECK(eight.left_out[1] ==
        fmt::format("'{}' and what comes later: a report takes at most 8 results",
                    folder / "c.pack"));
  const report::Gathered bytes = gathered({.bytes = 3 * std::ssize(pack) - 1});
  CHECK(bytes.entries.size() == 11);  // the last file is small enough
  CHECK(bytes.journals.size() == 1);
  REQUIRE(bytes.left_out.size() == 1);
  CHECK(bytes.left_out[0].starts_with(fmt::format("'{}' and what", folder / "c.pack")));
  const report::Gathered three = gathered({.files = 3});
  CHECK(three.entries.size() == 15);
  CHECK(three.journals.empty());
  CHECK(three.left_out ==
        std::vector{fmt::format("'{}' and what comes later: a report takes at most 3 files",
                                folder / "d.pack")});
}

TEST_CASE("of several results of one search the last dates it, and none is told without it") {
  const ScratchFolder folder;
  tuned::Entry entry = sample_entry(1);
  for (const char* name : {"a", "b"}) {
    test::write(folder / (std::string(name) + ".pack"),
                tuned::encode_pack({{test::sample_device().identity, entry}}));
    entry.origin.when += 24 * 3600;
  }
  test::write(folder / "x.journal", write_journal({}).text());
  test::write(folder / "y.journal", write_journal({}).text());
  const report::Page page = page_of({folder.path()});
  CHECK(page.searches == 2);
  CHECK(page.entries == 0);
  CHECK(count(page.html, "2023-11-15 22:13 UTC, by the stored result") == 2);
}

TEST_CASE("an empty folder is a page that says so, and what cannot be read is an error") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "empty");
  const report::Page page = page_of({folder / "empty"});
  check_page(page.html);
  CHECK(page.searches + page.entries == 0);
  CHECK(page.html.find("Nothing was found.") != page.html.npos);
  const auto refused = [&](const std::string& path, ErrorCode code) {
    try {
      page_of({path});
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK_MESSAGE(std::string(error.what()).find(path) != std::string::npos, error.what());
    }
  };
  refused(folder / "missing", ErrorCode::kFile);
  test::write(folder / "text", "not a journal");
  refused(folder / "text", ErrorCode::kInvalidFile);
  test::write(folder / "a.journal", "annulus-journal 1 torn");
  refused(folder / "a.journal", ErrorCode::kInvalidFile);
  test::write(folder / "a.tuned", "annulus-tuned 4 torn");
  refused(folder / "a.tuned", ErrorCode::kInvalidFile);
  test::write(folder / "a.pack", "annulus-tuned-pack 4 torn");
  refused(folder / "a.pack", ErrorCode::kInvalidFile);
  // In a folder they are left out.
  const report::Page rest = page_of({folder.path()});
  CHECK(rest.left_out.size() == 3);
  check_page(rest.html);
  base::FileSystem files;
  report::Gathered gathered;
  report::gather_if_there(files, folder / "missing", &gathered);
  CHECK(gathered.left_out.empty());
}

}  // namespace
}  // namespace annulus::autotune
