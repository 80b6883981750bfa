// Help and errors as a user sees them.

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "program/run_program.h"

namespace {

using namespace annulus;
using test::annulus_with;
using test::Outcome;
using test::refused;
using Words = std::set<std::string>;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> examples_of(const std::string& verb) {
  std::vector<std::string> examples;
  bool inside = false;
  for (const std::string& line : lines_of(annulus_with("help " + verb).out)) {
    if (!line.starts_with("  ")) inside = line == "Examples:";
    if (inside && line.starts_with("  annulus ")) examples.push_back(line.substr(2));
  }
  return examples;
}

// The verbs below `verb` in its help, and the verbs below these: "run", "tune", "tune report",
// "tuned list" and so on. A verb that does nothing without a subcommand has no example.
std::vector<std::string> verbs_below(const std::string& verb = {}) {
  std::vector<std::string> verbs;
  bool inside = false;
  for (const std::string& line : lines_of(annulus_with("help " + verb).out)) {
    if (!line.starts_with("  ")) inside = line == "Subcommands:";
    if (!inside || line.size() < 3 || !line.starts_with("  ") || line[2] == ' ') continue;
    const std::string name =
        (verb.empty() ? "" : verb + " ") + line.substr(2, line.find(' ', 2) - 2);
    const std::vector<std::string> below = verbs_below(name);
    verbs.insert(verbs.end(), below.begin(), below.end());
    if (below.empty() || !examples_of(name).empty()) verbs.push_back(name);
  }
  return verbs;
}

TEST_CASE("help says of each verb what --help says") {
  const std::vector<std::string> verbs = verbs_below();
  CHECK(verbs.size() > 15);
  for (const std::string& verb : verbs) {
    CAPTURE(verb);
    const Outcome outcome = annulus_with("help " + verb);
    CHECK(outcome.code == 0);
    CHECK(outcome.out == annulus_with(verb + " --help").out);
    CHECK(outcome.out.find("Usage: annulus " + verb + " [OPTIONS]") != std::string::npos);
  }
  CHECK(annulus_with("help").out == annulus_with("--help").out);
  CHECK(annulus_with("help pattern").out == annulus_with("pattern --help").out);
  refused("help fly", 2, "annulus has no verb 'fly'; there are run, ");
  refused("help pattern fly", 2, "annulus pattern has no verb 'fly'; there are list, ");
  refused("help run --as man", 2, "--as man describes the whole program");
  refused("help run run", 2, "annulus run has no verb 'run'");
}

// The long names of the options that the help of a verb lists.
std::set<std::string> options_of(const std::string& verb) {
  std::set<std::string> options;
  const std::regex line_of_option("^  (-[^ ]+).*");
  for (const std::string& line : lines_of(annulus_with("help " + verb).out)) {
    std::smatch found;
    if (!std::regex_match(line, found, line_of_option)) continue;
    std::istringstream names(found[1].str());
    for (std::string name; std::getline(names, name, ',');) {
      if (name.starts_with("--")) options.insert(name);
    }
  }
  return options;
}

TEST_CASE("the man page has every verb with all its options, and roff takes it") {
  const test::ScratchFolder folder;
  const std::string path = folder / "annulus.1";
  const Outcome written = annulus_with("help --as man");
  REQUIRE(written.code == 0);
  std::ofstream(path) << written.out;
  const std::string page = std::regex_replace(written.out, std::regex("\\\\-"), "-");
  for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "VERBS",
                              "\"EXIT STATUS\"", "ENVIRONMENT", "FILES"}) {
    CHECK(page.find(std::string("\n.SH ") + section + "\n") != std::string::npos);
  }
  for (const std::string& verb : verbs_below()) {
    CAPTURE(verb);
    const std::size_t start = page.find("\n.SS \"annulus " + verb + " [OPTIONS]");
    REQUIRE(start != std::string::npos);
    const std::string section = page.substr(start, page.find("\n.S", start + 1) - start);
    for (const std::string& option : options_of(verb)) {
      CAPTURE(option);
      CHECK(std::regex_search(section, std::regex("\n\\\\fB([^\n]*, )?" + option + "[,\\\\]")));
    }
    for (const std::string& example : examples_of(verb)) {
      CHECK(section.find("    " + example + "\n") != std::string::npos);
    }
  }
  // docs/embedding.md must list the same variables that the page explains.
  std::set<std::string> variables;
  for (const std::string& line : lines_of(test::read(ANNULUS_TEMPLATES "/../docs/embedding.md"))) {
    if (line.starts_with("| `ANNULUS_")) variables.insert(line.substr(3, line.find('`', 3) - 3));
  }
  CHECK(variables.size() > 5);
  const std::string environment = page.substr(page.find("\n.SH ENVIRONMENT"));
  for (const std::string& variable : variables) {
    CAPTURE(variable);
    CHECK(environment.find("\\fB" + variable + "\\fR") != std::string::npos);
  }
  if (test::run_command("groff --version").code != 0) return;
  const Outcome outcome = test::run_command("groff -man -Tutf8 -ww " + path);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("--kv-heads") != std::string::npos);
}

