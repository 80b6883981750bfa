// Journals of searches must keep what a search found, however its process ends.

#include "autotune/journal_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "annulus/types.h"
#include "autotune/fake_bench.h"
#include "autotune/replay.h"
#include "base/hash.h"
#include "base/random.h"
#include "support/faulty_files.h"
#include "support/options.h"
#include "support/processes.h"
#include "tuned/folder_work.h"
#include "tuned/opened.h"
#include "tuned/sample_entry.h"

namespace annulus::autotune {
namespace {

using test::FakeBench;
using test::Notes;
using test::ScratchFolder;
using test::smooth;

base::Json subject(bool predicted, int driver = 13000) {
  const std::vector<tuned::Trial> all = test::trials(smooth);
  return tuned::subject_of({{"device", "a GPU"}, {"driver", driver}, {"shape", "some"}}, all,
                           test::default_of(all), predicted, {});
}

tuned::ShapeKey shape() { return test::sample_entry(1).shape; }

SearchResult run(Workbench& bench, const tuned::SearchOptions& options = {}) {
  std::vector<tuned::Trial> all = test::trials(smooth);
  const std::size_t at = test::default_of(all);
  return search(std::move(all), at, bench, options);
}

// A whole search, and the lines of its journal.
struct Told {
  explicit Told(double noise) : bench(smooth, noise) {
    for (const tuned::Trial& trial : test::trials(smooth)) {
      if (attention::cta_shape(trial.config).stages == 4) {
        bench.dropped[to_string(trial.config)] = "spills \"16\" bytes\nand more";
      }
    }
    lines = {tuned::first_line(subject(noise == 0))};
    std::string why;
    const tuned::Journal empty = *tuned::decode_journal(lines.front(), &why);
    JournalWorkbench journaled(&bench, empty, [&](const tuned::Finding& found) {
      lines.push_back(tuned::line_of(found));
    });
    result = run(journaled);
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : lines) all += line;
    return all;
  }
  FakeBench bench;
  std::vector<std::string> lines;
  SearchResult result;
};

void check_same(const SearchResult& a, const SearchResult& b) {
  CHECK(a.winner == b.winner);
  CHECK(a.runner_up == b.runner_up);
  CHECK(a.winner_time == b.winner_time);
  CHECK(a.default_time == b.default_time);
  CHECK(a.tried == b.tried);
  CHECK(a.dropped == b.dropped);
  CHECK(a.complete == b.complete);
  REQUIRE(a.trials.size() == b.trials.size());
  for (std::size_t i = 0; i < a.trials.size(); ++i) {
    CHECK(a.trials[i].outcome == b.trials[i].outcome);
    CHECK(a.trials[i].reason == b.trials[i].reason);
    CHECK(a.trials[i].time == b.trials[i].time);
    CHECK(a.trials[i].ratio.high == b.trials[i].ratio.high);
  }
}

TEST_CASE("a journal replayed without a device decides as the search did") {
  for (const double noise : {0.0, 0.02}) {
    const Told told(noise);
    std::string why;
    const auto journal = tuned::decode_journal(told.text() + tuned::last_line(), &why);
    REQUIRE(journal);
    CHECK(journal->ended);
    CHECK(journal->lines == static_cast<int>(told.lines.size()) + 1);
    CHECK(told.result.dropped > 0);
    check_same(replay(*journal), told.result);
  }
}

TEST_CASE("a search goes on from a journal cut anywhere, and measures nothing again") {
  for (const double noise : {0.0, 0.02}) {
    const Told told(noise);
    const std::string all = told.text();
    base::Random random(test::options().seed);
    std::size_t begin = told.lines.front().size();
    for (std::size_t whole = 1; whole < told.lines.size(); ++whole) {
      // All lines up to one, and a part of the next.
      const auto part = random.below(static_cast<std::uint32_t>(told.lines[whole].size()));
      std::string why;
      const auto journal = tuned::decode_journal(all.substr(0, begin + part), &why);
      REQUIRE(journal);
      CHECK(journal->whole_bytes == begin);
      CHECK(journal->findings.size() == whole - 1);
      begin += told.lines[whole].size();
      std::set<std::string> known;
      for (const tuned::Finding& finding : journal->findings) {
        known.insert(finding.configs.begin(), finding.configs.end());
      }
      FakeBench bench(smooth, noise, 99);
      bench.dropped = told.bench.dropped;
      JournalWorkbench resumed(&bench, *journal);
      const SearchResult result = run(resumed);
      for (const std::string& config : bench.prepared) CHECK_FALSE(known.contains(config));
      CHECK(result.complete);
      if (noise == 0) check_same(result, told.result);
    }
  }
}

TEST_CASE("a journal that was cut short gives what the search would have kept") {
  const Told told(0.02);
  std::string why;
  const auto nothing = tuned::decode_journal(told.lines.front(), &why);
  REQUIRE(nothing);
  CHECK_THROWS_AS(replay(*nothing), Error);
  std::string half;
  for (std::size_t i = 0; i < told.lines.size() / 2; ++i) half += told.lines[i];
  const SearchResult result = replay(*tuned::decode_journal(half, &why));
  CHECK_FALSE(result.complete);
  // A dropped candidate has one line, and a tried candidate has one or more.
  CHECK(result.tried + result.dropped < static_cast<int>(told.lines.size() / 2));
  CHECK(result.tried > 1);
  for (std::size_t i = 0; i < result.trials.size(); ++i) {
    if (result.trials[i].outcome == tuned::Trial::Outcome::kNotTried) continue;
    CHECK(result.trials[i].outcome == told.result.trials[i].outcome);
  }
}

TEST_CASE("of a journal with a changed byte the lines before it stay") {
  const Told told(0.02);
  const std::string text = told.text();
  base::Random random(test::options().seed);
  for (int i = 0; i < 300; ++i) {
    std::string changed = text;
    const std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
    changed[at] = static_cast<char>(changed[at] ^ (1 << random.below(8)));
    std::string why;
    const auto journal = tuned::decode_journal(changed, &why);
    if (at < told.lines.front().size()) {
      CHECK_FALSE(journal);
      CHECK_FALSE(why.empty());
    } else {
      REQUIRE(journal);
      CHECK(journal->whole_bytes <= at);
      std::size_t begin = 0;
      for (int line = 0; line < journal->lines; ++line) {
        begin += told.lines[static_cast<std::size_t>(line)].size();
      }
      CHECK(begin == journal->whole_bytes);
      CHECK(at < begin + told.lines[static_cast<std::size_t>(journal->lines)].size());
    }
  }
}

// A line with its digest.
std::string line_with(const std::string& text) {
  return base::digest(text).hex() + " " + text + "\n";
}

// Anyone can write a digest. So such a line is treated like a damaged line.
TEST_CASE("lines that no search writes end what is used of a journal") {
  const std::string standard = to_string(test::kDefault);
  const std::string other = to_string(test::trials(smooth).front().config);
  REQUIRE(other != standard);
  for (const bool predicted : {false, true}) {
    const auto rounds =
        static_cast<std::size_t>(predicted ? 1 : tuned::SearchOptions().quick_rounds);
    const std::string begin =
        tuned::first_line(subject(predicted)) +
        tuned::line_of(
            {.configs = {standard}, .dropped = {}, .times = {std::vector<double>(rounds, 2.0)}});
    const auto used = [&](const std::string& line) {
      std::string why;
      const auto journal = tuned::decode_journal(begin + line_with(line), &why);
      REQUIRE(journal);
      CHECK(replay(*journal).tried >= 1);
      FakeBench bench(smooth, predicted ? 0.0 : 0.02);
      JournalWorkbench resumed(&bench, *journal);
      CHECK(run(resumed).complete);
      return journal->lines == 3;
    };
    CHECK(used(R"({"dropped":")" + other + R"(","why":"spills"})"));
    CHECK_FALSE(used(R"({"dropped":")" + standard + R"(","why":"spills"})"));
    CHECK(used(R"({"tried":[")" + other + R"("],"times":[[1.5]],"cold":false})"));
    CHECK(used(R"({"tried":[")" + other + R"("],"times":[[1.5,1.25]],"cold":false})") ==
          !predicted);
    CHECK(used(R"({"tried":[")" + standard + R"("],"times":[[1.5,1.25,1.5]],"cold":false})") ==
          !predicted);
    CHECK(used(R"({"tried":[")" + standard + R"(",")" + other +
               R"("],"times":[[1.5],[1.25]],"cold":false})") == !predicted);
  }
}

