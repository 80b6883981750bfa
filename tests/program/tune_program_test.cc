// annulus tune and annulus tuned as a user sees them.

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/hash.h"
#include "base/random.h"
#include "program/run_program.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::annulus_with;
using test::json_of;
using test::on_device;
using test::Outcome;
using test::refused;

constexpr char kShape[] = " -H 4 --kv-heads 2 -S 300 -D 32 -p causal";

std::string with(const test::ScratchFolder& folder) {
  return " --tuned " + (folder / "tuned") + on_device();
}

TEST_CASE("tune report writes a page of searches and results") {
  const test::ScratchFolder folder;
  const std::string tuned = " --tuned " + (folder / "tuned"), page = folder / "report.html";
  const base::Json found =
      json_of("tune --json --keep-journal" + std::string(kShape) + with(folder))["results"][0];
  const base::Json report = json_of("tune report --json -o " + page + tuned);
  CHECK(report["output"] == page);
  CHECK(report["searches"] == 1);
  CHECK(report["entries"] == 0);
  CHECK(report["left_out"].empty());
  const std::string html = test::read(page);
  CHECK(report["bytes"] == html.size());
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(html.find("<td>" + found["config"].get<std::string>() + "</td>") != std::string::npos);
  CHECK((html.find("<td>predicted, not measured</td>") != std::string::npos) ==
        test::on_simulator());
  // Other names of the same files give the same page.
  const std::string journal = found["journal"].get<std::string>();
  CHECK(annulus_with("tune report -o " + page + " " + (folder / "tuned")).code == 0);
  CHECK(test::read(page) == html);
  const Outcome told = annulus_with("tune report -o " + page + " " + journal);
  CHECK(told.code == 0);
  CHECK(told.out.find("searches   1\n") != std::string::npos);
  // The document gives the same page without the journals.
  const Outcome printed = annulus_with("tune report --json" + tuned);
  CHECK(printed.code == 0);
  CHECK(base::parse_json(printed.out, "the document")["searches"].size() == 1);
  const std::string document = folder / "report.json";
  std::ofstream(document) << printed.out;
  std::filesystem::remove(page);
  CHECK(json_of("tune report --json -o " + page + " --from " + document)["searches"] == 1);
  CHECK(test::read(page) == html);
  std::ofstream(document) << "{\"schema\":2}";
  refused("tune report -o " + page + " --from " + document, 5, "reads schema 1 alone");
  refused("tune report -o " + document + " --from " + document, 2, "would be lost");
  refused("tune report --json --from " + document, 2, "--from requires --output");
  refused("tune report -o " + page + " --from " + document + " " + journal, 2, "excludes");
  // Damaged files in folders are left out. A damaged file that is named is an error.
  std::ofstream(folder / "tuned/x.pack") << "annulus-tuned-pack 4 x\n";
  const Outcome partial = annulus_with("tune report -o " + page + tuned);
  CHECK(partial.code == 3);
  CHECK(partial.out.find("left out   ") != std::string::npos);
  refused("tune report --json -o " + page + " " + (folder / "tuned/x.pack"), 5, "x.pack");
  refused("tune report -o " + page + " " + (folder / "missing"), 5, folder / "missing");
  refused("tune report -o " + journal + " " + journal, 2, "would be lost");
  refused("tune report -o " + (folder / "no/such/page"), 5, "no/such/page");
  refused("tune report " + journal, 2, "no output is given");
  refused("tune --heads 3 report -o " + page, 2, "report excludes --heads");
  refused("tune report -o " + page + " " + journal + tuned, 2, "excludes");
  CHECK(test::read(journal).starts_with("annulus-journal "));
}

// Writes a journal in which some words are replaced. Its digests are still right.
void write_journal(const std::string& path, std::string line, const std::string& from,
                   const std::string& to) {
  const std::size_t at = line.find(from);
  REQUIRE(at != std::string::npos);
  line.replace(at, from.size(), to);
  const std::string rest = line.substr(line.find('{'));
  const std::string text = rest.substr(0, rest.find('\n'));
  std::ofstream(path) << "annulus-journal 2 " << base::digest(text).hex() << ' ' << rest;
}

TEST_CASE("what files state is no command to a terminal") {
  const test::ScratchFolder folder;
  const auto harmless = [](const Outcome& outcome) {
    const std::string text = outcome.out + outcome.err;
    return text.find('\x1b') == std::string::npos && text.find("\xc2\x9b") == std::string::npos;
  };
  const std::string body = "{\"a\":0,\"\\u001b[2J\\u009b\":1,\"\\u001b[2J\\u009b\":2}\n";
  const std::string pack = folder / "\u00e9.pack";
  std::ofstream(pack) << "annulus-tuned-pack 4 " << base::digest(body).hex() << '\n' << body;
  const std::string shape = kShape + on_device();
  const Outcome explained = annulus_with("explain --tuned " + pack + shape);
  CHECK(explained.code == 0);
  CHECK(explained.err.find("\u00e9.pack' are not used") != std::string::npos);
  CHECK(explained.err.find("'?[2J?' occurs twice") != std::string::npos);
  CHECK(harmless(explained));

  const base::Json found =
      json_of("tune --json --keep-journal" + std::string(kShape) + with(folder))["results"][0];
  const std::string journal = test::read(found["journal"].get<std::string>());
  const std::string edited = folder / "edited.journal", of_shape = "\"shape\":\"";
  write_journal(edited, journal, of_shape, of_shape + "\\u001b[2J");
  const Outcome replayed = annulus_with("tune --replay " + edited);
  CHECK(replayed.code == 0);
  CHECK(replayed.out.starts_with("?[2J"));
  CHECK(harmless(replayed));
  const std::string of_candidates = "\"candidates\":[[\"";
  write_journal(edited, journal, of_candidates, of_candidates + "\\u001b[2J");
  const Outcome unknown = annulus_with("tune --replay " + edited);
  CHECK(unknown.code == 5);
  CHECK(unknown.err.find("does not support '?[2J") != std::string::npos);
  CHECK(harmless(unknown));
}

