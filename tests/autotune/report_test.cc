// Journals and results of a report, and the document that is made from them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "annulus/types.h"
#include "autotune/fake_bench.h"
#include "autotune/replay.h"
#include "autotune/report/document.h"
#include "autotune/report/story.h"
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

// The input from which a journal is made.
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

report::Document document_of(const std::vector<std::string>& paths,
                             const report::DocumentLimits& limits = {}) {
  base::FileSystem files;
  return report::document_of(files, gathered_of(files, paths), limits);
}

base::Json parsed(const report::Document& document) {
  base::JsonLimits limits;
  limits.bytes = report::DocumentLimits().bytes + (1 << 20);
  return base::parse_json(document.json, "the document", limits);
}

report::Story told_of(const std::string& text) {
  return report::story_of("a", report::journal_of("a", text), text);
}

TEST_CASE("the document of a measured search has its numbers") {
  const ScratchFolder folder;
  const Written written = write_journal({});
  const SearchResult& result = written.result;
  REQUIRE(result.winner != result.default_at);
  test::write(folder / "a.journal", written.text());
  const report::Document document = document_of({folder / "a.journal"});
  CHECK(document.searches == 1);
  CHECK(document.entries == 0);
  CHECK(document.left_out.empty());
  CHECK(std::ranges::none_of(document.json, [](char c) { return c < 0; }));  // ASCII
  const base::Json json = parsed(document);
  CHECK(json["schema"] == 1);
  CHECK(json["results"].empty());
  CHECK(json["left_out"].empty());
  CHECK(json["further_left_out"] == 0);
  REQUIRE(json["searches"].size() == 1);
  const base::Json& search = json["searches"][0];
  CHECK(search["journal"] == folder / "a.journal");
  CHECK(search["device"] == test::sample_device().identity);
  CHECK(search["facts"]["driver"] == "13.1");
  CHECK(search["facts"]["NVRTC"] == "12.8");
  CHECK(search["predicted"] == false);
  CHECK(search["ended"] == true);
  CHECK(search["damaged"] == false);
  CHECK(search["candidates"] == 64);
  CHECK_FALSE(search.contains("stored"));
  const base::Json& decision = search["decision"];
  CHECK(decision["complete"] == true);
  CHECK(decision["tried"] == result.tried);
  CHECK(decision["dropped"] == result.dropped);
  CHECK(decision["winner"] == result.winner);
  CHECK(decision["default"] == result.default_at);
  CHECK(decision["winner_time"] == result.winner_time);
  CHECK(decision["default_time"] == result.default_time);
  CHECK(decision["families"]["mma"] == base::Json({"tile rows", "tile columns", "warps", "stages",
                                                   "resident CTAs", "query in registers"}));
  REQUIRE(decision["trials"].size() == result.trials.size());
  for (std::size_t i = 0; i < result.trials.size(); ++i) {
    const tuned::Trial& trial = result.trials[i];
    const base::Json& is = decision["trials"][i];
    CHECK(is["configuration"] == to_string(trial.config));
    CHECK(is["parameters"][1] == trial.config.tile_columns);
    CHECK(is["parameters"][3] == attention::cta_shape(trial.config).stages);
    CHECK(is["predicted_cycles"] == trial.predicted);
    if (trial.outcome == tuned::Trial::Outcome::kDropped) CHECK(is["reason"] == "spills 16 bytes");
    if (trial.outcome != tuned::Trial::Outcome::kTried) continue;
    CHECK(is["time"] == trial.time);
    CHECK(is["rounds"] == trial.rounds);
    CHECK(is["ratio"][1] == trial.ratio.middle);
    CHECK(is["ratio"][2].is_null() == !std::isfinite(trial.ratio.high));
    CHECK(is.contains("other_ratio") == trial.other_ratio.has_value());
  }
  const report::Story story = told_of(written.text());
  CHECK(decision["finalists"] == base::Json(story.finalists()));
  REQUIRE(decision["order"].size() == story.steps.size());
  for (std::size_t i = 0; i < story.steps.size(); ++i) {
    const base::Json& step = decision["order"][i];
    CHECK(step["trial"] == story.steps[i].trial);
    CHECK(step["best"] == story.steps[i].best);
    CHECK(step.contains("ratio") == !story.steps[i].dropped);
  }
  // A journal that is given twice counts once.
  CHECK(document_of({folder / "a.journal", folder / "a.journal"}).json == document.json);
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

TEST_CASE("a search that was cut short is in the document as far as it came") {
  const ScratchFolder folder;
  const Written written = write_journal({.noise = 0});
  std::string half;
  for (std::size_t i = 0; i < written.lines.size() / 2; ++i) half += written.lines[i];
  test::write(folder / "half.journal", half + "torn");
  test::write(folder / "none.journal", written.lines.front());
  const report::Document document = document_of({folder.path()});
  CHECK(document.searches == 2);
  const base::Json searches = parsed(document)["searches"];
  CHECK(searches[0]["predicted"] == true);
  CHECK(searches[0]["ended"] == false);
  CHECK(searches[0]["damaged"] == true);
  CHECK(searches[0]["decision"]["complete"] == false);
  CHECK_FALSE(searches[1].contains("decision"));
  CHECK(searches[1]["why_undecided"] ==
        "the journal ends before the default configuration was measured");
  const report::Story story = told_of(half);
  CHECK(story.steps.size() > 1);
  CHECK(story.steps.size() < told_of(written.text()).steps.size());
  CHECK(told_of(written.text()).finalists().size() == 5);
}

TEST_CASE("results without a journal are in the document, and a search has its stored result") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "device");
  tuned::Entry with = sample_entry(1);
  const tuned::Entry without = sample_entry(2), packed = sample_entry(3);
  test::write(folder / ("device/" + tuned::entry_name(with) + ".tuned"), test::text_of(with));
  test::write(folder / ("device/" + tuned::entry_name(without) + ".tuned"), test::text_of(without));
  for (const char* name : {"x", "y"}) {
    test::write(folder / ("device/" + std::string(name) + ".journal"), write_journal({}).text());
  }
  test::write(folder / "b.pack",
              tuned::encode_pack({{test::sample_device("packed GPU").identity, packed}}));
  with.origin.when += 24 * 3600;
  test::write(folder / "z.pack", tuned::encode_pack({{test::sample_device().identity, with}}));
  const report::Document document = document_of({folder.path()});
  CHECK(document.searches == 2);
  CHECK(document.entries == 2);
  const base::Json json = parsed(document);
  // If a search has several results, the last one is shown with each of its journals.
  for (const base::Json& search : json["searches"]) {
    CHECK(search["stored"]["when"] == with.origin.when);
    CHECK(search["stored"]["path"] == folder / "z.pack");
  }
  REQUIRE(json["results"].size() == 2);
  const base::Json& result = json["results"][0];
  CHECK(result["device"].get<std::string>().starts_with("packed GPU, sm_80,"));
  CHECK(result["shape"] == to_string(packed.shape));
  CHECK(result["configuration"] == to_string(packed.config));
  CHECK(result["default_configuration"] == to_string(packed.default_config));
  CHECK(result["time"] == 1e-3 * static_cast<double>(packed.time));
  CHECK(result["default_time"] == 100);
  CHECK(result["ratio"][0] == 0.89);
  CHECK(result["ratio"][1] == static_cast<double>(packed.time) / 1e5);
  CHECK(result["ratio"][2] == 0.91);
  CHECK(result["complete"] == true);
  CHECK(result["when"] == packed.origin.when);
  // Each of them is named alone.
  CHECK(document_of({folder / "b.pack"}).entries == 1);
  CHECK(document_of({folder / "device"}).searches == 2);
  CHECK(document_of({folder / ("device/" + tuned::entry_name(without) + ".tuned")}).entries == 1);
}