TEST_CASE("a journal of more candidates than any space has is none") {
  base::Json about = subject(true);
  std::string why;
  CHECK(tuned::decode_journal(tuned::first_line(about), &why));
  base::Json& candidates = about["candidates"];
  while (candidates.size() <= 8192) candidates.push_back(candidates[0]);
  CHECK_FALSE(tuned::decode_journal(tuned::first_line(about), &why));
  CHECK(why.find("candidates") != std::string::npos);
  candidates.erase(candidates.size() - 1);
  const auto most = tuned::decode_journal(tuned::first_line(about), &why);
  REQUIRE(most);
  FakeBench bench(smooth);
  JournalWorkbench resumed(&bench, *most);
  CHECK(search(most->trials, most->default_at, resumed, most->options).tried < 2000);
}

TEST_CASE("a reason that is no UTF-8 is kept, with a sign for what is none") {
  std::string why;
  const std::string line =
      tuned::line_of({.configs = {to_string(test::trials(smooth).front().config)},
                      .dropped = "says \xff",
                      .times = {}});
  const auto journal = tuned::decode_journal(tuned::first_line(subject(false)) + line, &why);
  REQUIRE(journal);
  REQUIRE(journal->findings.size() == 1);
  CHECK(journal->findings[0].dropped == "says \xef\xbf\xbd");
}