TEST_CASE("tuned verify does not measure a problem that takes hours to look at") {
  const test::ScratchFolder folder;
  const std::string pack = folder / "long.pack";
  json_of("tune --json" + std::string(kShape) + with(folder));
  CHECK(annulus_with("tuned export " + pack + " --tuned " + (folder / "tuned")).code == 0);
  const std::string text = test::read(pack);
  base::Json entry = base::parse_json(text.substr(text.find('\n') + 1), "the entry");
  base::Json& origin = entry["origin"];
  origin["seq_q"] = origin["seq_k"] = 1 << 24;
  origin["pattern"] = "causal & random(64, 0, 64)";
  const std::string body = entry.dump() + "\n";
  std::ofstream(pack) << "annulus-tuned-pack 4 " << base::digest(body).hex() << '\n' << body;
  const Outcome outcome = annulus_with("tuned verify " + pack + " --measure 1" + on_device());
  CHECK(outcome.code == 3);
  CHECK(outcome.out.find("reading the problem of a tuned result: ") != std::string::npos);
}

TEST_CASE("tune finds, keeps and tells; run, explain, list, show and doctor know of it") {
  const test::ScratchFolder folder;
  const base::Json before = json_of("run --json" + std::string(kShape) + with(folder));
  CHECK(before["tuned"] == "");
  const base::Json json = json_of("tune --json" + std::string(kShape) + with(folder));
  REQUIRE(json["results"].size() == 1);
  const base::Json& result = json["results"][0];
  CHECK(result["status"] == "tuned");
  CHECK(result["predicted"] == test::on_simulator());
  CHECK(result["ratio"] <= 1.0);
  CHECK(result["default_config"] == before["config"]);
  CHECK(result["trials"].size() == result["candidates"]);
  CHECK(result["tried"] > 5);
  const std::string path = result["path"].get<std::string>();
  CHECK(std::filesystem::exists(path));

  const base::Json after = json_of("run --json" + std::string(kShape) + with(folder));
  CHECK(after["tuned"] == path);
  CHECK(after["config"] == result["config"]);
  CHECK(after["within_law"] == true);
  CHECK(json_of("explain --json" + std::string(kShape) + with(folder))["tuned"] == path);
  CHECK(json_of("run --json --no-check --tuned none" + std::string(kShape) +
                on_device())["tuned"] == "");
  const base::Json list = json_of("tuned list --json --tuned " + (folder / "tuned"));
  REQUIRE(list["entries"].size() == 1);
  CHECK(list["entries"][0]["path"] == path);
  CHECK(list["entries"][0]["config"] == result["config"]);
  CHECK(list["entries"][0]["predicted"] == test::on_simulator());
  CHECK(list["ignored"].empty());
  const std::string name = path.substr(path.rfind('/') + 1, 12);
  const Outcome text = annulus_with("tuned list --tuned " + (folder / "tuned"));
  CHECK(text.code == 0);
  CHECK(text.out.find(name) != std::string::npos);
  const Outcome shown = annulus_with("tuned show " + name + " --tuned " + (folder / "tuned"));
  CHECK(shown.code == 0);
  CHECK(shown.out.find(path) != std::string::npos);
  if (test::on_simulator()) CHECK(shown.out.find("predicted cycles") != std::string::npos);
  const base::Json doctor = json_of("doctor --json" + with(folder));
  CHECK(doctor["tuned"]["entries"] == 1);
  CHECK(doctor["tuned"]["ignored"].empty());

  // The second time, nothing is measured.
  const base::Json again = json_of("tune --json" + std::string(kShape) + with(folder));
  CHECK(again["results"][0]["status"] == "there already");
  CHECK(again["results"][0]["config"] == result["config"]);
  const Outcome told = annulus_with("tune" + std::string(kShape) + with(folder));
  CHECK(told.code == 0);
  CHECK(told.err.empty());
  if (test::on_simulator()) {
    CHECK(told.out.find("times are predicted, and only simulated devices use them") !=
          std::string::npos);
  }
}

TEST_CASE("doctor, list and show say which results serve this device, and why others do not") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string shape = " -H 1 -S 64 -D 32";
  const std::string tuned = " --tuned " + (folder / "tuned");
  const Outcome none = annulus_with("tuned show" + tuned);
  CHECK(none.code == 0);
  CHECK(none.out.find("nothing is tuned in " + (folder / "tuned")) != std::string::npos);
  json_of("tune --json --device sim:sm_80" + shape + tuned);
  const base::Json here = json_of("doctor --json --device sim:sm_80" + tuned);
  CHECK(here["tuned"]["of_device"]["here"] == 1);
  CHECK(here["tuned"]["of_device"]["others"].empty());
  CHECK(here["cache"]["of_device"]["here"] > 0);
  const base::Json other = json_of("doctor --json --device sim:sm_90a" + tuned);
  CHECK(other["tuned"]["of_device"]["here"] == 0);
  REQUIRE(other["tuned"]["of_device"]["others"].size() == 1);
  CHECK(other["tuned"]["of_device"]["others"][0]["why"].get<std::string>().find(
            "sm_80, not sm_90a") != std::string::npos);
  const Outcome told = annulus_with("doctor --device sim:sm_90a" + tuned);
  CHECK(told.out.find("1 results, 0 for this device") != std::string::npos);
  CHECK(told.out.find("1 not used here: it is of ") != std::string::npos);
  CHECK(told.out.find("not used here: made for compute_80") != std::string::npos);

  // The list shows the problem itself, without rounding to steps of logarithms.
  const Outcome list = annulus_with("tuned list" + tuned);
  CHECK(list.out.find("B1 H1 Hkv1 Sq64 Sk64, D32 bf16, dense") != std::string::npos);
  CHECK(list.out.find("queries ") == std::string::npos);
  CHECK(annulus_with("tuned show" + tuned).out.find("B1 H1 Hkv1 Sq64 Sk64") != std::string::npos);

  // A folder to which other users may write is not read, and doctor reports it.
  std::filesystem::permissions(folder / "tuned", std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);
  const Outcome open = annulus_with("doctor --device sim:sm_80" + tuned);
  CHECK(open.out.find("ignored") != std::string::npos);
  CHECK(open.out.find(folder / "tuned") != std::string::npos);
  CHECK(open.out.find("write") != std::string::npos);
}