TEST_CASE("no text of a file breaks the document") {
  const ScratchFolder folder;
  const std::string hostile = "\"},{\"a\":[<script>\\\x01\x7f\xff\xc2\x9b\n";
  const Written written = write_journal({.device = hostile,
                                         .shape = hostile,
                                         .reason = hostile,
                                         .more = {{"pattern", hostile},
                                                  {"sizes", {hostile, hostile}},
                                                  {"families", {{"<b>" + hostile, hostile}}},
                                                  {"seed", {{"<i>", {hostile}}}},
                                                  {"cold_cache", hostile}}});
  test::write(folder / "'\"\xff\n.journal", written.text());
  test::write(folder / "\"\xff.tuned", "<script>");
  const report::Document document = document_of({folder.path()});
  CHECK(document.searches == 1);
  const base::Json json = parsed(document);
  CHECK(json["searches"].size() == 1);
  CHECK(json["left_out"].size() == 1);
  CHECK(json["searches"][0]["device"].get<std::string>().starts_with(
      "\"},{\"a\":[<script>\\\x01\x7f"));
  CHECK(std::ranges::all_of(document.json,
                            [](char c) { return c == '\n' || (c >= ' ' && c < 0x7f); }));
}

TEST_CASE("times that are out of all proportion make a document all the same") {
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
    const base::Json json = parsed(document_of({folder / "a.journal"}));
    REQUIRE(json["searches"].size() == 1);
    if (!predicted) continue;
    const base::Json& all = json["searches"][0]["decision"]["trials"];
    CHECK(all.size() == trials.size());
    CHECK(all[0]["ratio"] == base::Json({nullptr, nullptr, nullptr}));
    CHECK(all[1]["time"] == 5e-324);
  }
}