// The journals in a folder.
std::vector<std::string> journals_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (each.path().extension() == tuned::kJournalSuffix) paths.push_back(each.path());
  }
  return paths;
}

TEST_CASE("a damaged end is cut off with one note, and other journals are passed over with one") {
  const ScratchFolder scratch;
  const std::string folder = scratch / "t";
  base::FileSystem files;
  const Told told(0.02);
  std::string path;
  {
    Notes notes;
    JournalFile file(files, notes.log(), folder, shape(), subject(false));
    path = file.path();
    CHECK(file.before().findings.empty());
    std::string why;
    const auto journal = tuned::decode_journal(told.text(), &why);
    REQUIRE(journal);
    for (const tuned::Finding& found : journal->findings) file.add(found);
    CHECK(notes.lines.empty());
  }
  std::fstream(path, std::ios::in | std::ios::out | std::ios::ate).seekp(-3, std::ios::end) << '?';
  const std::size_t findings = told.lines.size() - 1;
  for (const bool first : {true, false}) {
    Notes notes;
    JournalFile file(files, notes.log(), folder, shape(), subject(false));
    CHECK(file.path() == path);
    CHECK(file.before().findings.size() == findings - 1);
    CHECK(notes.lines.size() == (first ? 1 : 0));
    if (first) CHECK(notes.lines[0].find("damaged from line") != std::string::npos);
  }
  {
    std::vector<std::pair<base::LogLevel, std::string>> notes;
    const base::Log log([&](base::LogLevel level, auto text) { notes.emplace_back(level, text); },
                        base::LogLevel::kInfo);
    JournalFile file(files, log, folder, shape(), subject(false, 13010));
    CHECK(file.path() != path);
    CHECK(file.before().findings.empty());
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].first == base::LogLevel::kInfo);  // no user needs to act
    CHECK(notes[0].second.find("its driver is 13000, not 13010") != std::string::npos);
    file.end(false);
  }
  CHECK(journals_in(folder) == std::vector<std::string>{path});
  std::ofstream(path, std::ios::app) << told.lines.back().substr(0, 30);
  {
    // A writer that is killed in the middle of a line leaves such a file. No user needs to act.
    Notes notes;
    JournalFile file(files, notes.log(), folder, shape(), subject(false));
    CHECK(file.before().findings.size() == findings - 1);
    CHECK(std::filesystem::file_size(path) == file.before().whole_bytes);
    CHECK(notes.lines.empty());
    file.end(true);
  }
  // The journal is kept for people, but no search continues from it.
  Notes notes;
  JournalFile again(files, notes.log(), folder, shape(), subject(false));
  CHECK(again.path() != path);
  CHECK(notes.lines.empty());
  std::string text = "annulus-journal 9 and so on\n", why;
  CHECK_FALSE(tuned::decode_journal(text, &why));
  CHECK(why == fmt::format("it is of another schema than {}", tuned::kJournalSchema));
}