TEST_CASE("results travel in packs, and why says which is used") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string shape = " -H 2 -S 64 -D 32 -p causal", device = " --device sim:sm_80";
  const std::string tuned = " --tuned " + (folder / "tuned"), pack = folder / "a.pack";
  json_of("tune --json" + device + shape + tuned);
  const base::Json exported = json_of("tuned export --json " + pack + tuned);
  REQUIRE(exported["notes"].size() == 1);
  const Outcome none = annulus_with("tuned export --measured " + (folder / "none.pack") + tuned);
  CHECK(none.code == 2);
  CHECK(none.err.find("the filter leaves none of the 1 tuned results") != std::string::npos);
  CHECK(json_of("tuned merge --json " + pack + " " + pack + " -o " + (folder / "b.pack"))["notes"]
            .size() == 1);
  const Outcome same = annulus_with("tuned diff " + pack + " " + (folder / "b.pack"));
  CHECK(same.code == 0);
  CHECK(same.out.find("none") != std::string::npos);
  const Outcome fewer = annulus_with("tuned diff " + pack + " /");
  CHECK(fewer.out.find("first only") != std::string::npos);
  // The pack is an element of the search path.
  const base::Json run = json_of("run --json --no-check" + device + shape + " --tuned " + pack);
  CHECK(run["tuned"] == pack);
  const base::Json doctor = json_of("doctor --json" + device + " --tuned " + pack);
  CHECK(doctor["tuned"]["of_device"]["here"] == 1);
  CHECK(doctor["tuned"]["packs"][pack].size() == 1);
  CHECK(annulus_with("doctor" + device + " --tuned " + pack).out.find(pack + ": 1 of simulated") !=
        std::string::npos);
  CHECK(json_of("tuned import --json " + pack + " --tuned " +
                (folder / "c"))["notes"][0]["verdict"] == "added");
  const Outcome verified = annulus_with("tuned verify --measure 1 " + pack + device);
  CHECK(verified.code == 0);
  CHECK(verified.out.find("holds") != std::string::npos);
  const base::Json why = json_of("tuned why --json" + device + shape + tuned);
  CHECK(why["notes"][0]["verdict"] == "used");
  CHECK(why["shape"].get<std::string>().find("queries 54 to 76") != std::string::npos);
  const Outcome far = annulus_with("tuned why -H 2 -S 8000 -D 32 -p causal" + device + tuned);
  CHECK(far.code == 0);
  CHECK(far.out.find("not used") != std::string::npos);
  const Outcome dry = annulus_with("tuned remove mma --dry-run" + tuned);
  CHECK(dry.out.find("nothing was removed") != std::string::npos);
  CHECK(annulus_with("tuned prune --others --device sim:sm_90a" + tuned).out.find("1 removed") !=
        std::string::npos);
  CHECK(annulus_with("tuned remove mma" + tuned).code == 2);
  const Outcome missing = annulus_with("tuned verify " + (folder / "no.pack") + device);
  CHECK(missing.code == 5);
  std::ofstream(folder / "b.pack") << "annulus-tuned-pack 99 x\n";
  const Outcome newer = annulus_with("tuned verify " + (folder / "b.pack") + device);
  CHECK(newer.err.find("a newer library") != std::string::npos);
  CHECK(newer.code == 2);
}

TEST_CASE("a search that is cut short keeps the complete result that was there") {
  const test::ScratchFolder folder;
  const std::string shape = " -H 1 -S 100 -D 32";
  const base::Json whole = json_of("tune --json" + shape + with(folder));
  REQUIRE(whole["results"][0]["status"] == "tuned");
  const base::Json before = json_of("tuned list --json --tuned " + (folder / "tuned"));
  // The time limit is raised until several candidates are tried, whose kernels are compiled again.
  for (int seconds = 2, tried = 0; tried <= 1; seconds *= 2) {
    const Outcome cut = annulus_with(
        fmt::format("tune --json --force --exhaustive --cache-dir none --time-limit {}s{}{}",
                    seconds, shape, with(folder)));
    REQUIRE(cut.code == 3);
    const base::Json result = base::parse_json(cut.out, "tune")["results"][0];
    REQUIRE(result["status"] == "partial");
    tried = result["tried"].get<int>();
  }
  const base::Json after = json_of("tuned list --json --tuned " + (folder / "tuned"));
  REQUIRE(after["entries"].size() == 1);
  CHECK(after["entries"][0]["complete"] == true);
  CHECK(after["entries"][0] == before["entries"][0]);
}

TEST_CASE("a sum is tuned as a whole, and runs of it take the result") {
  const test::ScratchFolder folder;
  const std::string sum = " --pattern 'sum(causal, window(63, 0))' -H 1 -S 128 -D 32";
  const base::Json tuned = json_of("tune --json" + sum + with(folder))["results"][0];
  CHECK(tuned["status"] == "tuned");
  const base::Json run = json_of("run --json" + sum + with(folder));
  CHECK(run["within_tolerance"] == true);
  CHECK(run["tuned"] == tuned["path"]);
  CHECK(run["config"] == tuned["config"]);
  // The branches alone are other problems.
  CHECK(json_of("run --json -H 1 -S 128 -D 32 --pattern causal" + with(folder))["tuned"] == "");
}

TEST_CASE("a ring is tuned by its step, which is also what a log of shapes counts") {
  const test::ScratchFolder folder;
  const std::string ring = " --ranks 2 --pattern causal -H 2 -S 256 -D 32";
  const base::Json tuned = json_of("tune --json" + ring + with(folder))["results"][0];
  CHECK(tuned["status"] == "tuned");
  CHECK(tuned["problem"]["seq_q"] == 128);
  CHECK(tuned["carry_in"] == true);
  CHECK(tuned["carry_out"] == true);
  const std::string log = folder / "log";
  const base::Json run = json_of("run --json --shape-log '" + log + "'" + ring + with(folder));
  CHECK(run["within_tolerance"] == true);
  CHECK(run["tuned"] == tuned["path"]);
  const std::string text = test::read(log);
  CAPTURE(text);
  CHECK(text.find("--count 1 --heads 2 --seq 128 --dim 32 --pattern \"causal\" --carry both\n") !=
        text.npos);
  const base::Json again = json_of("tune --json --shapes '" + log + "'" + with(folder));
  CHECK(again["results"][0]["status"] == "there already");
  refused("tune --shard zigzag -H 2 -S 256 -D 32" + with(folder), 2, "--ranks");
  refused("tune --carry both" + ring + with(folder), 2, "carries its state itself");
  refused("tune --ranks 0 -H 2 -S 256 -D 32" + with(folder), 2, "ranks");
  refused("tune --ranks 2 --model llama-3-8b" + with(folder), 2, "ranks");
}