TEST_CASE("the completion for bash offers what the parser takes") {
  if (test::run_command("bash --version").code != 0) return;
  const test::ScratchFolder folder;
  const std::string path = folder / "annulus";
  std::ofstream(path) << annulus_with("help --as bash").out;
  if (test::run_command("shellcheck --version").code == 0) {
    const Outcome checked = test::run_command("shellcheck -s bash " + path);
    CHECK_MESSAGE(checked.out.empty(), checked.out);
  }
  // The completions for the last of these words.
  const auto offered = [&](const std::string& words) {
    std::ofstream(folder / "ask") << "source " << path << "\nCOMP_WORDS=(annulus " << words
                                  << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_annulus\n"
                                  << "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    const Outcome outcome = test::run_command("cd " + folder.path() + " && bash ask");
    CHECK_MESSAGE(outcome.err.empty(), outcome.err);
    const std::vector<std::string> lines = lines_of(outcome.out);
    std::set<std::string> found(lines.begin(), lines.end());
    found.erase("");
    return found;
  };
  for (const std::string& verb : verbs_below()) {
    CAPTURE(verb);
    // The verb `help` has its own options, not the options of the verb that is its argument.
    CHECK(offered(verb + " --") == options_of(verb));
  }
  CHECK(offered("--") == options_of(""));
  CHECK(offered("tu") == Words{"tune", "tuned"});
  CHECK(offered("help pattern dr") == Words{"draw"});
  CHECK(offered("tuned ''") == Words{"list", "show", "export", "import", "merge", "diff", "verify",
                                     "prune", "remove", "why"});
  CHECK(offered("run --mode ''") == Words{"checked", "fast"});
  CHECK(offered("run -S 64 --mode = ch") == Words{"checked"});
  CHECK(offered("run --mode =") == Words{"checked", "fast"});
  CHECK(offered("pattern export --to f") == Words{"flex", "flashinfer"});
  CHECK(offered("explain --device s") == Words{"sim:sm_80", "sim:sm_90a"});
  // The shell splits a word at ':', so only the part after it is completed.
  CHECK(offered("explain --device sim : sm_8") == Words{"sm_80"});
  CHECK(offered("run --seq 1").empty());
  std::filesystem::create_directory(folder / "below");
  CHECK(offered("run --templates be") == Words{"below"});
  CHECK(offered("run --output ''").empty());  // the shell itself completes files
}

// Checks that completions for zsh and fish share. `offered` returns the completions of a command
// line.
void check_offers(const std::function<Words(const std::string& line)>& offered) {
  for (const std::string& verb : verbs_below()) {
    CAPTURE(verb);
    CHECK(offered(verb + " --") == options_of(verb));
  }
  CHECK(offered("--") == options_of(""));
  CHECK(offered("tu") == Words{"tune", "tuned"});
  CHECK(offered("tune r") == Words{"report"});
  CHECK(offered("help pattern dr") == Words{"draw"});
  CHECK(offered("tuned ex") == Words{"export"});
  CHECK(offered("run --mode ") == Words{"checked", "fast"});
  CHECK(offered("pattern export --to f") == Words{"flex", "flashinfer"});
  CHECK(offered("explain --device s") == Words{"sim:sm_80", "sim:sm_90a"});
  CHECK(offered("run --seq ").empty());
}