// The subject of a search whose kernels had these revisions.
base::Json subject_with(const base::Json& families) {
  base::Json with = subject(false);
  with["families"] = families;
  return with;
}

TEST_CASE("a journal is stale where neither this build nor a newer one goes on from it") {
  const attention::ConfigFamily& family = *test::sample_entry(1).config.family;
  const int now = family.revision;
  const auto with = [](const base::Json& families) {
    return tuned::first_line(subject_with(families));
  };
  const std::string going = with({{family.name, now}});
  CHECK(tuned::why_stale(going) == "");
  CHECK(tuned::why_stale(going + tuned::last_line()) == "its search has ended");
  CHECK(tuned::why_stale(going + "a damaged line\n") == "");
  CHECK(tuned::why_stale(with({{family.name, now - 1}})).find("revision") != std::string::npos);
  CHECK(tuned::why_stale(with({{family.name, now + 1}})) == "");
  const attention::Family* other = attention::find_family("wgmma");
  REQUIRE(other != nullptr);
  REQUIRE(other->name != family.name);
  CHECK(tuned::why_stale(with({{family.name, now - 1}, {other->name, other->revision + 1}})) == "");
  CHECK(tuned::why_stale(with({{family.name, now + 1}, {other->name, other->revision - 1}})) == "");
  CHECK(tuned::why_stale(with({{family.name, now - 1}, {"later", 1}})) == "");
  CHECK(tuned::why_stale(with({{"later", 1}, {family.name, now - 1}})) == "");
  CHECK(tuned::why_stale(with({{family.name, "text"}})) == "");
  CHECK(tuned::why_stale("annulus-journal 9 and so on\n") == "");
  CHECK(tuned::why_stale("annulus-journal 1 and so on\n") != "");
  CHECK(tuned::why_stale("annulus-journal x\n") != "");
  CHECK(tuned::why_stale("") != "");
  CHECK(tuned::why_stale(going.substr(0, going.size() - 1)) != "");
  CHECK(tuned::why_stale(going.substr(0, going.size() - 2) + "\n") != "");
  // The line is complete, but this build does not know its contents.
  const std::string object = R"({"candidates":"of another kind"})";
  const std::string unknown = base::digest(object).hex() + " " + object + "\n";
  const auto schema = [](int number) { return fmt::format("annulus-journal {} ", number); };
  CHECK(tuned::why_stale(schema(tuned::kJournalSchema) + unknown) == "");
  CHECK(tuned::why_stale(schema(tuned::kJournalSchema - 1) + unknown) != "");
}

// The names of all files in a folder.
std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    names.insert(each.path().filename());
  }
  return names;
}