TEST_CASE("the kernels of a batch are tuned by its requests") {
  const test::ScratchFolder folder;
  const std::string batch = " --requests '1/300 x 4' -H 4 --kv-heads 2 -D 64 --pattern causal";
  const base::Json tuned = json_of("tune --json" + batch + with(folder));
  REQUIRE(tuned["results"].size() == 1);
  const base::Json few = tuned["results"][0];
  CHECK(few["status"] == "tuned");
  const base::Json run = json_of("run --json" + batch + with(folder));
  CHECK(run["within_tolerance"] == true);
  CHECK(run["config"] == few["config"]);
  const Outcome again = annulus_with("tune" + batch + with(folder));
  CHECK(again.code == 0);
  CHECK(again.out.find("requests of few queries") != std::string::npos);
  CHECK(again.out.find("there already") != std::string::npos);
  const base::Json list = json_of("tuned list --json --tuned " + (folder / "tuned"));
  REQUIRE(list["entries"].size() == 1);
  refused("tune --seq 5" + batch + with(folder), 2, "--requests");
  const Outcome idle = annulus_with("tune --requests '0/300 x 4, 5/0'" + with(folder));
  CHECK(idle.code == 2);
  CHECK(idle.err.find("nothing to tune") != std::string::npos);
  refused("tune --ranks 2" + batch + with(folder), 2, "--requests");
}

TEST_CASE("batches of a file of shapes are tuned as one that is typed is") {
  const test::ScratchFolder folder;
  const std::string path = folder / "shapes";
  const std::string typed =
      "--heads 4 --kv-heads 2 --dim 64 --pattern causal --requests \"1/300 x 4\"";
  const std::string bounds =
      "--heads 4 --kv-heads 2 --dim 64 --pattern causal --most-requests 4 --most-queries 600 "
      "--most-queries-of-one 200 --most-keys-of-one 400 --page 0";
  std::ofstream(path) << typed << '\n' << bounds << '\n';
  const std::string tune = "tune --json --shapes " + path + with(folder);
  const Outcome partial = annulus_with(tune + " --time-limit 0.01s");
  CHECK(partial.code == 3);
  const base::Json json = json_of(tune + " --keep-journal");
  REQUIRE(json["results"].size() == 3);
  const base::Json& first = json["results"][0];
  CHECK(first["batch"]["requests"] == 4);
  CHECK(first["batch"]["most"]["keys_of_one"] == 300);
  CHECK(first["shape"].get<std::string>().find("few queries") != std::string::npos);
  for (const base::Json& result : json["results"]) {
    CHECK(result["status"] == "tuned");
    CHECK(std::filesystem::exists(result["path"].get<std::string>()));
  }
  CHECK(json["results"][1]["shape"].get<std::string>().find("few queries") != std::string::npos);
  CHECK(json["results"][2]["shape"].get<std::string>().find("many queries") != std::string::npos);
  CHECK(json["results"][2]["batch"]["requests"] == 0);
  CHECK(json["results"][2]["batch"]["most"]["queries"] == 600);
  // The results of the file's batches also serve a batch on the command line.
  CHECK(json_of("tune --json " + typed + with(folder))["results"][0]["status"] == "there already");
  const Outcome again = annulus_with("tune " + bounds + with(folder));
  CHECK(again.code == 0);
  CHECK(again.out.find("up to 4 requests of up to 600 queries together") != std::string::npos);
  const std::string page = folder / "report.html";
  CHECK(json_of("tune report --json -o " + page + " --tuned " + (folder / "tuned"))["searches"] ==
        3);
  const base::Json warmed =
      json_of("warm --json --shapes " + path + " --device sim:sm_80 --into " + (folder / "k"));
  CHECK(warmed["failures"].empty());
  CHECK(warmed["kernels"] >= 3);
  // Requests together with bounds are the step that is measured.
  const base::Json step =
      json_of("tune --dry-run --force --json --requests '150/300' " + bounds + with(folder));
  REQUIRE(step["results"].size() == 1);
  CHECK(step["results"][0]["shape"].get<std::string>().find("many queries") != std::string::npos);
  for (const auto& [line, part] :
       {std::pair("--heads 2 --dim 64 --most-requests 4", "--most-keys-of-one"),
        std::pair("--heads 2 --dim 64 --most-keys-of-one 4", "--most-requests"),
        std::pair("--heads 2 --dim 64 --page 16", "--requests"),
        std::pair("--dim 64 --most-requests 0 --most-keys-of-one 4",
                  "--most-requests: Value 0 not in range 1 to 65535"),
        std::pair("--dim 64 --requests 1/4 --most-requests 0 --most-keys-of-one 4", "Value 0"),
        std::pair("--dim 64 --most-requests 4 --most-keys-of-one 4 --row-limits=7",
                  "row-limits was given a disallowed flag override"),
        std::pair("--dim 64 --max-multiprocessors -1", "Value -1 not in range 0 to 2147483647"),
        std::pair("--dim 64 --kv-splits -1", "Value -1 not in range 0 to 2147483647"),
        std::pair("--dim 64 --count -1", "Value -1 not in range 0 to 9223372036854775807"),
        std::pair("--seq 9 --dim 64 --most-requests 4 --most-keys-of-one 4",
                  "--seq does not go with --most-requests"),
        std::pair("--dim 64 --most-requests 4 --most-keys-of-one 4 --interleave 16",
                  "BLOCK/RANKS/RANK")}) {
    CAPTURE(line);
    std::ofstream(path) << line << '\n';
    refused("tune --shapes " + path + with(folder), 5, part);
  }
}