TEST_CASE("the completion for zsh offers what the parser takes") {
  if (test::run_command("zsh --version").code != 0) return;
  const test::ScratchFolder folder;
  const std::string path = folder / "_annulus";
  std::ofstream(path) << annulus_with("help --as zsh").out;
  CHECK(test::run_command("zsh -n " + path).code == 0);
  // Replacements of the shell's functions that are called. They print what they would offer.
  const auto offered = [&](const std::string& line) {
    std::ofstream(folder / "ask")
        << "_describe() { local each; for each in ${(P)argv[-1]}; do print -r -- ${each%%:*}; done "
           "}\n_files() { print -r -- FILES $* }\ncompadd() { shift; print -rl -- $* }\n"
           "compset() { PREFIX=${PREFIX#*=} }\ncompdef() { _annulus }\n"
        << "words=(annulus \"${(@s: :)1}\")\nCURRENT=$#words\nPREFIX=$words[CURRENT]\nsource "
        << path << "\nprint -r -- \"PREFIX $PREFIX\"\n";
    const Outcome outcome = test::run_command("zsh -f " + (folder / "ask") + " '" + line + "'");
    CHECK_MESSAGE(outcome.err.empty(), outcome.err);
    std::vector<std::string> lines = lines_of(outcome.out);
    REQUIRE_FALSE(lines.empty());
    const std::string prefix = lines.back().substr(std::string("PREFIX ").size());
    lines.pop_back();
    Words found;
    for (const std::string& each : lines) {
      if (each.starts_with(prefix) && (prefix != "--" || each.starts_with("--"))) {
        found.insert(each);
      } else if (each.starts_with("FILES")) {
        found.insert(each);
      }
    }
    return found;
  };
  check_offers(offered);
  CHECK(offered("run --mode=ch") == Words{"checked"});
  CHECK(offered("run --templates ") == Words{"FILES -/"});
  CHECK(offered("run --output ") == Words{"FILES"});
  CHECK(offered("tuned import ") == Words{"FILES"});
  CHECK(offered("run -") != options_of("run"));  // it lists short options too
}

TEST_CASE("the completion for fish offers what the parser takes") {
  if (test::run_command("fish --version").code != 0) return;
  const test::ScratchFolder folder;
  const std::string path = folder / "annulus.fish";
  std::ofstream(path) << annulus_with("help --as fish").out;
  CHECK(test::run_command("fish --no-execute " + path).code == 0);
  const auto offered = [&](const std::string& line) {
    const Outcome outcome = test::run_command("cd " + folder.path() + " && HOME=" + folder.path() +
                                              " fish --no-config -c 'source " + path +
                                              "; complete -C \"annulus " + line + "\"'");
    CHECK_MESSAGE(outcome.err.empty(), outcome.err);
    Words found;
    for (const std::string& each : lines_of(outcome.out))
      found.insert(each.substr(0, each.find('\t')));
    return found;
  };
  check_offers(offered);
  CHECK(offered("run --mode=ch") == Words{"--mode=checked"});
  std::filesystem::create_directory(folder / "below");
  CHECK(offered("run --templates be") == Words{"below/"});
  CHECK(offered("run --output ann") == Words{"annulus.fish"});
  CHECK(offered("tuned import ann") == Words{"annulus.fish"});
}