TEST_CASE("stale journals are removed, and none that a search writes to or that is not read") {
  const attention::ConfigFamily& family = *test::sample_entry(1).config.family;
  const std::string old = tuned::first_line(subject_with({{family.name, family.revision - 1}}));
  const std::string ended = tuned::first_line(subject(false)) + tuned::last_line();
  const std::set<std::string> stays = {"going.journal", "0.tuned", "notes",
                                       std::string(tuned::kLockName)};
  std::set<std::string> all = stays;
  const auto fill = [&](const std::string& folder) {
    std::filesystem::create_directories(folder);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
    const std::vector<std::pair<std::string, std::string>> files = {
        {"going.journal", tuned::first_line(subject(false))},
        {"old.journal", old},
        {"ended.journal", ended},
        {"damaged.journal", "annulus"},
        {"0.tuned", ended},
        {"notes", ended},
        {tuned::kLockName, ""}};
    for (const auto& [name, text] : files) {
      test::write(folder + "/" + name, text);
      all.insert(name);
    }
  };
  {
    const ScratchFolder scratch;
    base::FileSystem files;
    fill(scratch / "t");
    CHECK(tuned::remove_stale_journals(files, scratch / "t", true).size() == 3);
    CHECK(names_in(scratch / "t") == all);
    test::OthersRegularFiles others(12345, 0600);
    CHECK(tuned::remove_stale_journals(others, scratch / "t", false).empty());
    {
      tuned::Opened locked(files, files.open(base::kHere, scratch / "t/old.journal", O_RDONLY, 0));
      REQUIRE(files.lock(locked.file) == 0);
      CHECK(tuned::remove_stale_journals(files, scratch / "t", false).size() == 2);
      std::set<std::string> rest = stays;
      rest.insert("old.journal");
      CHECK(names_in(scratch / "t") == rest);
    }
    const auto stale = tuned::remove_stale_journals(files, scratch / "t", false);
    REQUIRE(stale.size() == 1);
    CHECK(stale[0].path == scratch / "t/old.journal");
    CHECK(stale[0].why.find("revision") != std::string::npos);
    CHECK(stale[0].problem.empty());
    CHECK(names_in(scratch / "t") == stays);
  }
  for (const bool persistent : {false, true}) {
    bool reached = true;
    for (int at = 0; reached; ++at) {
      const ScratchFolder scratch;
      fill(scratch / "t");
      test::FaultyFiles files;
      files.fail_at = at;
      files.code = EMFILE;
      files.persistent = persistent;
      std::set<std::string> expected = all;
      try {
        for (const tuned::StaleJournal& each :
             tuned::remove_stale_journals(files, scratch / "t", false)) {
          if (each.problem.empty()) expected.erase(each.path.substr(each.path.rfind('/') + 1));
        }
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kFile);
      }
      CHECK(names_in(scratch / "t") == expected);
      CHECK(std::ranges::includes(expected, stays));
      CHECK(files.opened() == 0);
      reached = files.calls() > at;
    }
  }
}