TEST_CASE("tuned why and tuned verify answer for batches and selections") {
  const test::ScratchFolder folder;
  const std::string batch =
      " -H 4 --kv-heads 2 -D 64 -p causal --page 16 --most-requests 4 --most-queries 600 "
      "--most-queries-of-one 200 --most-keys-of-one 400";
  const base::Json tuned = json_of("tune --json" + batch + with(folder))["results"];
  REQUIRE(tuned.size() == 2);
  const base::Json why = json_of("tuned why --json" + batch + with(folder));
  CHECK(why["config"] ==
        tuned[0]["config"].get<std::string>() + ", " + tuned[1]["config"].get<std::string>());
  CHECK(why["shape"] ==
        tuned[0]["shape"].get<std::string>() + "; " + tuned[1]["shape"].get<std::string>());
  REQUIRE(why["notes"].size() == 2);
  for (const base::Json& note : why["notes"]) CHECK(note["verdict"] == "used");
  // The requests of a step have separate bounds, which may be near those of the result.
  const Outcome near = annulus_with(
      "tuned why --requests '1/300 x 4' -H 4 --kv-heads 2 -D 64 -p "
      "causal" +
      with(folder));
  CHECK(near.code == 0);
  CHECK(near.out.find("half powers of two away") != std::string::npos);
  const Outcome verified = annulus_with("tuned verify --measure 2" + with(folder));
  CHECK(verified.code == 0);
  CHECK(verified.out.find("entries    2 holds") != std::string::npos);
  const base::Json selected = json_of(
      "tuned why --json -H 2 -S 700 -D 32 -p causal --max-blocks 4 --selected-blocks "
      "64x64" +
      with(folder));
  CHECK(selected["shape"].get<std::string>().find("chosen blocks of 64 x 64") != std::string::npos);
  REQUIRE(selected["notes"].size() == 2);
  CHECK(selected["notes"][0]["verdict"] == "not used");
  refused("tuned why --max-blocks 4" + batch + with(folder), 2, "--max-blocks does not go with");
  refused("tuned why --selected-blocks 64x64 -D 32" + with(folder), 2, "--max-blocks");
  refused("tuned why --max-blocks 4 --selected-blocks 64xa -D 32" + with(folder), 2,
          "--selected-blocks");
}

// The output that a command writes to standard error on a terminal with `columns` columns.
std::string on_terminal(unsigned short columns, const std::string& words) {
  const struct winsize size = {24, columns, 0, 0};
  int master = -1, slave = -1;
  char name[64] = {};
  REQUIRE(openpty(&master, &slave, name, nullptr, &size) == 0);
  std::string text;
  std::thread reader([&] {
    char bytes[4096];
    for (ssize_t count; (count = ::read(master, bytes, sizeof(bytes))) > 0;) {
      text.append(bytes, static_cast<std::size_t>(count));
    }
  });
  const int status = std::system((words + " >/dev/null 2>" + name + " </dev/null").c_str());
  close(slave);  // the last descriptor, so the reader ends
  reader.join();
  close(master);
  CHECK(WIFEXITED(status));
  return text;
}

TEST_CASE("the line of progress is renewed in place, however narrow the terminal is") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string tune =
      std::string(ANNULUS_PROGRAM) +
      " tune --force --exhaustive --cache-dir none --time-limit 3s -H 2 -S 300 "
      "-D 32" +
      with(folder);
  for (const unsigned short columns : {80, 40}) {
    const std::string text = on_terminal(columns, tune);
    CAPTURE(text);
    std::size_t lines = 0;
    for (std::size_t begin = text.find('\r'); begin != text.npos; ++lines) {
      const std::size_t end = std::min(text.find('\r', begin + 1), text.size());
      std::string line = text.substr(begin + 1, end - begin - 1);
      if (line.starts_with("\x1b[K")) line.erase(0, 3);
      CHECK(line.size() < columns);
      begin = text.find('\r', begin + 1);
    }
    CHECK(lines > 2);
    CHECK(text.find("tried") != text.npos);
    // A terminal of 80 columns shows the remaining time, which is within the limit.
    const std::size_t most = text.find(", at most ");
    CHECK((most != text.npos) == (columns == 80));
    if (most != text.npos) CHECK(std::stoi(text.substr(most + 10)) <= 3);
  }
}

TEST_CASE("damaged entries are named once and cost nothing else") {
  const test::ScratchFolder folder;
  const base::Json json =
      json_of("tune --json --time-limit 1s" + std::string(kShape) + " --dry-run" + with(folder));
  CHECK(json["results"][0]["status"] == "planned");
  CHECK_FALSE(std::filesystem::exists(folder / "tuned"));
  const Outcome none = annulus_with("tuned list --tuned " + (folder / "tuned"));
  CHECK(none.code == 0);
  CHECK(none.out.find("nothing is tuned in " + (folder / "tuned")) != std::string::npos);

  const base::Json found = json_of("tune --json" + std::string(kShape) + with(folder));
  const std::string path = found["results"][0]["path"].get<std::string>();
  std::ofstream(path, std::ios::app) << "x";
  const Outcome run = annulus_with("run --json --no-check" + std::string(kShape) + with(folder));
  CHECK(run.code == 0);
  CHECK(base::parse_json(run.out, "run")["tuned"] == "");
  CHECK(run.err ==
        "annulus: the tuned result '" + path + "' is not used: its digest does not agree\n");
  const Outcome list = annulus_with("tuned list --tuned " + (folder / "tuned"));
  CHECK(list.code == 0);
  CHECK(list.out.find("digest does not agree") != std::string::npos);
  // Tuning replaces the damaged result.
  CHECK(json_of("tune --json" + std::string(kShape) + with(folder))["results"][0]["status"] ==
        "tuned");
  CHECK(annulus_with("run --json --no-check" + std::string(kShape) + with(folder)).err.empty());
}