// The program must accept the words of each example, without a usage error and without a defect.
TEST_CASE("examples of help are command lines that work") {
  const test::ScratchFolder folder;
  for (const std::string& verb : verbs_below()) {
    const std::vector<std::string> examples = examples_of(verb);
    CAPTURE(verb);
    CHECK_FALSE(examples.empty());
    for (const std::string& example : examples) {
      CAPTURE(example);
      REQUIRE(example.starts_with("annulus " + verb));
      // Tuning and compiling for ten minutes is left out.
      const bool planned = verb == "tune" && example.find("--dry-run") == std::string::npos;
      if (verb == "warm") continue;
      const Outcome outcome = test::run_command(
          "cd " + folder.path() + " && ANNULUS_TUNED=" + (folder / "tuned") + " " +
          std::string(ANNULUS_PROGRAM) + example.substr(std::string("annulus").size()) +
          (planned ? " --dry-run" : ""));
      // The folder lacks the files that the examples read, and has nothing to remove.
      if (outcome.code == 2) {
        const std::string none =
            verb == "tuned export" ? ": there is no tuned result" : ": 0 tuned results have";
        CHECK_MESSAGE(outcome.err.find(none) != std::string::npos, outcome.err);
        continue;
      }
      // `tuned verify` finds nothing to compare.
      const int expected = verb == "tuned verify" ? 3 : 0;
      CHECK_MESSAGE((outcome.code == expected || outcome.code == 5), outcome.err);
    }
  }
}

TEST_CASE("help says what numbers are where they are not given") {
  const std::regex number("^ +(-[^ ]+) (INT|UINT|FLOAT)\\b.*");
  for (const std::string& verb : verbs_below()) {
    const std::vector<std::string> lines = lines_of(annulus_with("help " + verb).out);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!std::regex_match(lines[i], number)) continue;
      // The help of a long option is on the next line.
      const std::string said = lines[i] + (i + 1 < lines.size() ? lines[i + 1] : "");
      CAPTURE(verb);
      CAPTURE(said);
      CHECK((said.find("default: ") != std::string::npos ||
             said.find("unless") != std::string::npos));
    }
  }
}

TEST_CASE("an error of a text shows the place in it") {
  const auto shown = [](const std::string& arguments) {
    const Outcome outcome = annulus_with(arguments);
    CHECK(outcome.code == 2);
    return outcome.err.substr(outcome.err.find('\n') + 1);
  };
  CHECK(shown("explain -p 'causal & windw(3, 4)'") == "  causal & windw(3, 4)\n           ^\n");
  CHECK(shown("pattern stats -p 'causal &'") == "  causal &\n          ^\n");
  CHECK(shown("run --requests '1/2; 3/4'") == "  1/2; 3/4\n     ^\n");
  CHECK(shown("explain --score 'softcp(3)'") == "  softcp(3)\n  ^\n");
  const test::ScratchFolder folder;
  std::ofstream(folder / "pattern") << "causal\n& windw(3, 4)";
  CHECK(shown("explain -p @" + (folder / "pattern")) == "  causal & windw(3, 4)\n           ^\n");
  // A long pattern is cut on both sides, and the caret is below the place.
  std::string starts = "0";
  for (int i = 1; i < 20000; ++i) starts += "," + std::to_string(i) + (i == 9000 ? "x" : "");
  std::ofstream(folder / "long") << "documents([" << starts << "])";
  const std::vector<std::string> lines = lines_of(shown("explain -p @" + (folder / "long")));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("  ... "));
  CHECK(lines[0].ends_with(" ..."));
  CHECK(lines[0].size() < 84);
  CHECK(lines[0][lines[1].find('^')] == 'x');
  // An error about the whole text has no place.
  CHECK(shown("explain -H 3 --kv-heads 2").empty());
}

TEST_CASE("with --json an error is an object as well") {
  refused("explain --json -p windw", 2, "column 1");
  refused("pattern --json", 2, "'--json' is not a subcommand");
  refused("fly --json", 2, "'fly' is not a verb");
  refused("run --json --no-such", 2, "--no-such");
  refused("pattern draw --json -i no/such/file", 5, "cannot open");
  refused("run --json -S 64 -H 1 -D 64 --processes --ranks 2 --device sim:sm_80:99", 4, "");
  const Outcome outcome = annulus_with("pattern draw --json -i no/such/file");
  CHECK(base::parse_json(outcome.out, "the error")["error"]["code"] == "file error");
}

}  // namespace