TEST_CASE("two searches at a time have journals of their own") {
  const ScratchFolder scratch;
  base::FileSystem files;
  Notes notes;
  JournalFile first(files, notes.log(), scratch / "t", shape(), subject(false));
  JournalFile second(files, notes.log(), scratch / "t", shape(), subject(false));
  CHECK(first.path() != second.path());
  for (int i = 0; i < 10; ++i) {
    for (JournalFile* file : {&first, &second}) {
      file->add({.configs = {to_string(test::kDefault)}, .dropped = {}, .times = {{1.0 + i}}});
    }
  }
  for (const JournalFile* file : {&first, &second}) {
    const std::vector<std::byte> bytes =
        base::read_file(files, file->path(), tuned::kMaxJournalBytes);
    std::string why;
    const auto journal =
        tuned::decode_journal({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, &why);
    REQUIRE(journal);
    CHECK(journal->findings.size() == 10);
    CHECK(journal->whole_bytes == bytes.size());
  }
  CHECK(notes.lines.empty());
}

TEST_CASE("a search whose journal somebody removed leaves that of another search alone") {
  const ScratchFolder scratch;
  base::FileSystem files;
  Notes notes;
  JournalFile first(files, notes.log(), scratch / "t", shape(), subject(false));
  const std::string path = first.path();
  std::filesystem::remove(path);
  CHECK(first.path().empty());
  JournalFile second(files, notes.log(), scratch / "t", shape(), subject(false));
  CHECK(second.path() == path);
  CHECK(first.path().empty());
  first.add({.configs = {to_string(test::kDefault)}, .dropped = {}, .times = {{1.0}}});
  first.end(false);
  CHECK(notes.lines.empty());
  CHECK(second.path() == path);
  CHECK(journals_in(scratch / "t") == std::vector<std::string>{path});
  second.end(false);
  CHECK(journals_in(scratch / "t").empty());
  // A journal that was to be kept is missing.
  JournalFile third(files, notes.log(), scratch / "t", shape(), subject(false));
  std::filesystem::remove(third.path());
  third.end(true);
  REQUIRE(notes.lines.size() == 1);
  CHECK(notes.lines[0].find("a user removed it") != std::string::npos);
}

TEST_CASE("a journal that is given up leaves its space and says so") {
  const ScratchFolder scratch;
  base::FileSystem files;
  Notes notes;
  JournalFile file(files, notes.log(), scratch / "t", shape(), subject(false));
  const std::string path = file.path();
  file.give_up();
  CHECK(journals_in(scratch / "t").empty());
  CHECK(file.path().empty());
  REQUIRE(notes.lines.size() == 1);
  CHECK(notes.lines[0].find(path) != std::string::npos);
  // Nothing is written or removed after the failure, and it is logged once.
  file.add({.configs = {to_string(test::kDefault)}, .dropped = {}, .times = {{1.0}}});
  file.give_up();
  file.end(true);
  CHECK(journals_in(scratch / "t").empty());
  CHECK(notes.lines.size() == 1);
}

TEST_CASE("a journal whose first line no build reads is an error") {
  const ScratchFolder scratch;
  base::FileSystem files;
  base::Json about = subject(true);
  while (about["candidates"].size() <= 8192) about["candidates"].push_back(about["candidates"][0]);
  CHECK_THROWS_AS(JournalFile(files, {}, scratch / "t", shape(), about), Error);
}

// A disk with room for a few more bytes.
class SmallDisk final : public base::FileSystem {
 public:
  explicit SmallDisk(std::size_t left) : left_(left) {}
  std::int64_t write(int file, const void* data, std::size_t bytes) override {
    if (left_ == 0) return -ENOSPC;
    const std::int64_t count = FileSystem::write(file, data, std::min(bytes, left_));
    left_ -= static_cast<std::size_t>(count);
    return count;
  }

 private:
  std::size_t left_;
};

TEST_CASE("a full disk gets the space of a line back that it had no room for") {
  const tuned::Finding finding = {
      .configs = {to_string(test::kDefault)}, .dropped = {}, .times = {{1.0}}};
  const std::size_t first = tuned::first_line(subject(false)).size(),
                    more = tuned::line_of(finding).size();
  for (const std::size_t room :
       {first / 2, first, first + more / 2, first + more, first + 2 * more}) {
    CAPTURE(room);
    const ScratchFolder scratch;
    SmallDisk files(room);
    Notes notes;
    JournalFile file(files, notes.log(), scratch / "t", shape(), subject(false));
    file.add(finding);
    file.add(finding);
    CHECK(notes.lines.size() == (room < first + 2 * more ? 1 : 0));
    const std::vector<std::string> there = journals_in(scratch / "t");
    CHECK(there.size() == (room < first ? 0 : 1));
    CHECK(file.path() == (there.empty() ? "" : there.front()));
    if (there.empty()) continue;
    CHECK(std::filesystem::file_size(there.front()) == first + (room - first) / more * more);
  }
}

// Records whether the first call that failed made, wrote or removed a journal.
class JournalFaults final : public test::FaultyFiles {
 public:
  bool of_journal = false;

  int open(int folder, const std::string& path, int flags, unsigned mode) override {
    const bool own = path.ends_with(tuned::kJournalSuffix) && (flags & O_CREAT) != 0;
    note(own);
    const int file = FaultyFiles::open(folder, path, flags, mode);
    if (own && file >= 0) journal_ = file;
    return file;
  }
  std::int64_t write(int file, const void* data, std::size_t bytes) override {
    note(file == journal_);
    return FaultyFiles::write(file, data, bytes);
  }
  int unlink(int folder, const std::string& path) override {
    note(path.ends_with(tuned::kJournalSuffix));
    return FaultyFiles::unlink(folder, path);
  }

 private:
  void note(bool own) { of_journal = of_journal || (own && calls() == fail_at); }
  int journal_ = -1;
};

TEST_CASE("a search goes on without a journal whichever call of files fails") {
  int of_journal = 0;
  for (const bool persistent : {false, true}) {
    bool reached = true;
    for (int at = 0; reached; ++at) {
      const ScratchFolder scratch;
      JournalFaults files;
      files.fail_at = at;
      files.code = ENOSPC;
      files.persistent = persistent;
      Notes notes;
      {
        JournalFile file(files, notes.log(), scratch / "t", shape(), subject(false));
        file.add({.configs = {to_string(test::kDefault)}, .dropped = {}, .times = {{1.0}}});
        file.end(false);
      }
      // If all calls fail, a journal that cannot be written cannot be removed either.
      CHECK(notes.lines.size() <= (persistent ? 2 : 1));
      if (files.of_journal) CHECK(notes.lines.size() >= 1);
      of_journal += files.of_journal;
      CHECK(files.opened() == 0);
      reached = files.calls() > at;
    }
  }
  // The journal is made, gets two lines and is removed.
  CHECK(of_journal == 8);
}

// --kills N kills more of them. A child reports each line that it has written through a pipe. The
// journal must contain every reported line, however the child ends. A kill may come in the middle
// of a call of write(), after some of its pages were written. Then the last line is cut, and it was
// not reported.
TEST_CASE("killed searches lose nothing that was finished, and go on to the same winner") {
  const int kills = test::options().kills > 0 ? test::options().kills : 60;
  base::Random random(test::options().seed);
  int killed = 0, searches = 0, cut = 0, damaged = 0, lost = 0, again = 0;
  FakeBench whole(smooth);
  const SearchResult expected = run(whole);
  while (killed < kills) {
    const ScratchFolder scratch;
    const std::string folder = scratch / "t";
    ++searches;
    std::set<std::string> finished;
    for (bool ended = false; !ended;) {
      int told[2];
      REQUIRE(pipe(told) == 0);
      const pid_t child = test::start([&] {
        base::FileSystem files;
        JournalFile file(files, {}, folder, shape(), subject(true));
        FakeBench bench(smooth);
        JournalWorkbench journaled(&bench, file.before(), [&](const tuned::Finding& found) {
          file.add(found);
          const std::string line = found.configs.front() + '\n';
          if (write(told[1], line.data(), line.size()) < 0) _exit(2);
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        });
        const SearchResult result = run(journaled);
        if (!result.complete || result.winner != expected.winner) _exit(3);
        file.end(true);
      });
      close(told[1]);
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(4000)));
      kill(child, SIGKILL);
      std::string text;
      char bytes[4096];
      for (ssize_t count; (count = ::read(told[0], bytes, sizeof bytes)) > 0;) {
        text.append(bytes, static_cast<std::size_t>(count));
      }
      close(told[0]);
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      if (WIFEXITED(status)) REQUIRE(WEXITSTATUS(status) == 0);
      killed += WIFSIGNALED(status);
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        if (!finished.insert(text.substr(begin, end - begin)).second) ++again;
        begin = end + 1;
      }
      if (!std::filesystem::exists(folder) || journals_in(folder).empty()) {
        lost += !finished.empty();
        continue;
      }
      const std::string path = journals_in(folder).front();
      CHECK(journals_in(folder).size() == 1);
      base::FileSystem files;
      const std::vector<std::byte> read = base::read_file(files, path, tuned::kMaxJournalBytes);
      std::string why;
      const auto journal =
          tuned::decode_journal({reinterpret_cast<const char*>(read.data()), read.size()}, &why);
      if (!journal) {  // it was killed before its first line existed
        damaged += !finished.empty();
        continue;
      }
      std::set<std::string> there;
      for (const tuned::Finding& finding : journal->findings) there.insert(finding.configs.front());
      for (const std::string& config : finished) lost += !there.contains(config);
      const std::span<const std::byte> rest = std::span(read).subspan(journal->whole_bytes);
      const bool in_one_line = std::ranges::find(rest, std::byte{'\n'}) == rest.end();
      (in_one_line ? cut : damaged) += !rest.empty();
      ended = journal->ended;
    }
  }
  MESSAGE(killed << " searches killed, in " << searches << " that ended; " << cut
                 << " journals cut in their last line, " << damaged << " damaged, " << lost
                 << " finished measurements lost, " << again << " made again");
  CHECK(damaged == 0);
  CHECK(lost == 0);
  CHECK(again == 0);
}

}  // namespace
}  // namespace annulus::autotune