TEST_CASE("shapes come from a file or a preset") {
  const test::ScratchFolder folder;
  const std::string path = folder / "shapes";
  std::ofstream(path) << "# two of them\n\n  --heads 2 --seq 100 --dim 32\r\n"
                         "--seq 1 --seq-k 500 --dim 64 --pattern \"causal & window(99, 0)\" "
                         "--carry both --dtype fp16\n";
  const base::Json json = json_of("tune --dry-run --json --shapes " + path + with(folder));
  REQUIRE(json["results"].size() == 2);
  CHECK(json["results"][0]["problem"]["heads"] == 2);
  CHECK(json["results"][1]["problem"]["pattern"] == "causal & window(99, 0)");
  CHECK(json["results"][1]["problem"]["dtype"] == "fp16");
  CHECK(json["results"][1]["carry_out"] == true);
  CHECK(json["results"][1]["status"] == "planned");
  for (const char* preset : {"small", "common"}) {
    CHECK(json_of("tune --dry-run --json --shapes " + std::string(preset) + with(folder))["results"]
              .size() >= 6);
  }
  const auto wrong = [&](const std::string& text, const std::string& part) {
    std::ofstream(path) << text;
    refused("tune --dry-run --shapes " + path + with(folder), 5, part);
  };
  wrong("", "holds no shape");
  wrong("# nothing\n", "holds no shape");
  wrong("--seq 10 --dim 32\n--seq ten\n", "line 2");
  wrong("--dim 80 --seq 10\n", "line 1: no kernel has head dims 80/80");
  wrong("\n\n--pattern 'causal('\n", "line 3");
  wrong("--help\n", "line 1");
  wrong("--input x --seq 10\n", "--input");
  wrong("--seq 10 --dim 32 --pattern 'causal\n", "line 1: the quote ' of column 29 does not end");
  wrong("--seq 10 --pattern=\"causal\" --pattern \"causal\"& --dim 32\n",
        "line 1: column 47 follows the quotes of column 39");
  wrong("--count -5 --seq 10 --dim 32\n", "line 1: --count");
  wrong("rm -rf\n", "line 1");
  wrong(std::string(9 << 20, '\n'), "larger than");
  wrong(std::string("\0\xff\n", 3), "line 1: column 1 has a zero byte");
  wrong(std::string("--seq 64\0 --dim 32\n", 19), "line 1: column 9 has a zero byte");
  for (const char* option : {"--shapes", "--model", "--replay"}) {
    refused(std::string("tune --dry-run ") + option + " ''" + with(folder), 2,
            "an empty word is not a name");
  }
  refused("tune --shapes " + (folder / "nowhere") + with(folder), 5, "nowhere");
}

TEST_CASE("what was planned is tuned and compiled ahead, the most frequent first") {
  const test::ScratchFolder folder;
  const std::string log = folder / "a log";
  const std::string run = "run --no-check --dim 32 --shape-log '" + log + "'" + with(folder);
  for (int i = 0; i < 3; ++i) {
    CHECK(annulus_with(run + " --heads 2 --seq 90 --pattern 'causal & window(9,0)'").code == 0);
  }
  CHECK(annulus_with(run + " --heads 1 --seq 70").code == 0);
  CHECK(annulus_with(run + " --heads 1 --seq 70 --pattern 'sum(causal, window(3, 3))'").code == 0);
  CHECK(annulus_with(run + " --heads 1 --seq 60 --config 'mma m64 n64 w4 s2 q'").code == 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(annulus_with(run + " --heads 2 --requests '1/70 x 2, 3/9' --page 8").code == 0);
  }
  const std::string text = test::read(log);
  CAPTURE(text);
  CHECK(text.find("--count 3 --heads 2 --seq 90 --dim 32 --pattern \"causal & window(9, 0)\"\n") !=
        text.npos);
  CHECK(text.find("--count 1 --heads 1 --seq 70 --dim 32 --pattern \"dense\"\n") != text.npos);
  const Outcome planned =
      annulus_with("tune --dry-run --json --shapes '" + log + "'" + with(folder));
  CHECK(planned.code == 0);
  CHECK(planned.err.find("plans with a configuration from the caller: 1") != planned.err.npos);
  const base::Json results = base::parse_json(planned.out, "the program's output")["results"];
  REQUIRE(results.size() == 4);
  CHECK(results[0]["problem"]["seq_q"] == 90);
  CHECK(results[1]["batch"]["most"]["keys_of_one"] == 70);
  CHECK(results[1]["batch"]["page_rows"] == 8);
  CHECK(results[2]["problem"]["seq_q"] == 70);
  CHECK(results[3]["problem"]["pattern"] == "sum(causal, window(3, 3))");
  const base::Json warmed =
      json_of("warm --json --shapes '" + log + "' --device sim:sm_80 --into " + (folder / "k"));
  CHECK(warmed["kernels"] >= 4);
  CHECK(warmed["failures"].empty());
  // A file of another kind is not changed, and the program still works.
  std::ofstream(folder / "notes") << "of mine\n";
  const Outcome other = annulus_with("run --no-check --dim 32 --heads 1 --seq 70 --shape-log " +
                                     (folder / "notes") + with(folder));
  CHECK(other.code == 0);
  CHECK(other.err.find("is not a log of shapes") != other.err.npos);
  CHECK(test::read(folder / "notes") == "of mine\n");
}

TEST_CASE("counts order the shapes of a file") {
  const test::ScratchFolder folder;
  const std::string path = folder / "shapes";
  std::ofstream(path) << "--heads 1 --seq 10 --dim 32\n"
                         "--count 3 --heads 2 --seq 10 --dim 32\n"
                         "--heads 5 --requests \"1/70 x 3\" --dim 32 --count 9\n"
                         "--heads 3 --seq 10 --dim 32 --count 70\n"
                         "--heads 4 --seq 10 --dim 32\n";
  const base::Json json = json_of("tune --dry-run --json --shapes " + path + with(folder));
  std::vector<int> heads;
  for (const base::Json& each : json["results"]) {
    heads.push_back((each.contains("batch") ? each["batch"] : each["problem"])["heads"]);
  }
  CHECK(heads == std::vector{3, 5, 2, 1, 4});
  std::ofstream(path) << "--requests \"1/70 x 3\" --dim 32 --config \"decode m16 n64 w4 s2\"\n";
  refused("tune --dry-run --shapes " + path + with(folder), 5, "no line that can be tuned");
}

