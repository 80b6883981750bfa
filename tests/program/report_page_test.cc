// The page of a report must contain the numbers of its document, complete and escaped.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "annulus/types.h"
#include "base/random.h"
#include "program/tune/report/chart.h"
#include "program/tune/report/markup.h"
#include "program/tune/report/page.h"
#include "program/tune/report/page_parts.h"
#include "program/tune/report/plots.h"
#include "program/tune/report/statistics.h"
#include "support/options.h"

namespace {

using namespace annulus;
using base::Json;
namespace report = program::report;

// A search among 32 configurations. A fourth of them were dropped, and an eighth were not tried.
// The first is the default, and the eleventh is the fastest and the winner.
struct Sample {
  bool predicted = false;
  std::string device = "a GPU, sm_80";
  std::string shape = "D64 bf16, causal";
  std::string reason = "spills 16 bytes";
  std::string name = "mma";  // the name of the family
};

Json search_of(const Sample& sample) {
  Json trials = Json::array(), order = Json::array();
  double best = 1;
  for (int i = 0; i < 32; ++i) {
    const int columns = 16 << i % 4, stages = 1 + i / 4 % 4;
    Json trial = {{"configuration", fmt::format("{} m64 n{} w{} s{}", sample.name, columns,
                                                4 + 4 * (i / 16), stages)},
                  {"family", sample.name},
                  {"parameters", {64, columns, 4 + 4 * (i / 16), stages}},
                  {"predicted_cycles", 1000.0 + 10 * i}};
    Json step = {{"trial", i}};
    if (stages == 4) {
      trial["outcome"] = "dropped";
      trial["reason"] = sample.reason;
    } else if (i == 17 || i == 18 || i == 26 || i == 27) {
      trial["outcome"] = "not tried";
      trials.push_back(std::move(trial));
      continue;
    } else {
      const double ratio = i == 0 ? 1 : i == 10 ? 0.75 : 1 + 0.01 * i;
      best = std::min(best, ratio);
      trial["outcome"] = "tried";
      trial["time"] = 20 * ratio;
      trial["ratio"] = {ratio - 0.01, ratio, i == 1 ? Json(nullptr) : Json(ratio + 0.01)};
      trial["rounds"] = 25;
      step["ratio"] = ratio;
    }
    step["best"] = best;
    order.push_back(std::move(step));
    trials.push_back(std::move(trial));
  }
  return {{"journal", "/a.journal"},
          {"device", sample.device},
          {"shape", sample.shape},
          {"facts", {{"driver", "13.1"}}},
          {"predicted", sample.predicted},
          {"ended", true},
          {"damaged", false},
          {"candidates", 32},
          {"decision",
           {{"complete", true},
            {"tried", 20},
            {"dropped", 8},
            {"winner", 10},
            {"default", 0},
            {"runner_up", 1},
            {"winner_time", 15.0},
            {"default_time", 20.0},
            {"finalists", {10, 1}},
            {"families", {{sample.name, {"tile rows", "tile columns", "warps", "stages"}}}},
            {"trials", std::move(trials)},
            {"order", std::move(order)}}}};
}

Json stored_of(const std::string& device) {
  return {{"path", "/b.pack"},
          {"device", device},
          {"shape", "D64 bf16, causal"},
          {"configuration", "mma m64 n32 w4 s3"},
          {"default_configuration", "mma m64 n16 w4 s1"},
          {"predicted", false},
          {"complete", true},
          {"time", 90.0},
          {"default_time", 100.0},
          {"ratio", {0.89, 0.9, 0.91}},
          {"driver", 13010},
          {"nvrtc", 12080},
          {"clock_mhz", 1410},
          {"memory_clock_mhz", 1215},
          {"when", 1'700'000'000},
          {"pattern", "causal"}};
}

Json document_of(Json searches, Json results = Json::array()) {
  return {{"schema", 1},
          {"searches", std::move(searches)},
          {"results", std::move(results)},
          {"left_out", Json::array()},
          {"further_left_out", 0}};
}

report::Page page_of(const Json& json, std::size_t bytes = report::kMaxPageBytes) {
  return report::page_of(report::Document(json.dump(), "'a.json'"), bytes);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// A reader of XML that supports only what a page may use: elements, attributes in double quotes,
// and the references of escaped text.
class Reader {
 public:
  // The error in the page, or "".
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
  // Reads text up to one of the ends. It must have only known references, and no bare '<' or '>'.
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

// Checks that a page is well-formed, that its links have targets, and that it runs and loads
// nothing.
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
  // A control character, an invalid first byte, a long form of '<', an incomplete character, a
  // surrogate, a direction mark, and a code point that is not a character.
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
  // Tied values share a rank: 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
  CHECK(*report::rank_correlation(Pairs{{1, 1}, {2, 2}, {2, 3}, {3, 4}}) ==
        doctest::Approx(0.948683));
  CHECK_FALSE(report::rank_correlation(Pairs{{1, 1}, {2, 2}}));
  CHECK_FALSE(report::rank_correlation(Pairs{{1, 1}, {1, 2}, {1, 3}}));
}

TEST_CASE("the page of a measured search has its numbers") {
  const report::Page page = page_of(document_of({search_of({})}));
  check_page(page.html);
  CHECK(page.searches == 1);
  CHECK(page.entries == 0);
  CHECK(page.left_out.empty());
  const auto has = [&](const std::string& text) {
    CAPTURE(text);
    CHECK(page.html.find(text) != page.html.npos);
  };
  has("<td>mma m64 n64 w4 s3</td>");
  has("0.750 (0.740 to 0.760)");
  has("1.010 (not bounded)");
  has("15.00 us, the default&#39;s 20.00 us");
  has("20 tried, 8 dropped, of 32 candidates (87.5 %)");
  has("<th>driver</th><td>13.1</td>");
  has("<td>ended by itself</td>");
  has("when</th><td>not stated");
  CHECK(count(page.html, "<td>spills 16 bytes</td>") == 8);
  CHECK(count(page.html, "<td>tried</td>") == 20);
  CHECK(count(page.html, "<td>not tried</td>") == 4);
  CHECK(page.html.find("predicted, not measured") == page.html.npos);
  for (const report::Plot& plot : report::plots()) has(fmt::format("<h3>{}</h3>", plot.title));
  for (const char* parameter : {"tile columns", "warps", "stages"}) {
    has(fmt::format("aria-label=\"{}\"", parameter));
  }
  has("The same in all of them: tile rows 64.");
}

TEST_CASE("times that are predicted are called so") {
  const std::string html = page_of(document_of({search_of({.predicted = true})})).html;
  check_page(html);
  CHECK(html.find("predicted, not measured") != html.npos);
  CHECK(html.find("15 predicted cycles, the default&#39;s 20 predicted cycles") != html.npos);
  CHECK(html.find("predicted cycles over the default&#39;s") != html.npos);
  CHECK(html.find(">time over the default") == html.npos);
  CHECK(html.find("time, us") == html.npos);
  CHECK(html.find(" us<") == html.npos);
}

TEST_CASE("a search without a decision has facts, and a stored result dates its search") {
  Json cut = search_of({}), dated = search_of({});
  cut.erase("decision");
  cut["why_undecided"] = "the journal ends early";
  cut["ended"] = false;
  cut["damaged"] = true;
  dated["stored"] = stored_of("a GPU, sm_80");
  const report::Page page = page_of(document_of({cut, dated}, {stored_of("packed GPU")}));
  check_page(page.html);
  CHECK(page.searches == 2);
  CHECK(page.entries == 1);
  const auto has = [&](const std::string& text) {
    CAPTURE(text);
    CHECK(page.html.find(text) != page.html.npos);
  };
  has("cut short by a limit, by its user or with its process; the bytes after the last whole "
      "line of the journal are damaged and not used");
  has("<td>the journal ends early</td>");
  has("2023-11-14 22:13 UTC, by the stored result");
  has("1410 MHz, memory 1215 MHz");
  has("<td>0.900 (0.890 to 0.910)</td>");
  has("<td>90.00 us</td><td>100.00 us</td><td>13.1</td><td>12.8</td>");
  has("<td>packed GPU</td>");
  has("<a href=\"#result-1\">result-1</a>");
  has("ended by itself; no journal");
  CHECK(page_of(document_of(Json::array())).html.find("Nothing was found.") != std::string::npos);
}

TEST_CASE("nothing that a document says becomes markup") {
  const std::string hostile = "\"><script>alert(1)</script><img src=x onerror='a()'>&#60;\x01";
  Json search =
      search_of({.device = hostile, .shape = hostile, .reason = hostile, .name = hostile});
  search["journal"] = hostile;
  search["facts"] = {{hostile, hostile}};
  search["decision"]["families"][hostile] = {hostile + "a", hostile + "b", hostile, hostile};
  Json stored = stored_of(hostile), undecided = search;
  for (auto& [name, value] : stored.items()) {
    if (value.is_string()) value = hostile;
  }
  search["stored"] = stored;
  undecided.erase("decision");
  undecided["why_undecided"] = hostile;
  Json json = document_of({search, undecided}, {stored});
  json["left_out"] = {hostile};
  const report::Page page = page_of(json);
  check_page(page.html);
  CHECK(page.html.find("<script") == page.html.npos);
  CHECK(page.html.find("<img") == page.html.npos);
  CHECK(count(page.html, "&lt;script&gt;alert(1)") > 50);
}

TEST_CASE("numbers that are out of all proportion make a page all the same") {
  Json search = search_of({});
  const std::array<Json, 8> extremes = {
      1e308, 5e-324, nullptr, -1e308, 0, -0.0, std::uint64_t{18'000'000'000'000'000'000u}, 1};
  for (std::size_t shift = 0; shift < extremes.size(); ++shift) {
    std::size_t next = shift;
    const auto extreme = [&] { return extremes[next++ % extremes.size()]; };
    Json& decision = search["decision"];
    for (Json& trial : decision["trials"]) {
      trial["predicted_cycles"] = extreme();
      trial["parameters"][1] = static_cast<std::int64_t>(next % 3) * 9'000'000'000'000'000 / 2 - 5;
      if (trial["outcome"] != "tried") continue;
      trial["time"] = extreme();
      trial["ratio"] = {extreme(), extreme(), extreme()};
    }
    for (Json& step : decision["order"]) step["best"] = extreme();
    decision["winner_time"] = extreme();
    Json stored = stored_of("a");
    stored["when"] = -9'007'199'254'740'992;
    stored["ratio"] = {extreme(), extreme(), extreme()};
    const report::Page page = page_of(document_of({search}, {stored}));
    CHECK(page.searches == 1);
    check_page(page.html);
  }
}

TEST_CASE("a document that does not hold is refused with the place of the first wrong member") {
  const auto refused = [](const Json& json, const std::string& why) {
    try {
      page_of(json);
      FAIL_CHECK("no error with: " << why);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidFile);
      CHECK_MESSAGE(error.what() == "'a.json': " + why, error.what());
    }
  };
  const Json whole = document_of({search_of({})}, {stored_of("a")});
  using Path = Json::json_pointer;
  const auto with = [&](const char* path, const Json& value) {
    Json json = whole;
    json[Path(path)] = value;
    return json;
  };
  const std::string decision = "/searches/0/decision";
  refused(Json::array(), "the document: it is not an object");
  refused(with("/schema", 2), "schema: it is 2, and this program reads schema 1 alone");
  refused(with("/searches", 3), "searches: it is not an array");
  refused(with("/searches/0", 3), "searches[0]: it is not an object");
  refused(with("/searches/0/device", 3), "searches[0].device: it is not a string");
  refused(with("/searches/0/ended", 0), "searches[0].ended: it is neither true nor false");
  refused(with("/searches/0/candidates", 0),
          "searches[0].candidates: it is not a whole number from 1 to 9007199254740992");
  refused(with((decision + "/winner").c_str(), 32),
          "searches[0].decision.winner: it is not a whole number from 0 to 31");
  refused(with((decision + "/winner").c_str(), -1),
          "searches[0].decision.winner: it is not a whole number from 0 to 31");
  refused(with((decision + "/default").c_str(), 12),
          "searches[0].decision.default: it is a trial that was not tried");
  refused(with((decision + "/trials").c_str(), Json::array()),
          "searches[0].decision.winner: it is not a whole number from 0 to -1");
  refused(with((decision + "/trials/3/family").c_str(), "x"),
          "searches[0].decision.trials[3].family: it is not one of the families");
  refused(with((decision + "/trials/3/parameters").c_str(), {1, 2}),
          "searches[0].decision.trials[3].parameters: it has 2 numbers, and the family has 4");
  refused(with((decision + "/trials/3/outcome").c_str(), "won"),
          "searches[0].decision.trials[3].outcome: it is neither tried, dropped nor not tried");
  refused(with((decision + "/trials/3/ratio").c_str(), {1, 2}),
          "searches[0].decision.trials[3].ratio: it is not an array of three numbers");
  refused(with((decision + "/trials/3/time").c_str(), "1"),
          "searches[0].decision.trials[3].time: it is neither a number nor null");
  refused(with((decision + "/order/2/trial").c_str(), 32),
          "searches[0].decision.order[2].trial: it is not a whole number from 0 to 31");
  refused(with((decision + "/finalists").c_str(), Json(std::vector<int>(10'001))),
          "searches[0].decision.finalists: it has 10001 elements, at most 10000");
  refused(with((decision + "/families/mma").c_str(), Json(std::vector<std::string>(65))),
          "searches[0].decision.families.mma: it has 65 elements, at most 64");
  refused(with("/results/0/when", 1.5),
          "results[0].when: it is not a whole number from -9007199254740992 to 9007199254740992");
  refused(with("/left_out", {1}), "left_out[0]: it is not a string");
  for (const char* member : {"schema", "searches", "results", "left_out", "further_left_out"}) {
    Json json = whole;
    json.erase(member);
    refused(json, fmt::format("the document: it has no '{}'", member));
  }
  CHECK_THROWS_AS(report::Document("{", "'a.json'"), Error);
  CHECK_THROWS_AS(report::Document(std::string(report::Document::kMaxBytes + 1, ' '), "'a.json'"),
                  Error);
}

TEST_CASE("a document with drawn values in some places makes a page or an error") {
  const Json whole = document_of({search_of({})}, {stored_of("a")});
  std::vector<Json::json_pointer> places;
  const std::function<void(const Json&, const Json::json_pointer&)> walk =
      [&](const Json& json, const Json::json_pointer& at) {
        places.push_back(at);
        if (!json.is_structured()) return;
        for (const auto& [name, value] : json.items()) {
          walk(value, json.is_array() ? at / std::stoul(name) : at / name);
        }
      };
  walk(whole, Json::json_pointer());
  const std::array<Json, 12> values = {
      nullptr, -1, 0, 1, 31, 1e308, 5e-324, "", "x", true, Json::array(), Json::object()};
  base::Random random(test::seed_of(7));
  int pages = 0, errors = 0;
  for (int round = 0; round < 1000; ++round) {
    Json json = whole;
    for (std::uint32_t changes = 1 + random.below(3); changes > 0; --changes) {
      const Json::json_pointer& at =
          places[random.below(static_cast<std::uint32_t>(places.size()))];
      if (json.contains(at)) json[at] = values[random.below(std::uint32_t{values.size()})];
    }
    try {
      check_page(page_of(json).html);
      ++pages;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidFile);
      ++errors;
    }
  }
  CHECK(pages > 100);
  CHECK(errors > 100);
}

TEST_CASE("many searches leave plots and tables out, and the page says so") {
  const report::Page page = page_of(document_of(Json(std::vector<Json>(300, search_of({})))));
  check_page(page.html);
  CHECK(page.searches == 300);
  CHECK(page.html.size() > report::kMaxPageBytes / 2);
  CHECK(page.html.size() < report::kMaxPageBytes);
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
  // The parts of rank 0 of 100 searches replace parts of higher ranks of the first searches.
  const auto [most, written] = made(100, 10, 1005);
  CHECK(kept(*most) == Kept{100, 0, 0});
  CHECK(written < 220);
  const auto [few, few_written] = made(100, 10, 55);
  CHECK(kept(*few) == Kept{5, 0, 0});
  CHECK(few_written < 15);
  // The place of a removed part is not given to parts of the same rank.
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

TEST_CASE("a page is no larger than it may be, whatever its document says") {
  const std::string hostile(40'000, '"');
  Json search = search_of({.device = hostile, .shape = hostile, .reason = hostile});
  for (const char* name : {"pattern", "library", "seed", "NVRTC"}) search["facts"][name] = hostile;
  Json json = document_of(Json(std::vector<Json>(30, search)),
                          Json(std::vector<Json>(50, stored_of(std::string(900, '"')))));
  json["left_out"] = Json(std::vector<std::string>(300, hostile));
  json["further_left_out"] = 5;
  for (const std::size_t bytes : {50'000, 100'000, 200'000, 400'000}) {
    CAPTURE(bytes);
    const report::Page page = page_of(json, bytes);
    check_page(page.html);
    CHECK(page.searches > 0);
    CHECK(page.searches < 30);
    CHECK(page.entries > 0);
    REQUIRE(page.left_out.size() >= 30 - static_cast<std::size_t>(page.searches));
    CHECK(page.left_out.front() == "'/a.journal': a report has no room for a further search");
    // Each of two lists may be exceeded by one line, and the list of what is left out is not
    // counted.
    const std::size_t list = page.html.find("<h2>Left out</h2>");
    REQUIRE(list != page.html.npos);
    CHECK(list < bytes + 20'000);
    CHECK(page.html.size() < list + 200 * 2500);
    CHECK(page.html.find(fmt::format("and {} more", 105 + page.left_out.size())) != page.html.npos);
    CHECK(count(page.html, "Left out, as the page would be too large: ") ==
          static_cast<std::size_t>(page.searches));
  }
  const report::Page page = page_of(json, 100'000);
  CHECK(page.left_out.back() ==
        fmt::format("{} of 50 results without a journal", 50 - page.entries));
}

}  // namespace