TEST_CASE("a document has no more bytes, searches and results than it may, and says so") {
  const ScratchFolder folder;
  const std::string text = write_journal({}).text();
  for (int i = 0; i < 30; ++i) test::write(folder / fmt::format("{:02}.journal", i), text);
  std::vector<tuned::PackedEntry> packed;
  for (int i = 0; i < 50; ++i) {
    packed.push_back({test::sample_device(std::string(900, '"')).identity, sample_entry(i)});
  }
  test::write(folder / "a.pack", tuned::encode_pack(merged(packed)));
  const std::size_t one = document_of({folder / "00.journal"}).json.size();
  const std::size_t bytes = 5 * one - one / 2;
  const report::Document document = document_of({folder.path()}, {.bytes = bytes});
  const base::Json json = parsed(document);
  CHECK(document.searches == 4);
  CHECK(json["searches"].size() == 4);
  CHECK(document.entries > 0);
  CHECK(json["results"].size() == static_cast<std::size_t>(document.entries));
  REQUIRE(document.left_out.size() == 27);
  CHECK(document.left_out[0] ==
        fmt::format("'{}': a report has at most {} bytes, and no room for this search",
                    folder / "04.journal", bytes));
  CHECK(document.left_out.back() ==
        fmt::format("{} of 50 results without a journal", 50 - document.entries));
  CHECK(document.json.find("\"left_out\"") < bytes);
  const report::Document few = document_of({folder.path()}, {.searches = 3, .entries = 4});
  CHECK(few.searches == 3);
  CHECK(few.entries == 4);
  // The list of what was left out is limited too.
  report::Gathered gathered;
  gathered.left_out.assign(300, std::string(10'000, '\x01'));
  base::FileSystem files;
  const report::Document listed = report::document_of(files, std::move(gathered));
  CHECK(listed.left_out.size() == 300);
  CHECK(listed.json.size() < (1 << 20) + 1000);
  const base::Json lines = parsed(listed);
  CHECK(lines["left_out"].size() > 10);
  CHECK(lines["left_out"].size() + lines["further_left_out"].get<std::size_t>() == 300);
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
  const auto told = [&](std::int64_t work) { return document_of({folder.path()}, {.work = work}); };
  CHECK(told(3 * (bytes + steps)).searches == 3);
  const report::Document two = told(3 * (bytes + steps) - 1);
  CHECK(two.searches == 2);
  REQUIRE(two.left_out.size() == 1);
  CHECK(two.left_out[0].starts_with(fmt::format("'{}': ", folder / "c.journal")));
  CHECK(told(bytes + steps - 1).searches == 0);
  // Once there is no room for anything, journals that would be left out are not read.
  test::FaultyFiles files;
  report::Gathered gathered = gathered_of(files, {folder.path()});
  const std::int64_t before = files.bytes_read();
  CHECK(report::document_of(files, std::move(gathered), {.work = bytes - 1}).left_out.size() == 3);
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
  // The largest journal that is accepted.
  CHECK(steps(8192, 1'000'000, false) < report::DocumentLimits().work);
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
        fmt::format("'{}' and all after it: a report takes at most 8 results", folder / "c.pack"));
  const report::Gathered bytes = gathered({.bytes = 3 * std::ssize(pack) - 1});
  CHECK(bytes.entries.size() == 11);  // the last file is small enough
  CHECK(bytes.journals.size() == 1);
  REQUIRE(bytes.left_out.size() == 1);
  CHECK(bytes.left_out[0].starts_with(fmt::format("'{}' and all", folder / "c.pack")));
  const report::Gathered three = gathered({.files = 3});
  CHECK(three.entries.size() == 15);
  CHECK(three.journals.empty());
  CHECK(three.left_out ==
        std::vector{fmt::format("'{}' and all after it: a report takes at most 3 files",
                                folder / "d.pack")});
}

TEST_CASE("an empty folder makes an empty document, and what cannot be read is an error") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "empty");
  const report::Document empty = document_of({folder / "empty"});
  CHECK(empty.searches + empty.entries == 0);
  const auto refused = [&](const std::string& path, ErrorCode code) {
    try {
      document_of({path});
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
  // In a folder, such files are left out.
  const report::Document rest = document_of({folder.path()});
  CHECK(rest.left_out.size() == 3);
  base::FileSystem files;
  report::Gathered gathered;
  report::gather_if_there(files, folder / "missing", &gathered);
  CHECK(gathered.left_out.empty());
}

}  // namespace
}  // namespace annulus::autotune