TEST_CASE("shapes come from a model by its name") {
  const test::ScratchFolder folder;
  const base::Json models = json_of("tune --models --json")["models"];
  CHECK(models.size() >= 30);
  CHECK(annulus_with("tune --models").out.find("llama-3-8b ") != std::string::npos);
  const base::Json json = json_of(
      "tune --dry-run --json --model gemma-2-2b --device sim:sm_80 "
      "--tuned " +
      (folder / "tuned"));
  for (const base::Json& model : models) {
    if (model["name"] == "gemma-2-2b") CHECK(json["results"].size() == model["shapes"]);
  }
  CHECK(json["results"][0]["problem"]["heads"] == 8);
  CHECK(json["results"][0]["problem"]["softcap"] == 50);
  refused("tune --model llama-9 --dry-run" + with(folder), 2, "annulus tune --models lists");
  refused("tune --model llama-3-8b --seq 10" + with(folder), 2, "--model");
  refused("warm --model llama-9 --into " + (folder / "k"), 2, "annulus tune --models lists");
}

TEST_CASE("a limit and Ctrl-C keep the best, and the exit code says that more was wanted") {
  const test::ScratchFolder folder;
  const std::string two = folder / "two";
  std::ofstream(two) << "--seq 200 --dim 32 --heads 2\n--seq 900 --dim 32 --heads 2\n";
  const Outcome late =
      annulus_with("tune --json --time-limit 0.001s --shapes " + two + with(folder));
  CHECK(late.code == 3);
  const base::Json json = base::parse_json(late.out, "tune");
  CHECK(json["results"][0]["status"] == "partial");
  CHECK(json["results"][1]["status"] == "not begun");

  if (!test::on_simulator()) return;
  // Compiling the whole space takes longer than the delay of the signals. Most of them arrive while
  // NVRTC compiles, which then has its own signal handler.
  const test::ScratchFolder out;
  for (const char* when : {"INT 0.8", "TERM 1.2", "INT 2"}) {
    CAPTURE(when);
    const std::string command =
        std::string("timeout --preserve-status -s ") + when + " " + ANNULUS_PROGRAM +
        " tune --json --exhaustive --force --cache-dir none -S 300 -H 1 -D 64 -p causal" +
        with(folder) + " >" + (out / "json") + " 2>" + (out / "err");
    const int status = std::system(command.c_str());
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 3);
    const base::Json kept = base::parse_json(test::read(out / "json"), "tune");
    const base::Json& result = kept["results"][0];
    CHECK(result["status"] == "partial");
    CHECK(result["tried"] < result["candidates"]);
    CHECK(result["ratio"] <= 1.0);
    // Without a terminal there is at most one line every ten seconds.
    CHECK(test::read(out / "err").find('\r') == std::string::npos);
  }
  // Two signals at once count as one.
  const std::string tune =
      std::string(ANNULUS_PROGRAM) +
      " tune --exhaustive --force --cache-dir none -S 300 -H 1 -D 64 -p causal" + with(folder) +
      " >/dev/null 2>&1 & p=$!; sleep 1; ";
  const int twice = std::system((tune + "kill -INT $p; sleep 0.05; kill -INT $p; wait $p").c_str());
  REQUIRE(WIFEXITED(twice));
  CHECK(WEXITSTATUS(twice) == 3);
}

TEST_CASE("one shape that is wrong or too large costs only itself") {
  const test::ScratchFolder folder;
  const std::string path = folder / "shapes";
  std::ofstream(path) << "--seq 0 --dim 32\n--seq 64 --dim 32 --heads 1\n";
  const Outcome outcome = annulus_with("tune --json --dry-run --shapes " + path + with(folder));
  CHECK(outcome.code == 2);
  const base::Json json = base::parse_json(outcome.out, "tune");
  CHECK(json["results"][0]["status"] == "failed");
  CHECK(outcome.err.find("annulus tune: B1 H8 Hkv8 Sq0 ") != std::string::npos);
  CHECK(outcome.err.find(json["results"][0]["error"].get<std::string>()) != std::string::npos);
  CHECK(json["results"][1]["status"] == "planned");
}

TEST_CASE("what was found before an error that ends a list is told") {
  const test::ScratchFolder folder;
  const std::string shapes = folder / "shapes", of_one = " --dim 32 --heads 1";
  std::ofstream(shapes) << "--seq 64" + of_one + "\n--seq 200" + of_one + "\n--seq 300" + of_one +
                               "\n";
  const base::Json first = json_of("tune --json --seq 64" + of_one + with(folder));
  const std::string path = first["results"][0]["path"].get<std::string>();
  // Results can be read, but not written.
  const std::string lock = path.substr(0, path.rfind('/')) + "/tuned.lock";
  std::filesystem::remove(lock);
  std::filesystem::create_directory(lock);
  const Outcome outcome = annulus_with("tune --json --shapes " + shapes + with(folder));
  CHECK(outcome.code == 5);
  const base::Json json = base::parse_json(outcome.out, "tune");
  REQUIRE(json["results"].size() == 3);
  CHECK(json["results"][0]["path"] == path);
  CHECK(json["results"][1]["status"] == "failed");
  CHECK(json["results"][2]["status"] == "not begun");
  CHECK(outcome.err.find("tuned results cannot be stored") != std::string::npos);
  CHECK(std::ranges::count(outcome.err, '\n') == 1);
}

TEST_CASE("a result that no file took is printed with all of its lines") {
  const test::ScratchFolder folder;
  // The limit is 512 or 1024 bytes per file, depending on the shell's unit.
  const Outcome outcome =
      test::run_command(std::string("sh -c '(ulimit -f 1; \"$0\" \"$@\"; echo code $?) | cat' ") +
                        ANNULUS_PROGRAM + " tune --heads 1 -S 64 --dim 32" + with(folder));
  CHECK(outcome.out.ends_with("code 5\n"));
  CHECK(outcome.err.find("is kept in memory only") != std::string::npos);
  const std::string lead = "write the next ", to = " lines to FOLDER/";
  const std::size_t at = outcome.out.find(lead), name_at = outcome.out.find(to);
  REQUIRE(at != std::string::npos);
  REQUIRE(name_at != std::string::npos);
  int lines = std::stoi(outcome.out.substr(at + lead.size()));
  const std::size_t name_begin = name_at + to.size();
  const std::string name =
      outcome.out.substr(name_begin, outcome.out.find(',', name_begin) - name_begin);
  const std::size_t begin = outcome.out.find('\n', name_begin) + 1;
  std::size_t end = begin;
  for (; lines > 0; --lines) end = outcome.out.find('\n', end) + 1;
  CHECK(outcome.out.substr(end) == "code 5\n");
  const std::string file = folder / ("tuned/" + name);
  std::filesystem::create_directories(file.substr(0, file.rfind('/')));
  std::ofstream(file) << outcome.out.substr(begin, end - begin);
  const base::Json list = json_of("tuned list --json --tuned " + (folder / "tuned"));
  CHECK(list["entries"].size() == 1);
  CHECK(list["ignored"].empty());
}

TEST_CASE("options that are wrong are one line and the exit code of their kind") {
  const test::ScratchFolder folder;
  for (const char* time : {"abc", "0", "-5", "1x", "''", "nan", "inf", "1e99"}) {
    refused("tune --time-limit " + std::string(time) + kShape, 2, "--time-limit");
  }
  refused("tune --carry sideways", 2, "--carry");
  refused("tune --dim 80" + on_device(), 2, "80");
  refused("tune --dry-run --time-limit 10m" + on_device(), 2, "no problem is given");
  refused("tuned", 2, "annulus tuned: no subcommand; use list, show, ");
  refused("tuned fly", 2, "annulus tuned: 'fly' is not a subcommand; use list, show, ");
  refused("tuned export", 2, "annulus tuned export: pack is required");
  refused("tuned show nothing-like-it --tuned " + (folder / "x"), 2, "nothing-like-it");
  std::ofstream(folder / "file") << "x";
  // The error is printed when the folder is read, and when the result cannot be stored.
  const Outcome outcome =
      annulus_with("tune" + std::string(kShape) + " --tuned " + (folder / "file") + on_device());
  CHECK(outcome.code == 5);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find("annulus tune: tuned results cannot be stored: ") != std::string::npos);
  CHECK(outcome.err.find(folder / "file") != std::string::npos);
  // The error comes before the search: in a container without a home, no result could be stored.
  const Outcome homeless =
      test::run_command(std::string("env -u HOME -u XDG_CACHE_HOME -u ANNULUS_TUNED ") +
                        ANNULUS_PROGRAM + " tune --exhaustive" + kShape + on_device());
  CHECK(homeless.code == 5);
  CHECK(homeless.err.find("neither HOME nor XDG_CACHE_HOME is set") != std::string::npos);
  CHECK(annulus_with("tune --help").out.find("--time-limit") != std::string::npos);
  CHECK(annulus_with("tuned --help").out.find("list") != std::string::npos);
}

// The option --kills N sets the number of programs that are killed.
TEST_CASE("a search whose program is killed goes on where it was, and decides as an unbroken one") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string shape = " -H 1 -S 90 -D 32 -p causal", journal = " --force --keep-journal";
  const base::Json whole = json_of("tune --json" + journal + shape + " --tuned " +
                                   (folder / "whole") + on_device())["results"][0];
  const int kills = test::options().kills > 0 ? test::options().kills : 8;
  base::Random random(test::options().seed);
  // The kernels are already compiled, so a search takes about a second.
  int killed = 0, ended = 0, resumed = 0, damaged = 0;
  while (killed < kills) {
    const std::string seconds = std::to_string(0.02 + 0.3 * random.uniform());
    const Outcome run =
        test::run_command("timeout -s KILL " + seconds + " " + ANNULUS_PROGRAM +
                          " tune --json --sim-threads 1" + journal + shape + with(folder));
    damaged += run.err.find("journal") != std::string::npos;
    if (run.code == 137) {
      ++killed;
      continue;
    }
    REQUIRE(run.code == 0);
    ++ended;
    const base::Json result = base::parse_json(run.out, "tune")["results"][0];
    resumed += result["resumed"].get<int>();
    CHECK(result["config"] == whole["config"]);
    CHECK(result["ratio"] == whole["ratio"]);
    CHECK(result["tried"] == whole["tried"]);
    const base::Json again =
        json_of("tune --json --replay " + result["journal"].get<std::string>());
    CHECK(again["config"] == whole["config"]);
    CHECK(again["status"] == "tuned");
  }
  MESSAGE(killed << " killed, " << ended << " ended, " << resumed << " candidates resumed, "
                 << damaged << " journals damaged");
  CHECK(damaged == 0);
}

// The option --kills N sets the number of programs that are killed.
TEST_CASE("a program killed while it tunes leaves no entry that is damaged") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string path = folder / "shapes";
  std::ofstream shapes(path);
  for (int i = 0; i < 40; ++i) shapes << "--heads 1 --dim 32 --seq " << 20 + 7 * i << "\n";
  shapes.close();
  // The kernels are compiled once, so most of the time is spent near storing results.
  const std::string tune = std::string(ANNULUS_PROGRAM) + " tune --force --shapes " + path +
                           " --sim-threads 1" + with(folder) + " >/dev/null 2>&1";
  const int kills = test::options().kills > 0 ? test::options().kills : 5;
  base::Random random(test::options().seed);
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    const double seconds = 0.05 + 1.2 * random.uniform();
    const int status =
        std::system(("timeout -s KILL " + std::to_string(seconds) + " " + tune).c_str());
    killed += !WIFEXITED(status) || WEXITSTATUS(status) == 137;
  }
  const base::Json list = json_of("tuned list --json --tuned " + (folder / "tuned"));
  MESSAGE(killed << " of " << kills << " killed, " << list["entries"].size() << " entries, "
                 << list["ignored"].size() << " damaged");
  CHECK(killed == kills);
  CHECK(list["ignored"].empty());
}

}  // namespace
