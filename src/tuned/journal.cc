#include "tuned/journal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "base/hash.h"
#include "tuned/config_families.h"

namespace annulus::tuned {
namespace {

using attention::KernelConfig;
using base::Json;

constexpr std::string_view kJournalMagic = "annulus-journal ";
constexpr std::size_t kMaxMeasured = 64;    // the most configurations in one line
constexpr std::size_t kMaxRounds = 10'000;  // the most rounds in one line
// The first line has the names of up to a few hundred candidates, and nothing is deeply nested.
constexpr base::JsonLimits kLineLimits{.bytes = 16u << 20, .depth = 8, .keys = 100};

// A reason may quote bytes from elsewhere, such as a driver's message, that are not UTF-8.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string checked(const Json& json) {
  const std::string text = text_of(json);
  return base::digest(text).hex() + ' ' + text + '\n';
}

// The reason why a line, or the text after the magic word of the first line, is damaged. Empty if
// it is not.
std::string why_damaged(std::string_view line) {
  if (line.size() < kDigestDigits + 2 || line[kDigestDigits] != ' ') return "it is too short";
  if (base::digest(line.substr(kDigestDigits + 1)).hex() != line.substr(0, kDigestDigits)) {
    return "its digest does not agree";
  }
  return {};
}

// Parses the object of such a line. Throws Error{kInvalidFile}.
Json read_line(std::string_view line) {
  const std::string damaged = why_damaged(line);
  if (!damaged.empty()) base::fail(ErrorCode::kInvalidFile, "{}", damaged);
  Json json = base::parse_json(line.substr(kDigestDigits + 1), "a line of a journal", kLineLimits);
  if (!json.is_object()) base::fail(ErrorCode::kInvalidFile, "it is not an object");
  return json;
}

const Json& member_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) base::fail(ErrorCode::kInvalidFile, "{} is missing", name);
  return *found;
}

std::string text_in(const Json& json, const char* name) {
  if (!json.is_string()) base::fail(ErrorCode::kInvalidFile, "{} is not a string", name);
  return json.get<std::string>();
}

bool flag_in(const Json& json, const char* name) {
  const Json& found = member_of(json, name);
  if (!found.is_boolean())
    base::fail(ErrorCode::kInvalidFile, "{} is neither true nor false", name);
  return found.get<bool>();
}

const Json& list_in(const Json& json, const char* name, std::size_t most) {
  const Json& found = member_of(json, name);
  if (!found.is_array() || found.empty() || found.size() > most) {
    base::fail(ErrorCode::kInvalidFile, "{} is not a list, or is too long", name);
  }
  return found;
}

// Reads a candidate: its configuration and its prediction, which is null if it is not finite.
Trial candidate_in(const Json& json) {
  if (!json.is_array() || json.size() != 2 || !(json[1].is_number() || json[1].is_null())) {
    base::fail(ErrorCode::kInvalidFile, "a candidate is invalid");
  }
  const std::string text = text_in(json[0], "a candidate");
  const std::optional<KernelConfig> config = parse_any_config(text);
  if (!config) base::fail(ErrorCode::kInvalidFile, "this build does not support '{:.80}'", text);
  const double predicted = json[1].is_null() ? 0 : json[1].get<double>();
  return {.config = *config,
          .predicted = predicted > 0 ? predicted : std::numeric_limits<double>::infinity()};
}

void read_subject(Json json, Journal* journal) {
  // Several times the candidates of any space. The time of a search is quadratic in their number.
  constexpr std::size_t kMaxCandidates = 8192;
  for (const Json& each : list_in(json, "candidates", kMaxCandidates)) {
    journal->trials.push_back(candidate_in(each));
  }
  const std::string standard = text_in(member_of(json, "default"), "default");
  const auto is_default = [&](const Trial& trial) { return to_string(trial.config) == standard; };
  const auto found = std::ranges::find_if(journal->trials, is_default);
  if (found == journal->trials.end()) {
    base::fail(ErrorCode::kInvalidFile, "its default is not one of its candidates");
  }
  journal->default_at = static_cast<std::size_t>(found - journal->trials.begin());
  journal->predicted = flag_in(json, "predicted");
  journal->options.exhaustive = flag_in(json, "exhaustive");
  journal->options.l2 = flag_in(json, "cold_cache") ? CacheState::kCold : CacheState::kWarm;
  const Json& nominated = member_of(json, "nominated");
  if (!nominated.is_array() || nominated.size() > kMaxMeasured) {
    base::fail(ErrorCode::kInvalidFile, "nominated is not a list, or is too long");
  }
  for (const Json& each : nominated) {
    const auto config = parse_any_config(text_in(each, "nominated"));
    if (!config)
      base::fail(ErrorCode::kInvalidFile, "this build does not support a nominated configuration");
    journal->options.nominated.push_back(*config);
  }
  journal->subject = std::move(json);
}

std::vector<double> times_in(const Json& json) {
  if (!json.is_array() || json.empty() || json.size() > kMaxRounds) {
    base::fail(ErrorCode::kInvalidFile, "times are not a list, or are too long");
  }
  std::vector<double> times;
  for (const Json& each : json) {
    const double time = each.is_number() ? each.get<double>() : 0;
    if (!(time > 0) || !std::isfinite(time))
      base::fail(ErrorCode::kInvalidFile, "a time is not a positive number");
    times.push_back(time);
  }
  return times;
}

// Reads an answer that is possible in `journal`, whose first line was read. A search of predictions
// measures one configuration in one round at a time. A search whose default is dropped has no
// answers.
Finding finding_in(const Json& json, const Journal& journal) {
  Finding finding;
  if (json.contains("dropped")) {
    finding.configs = {text_in(json["dropped"], "dropped")};
    finding.dropped = text_in(member_of(json, "why"), "why");
    if (finding.configs.front() == to_string(journal.trials[journal.default_at].config)) {
      base::fail(ErrorCode::kInvalidFile, "it drops the default");
    }
    return finding;
  }
  if (flag_in(json, "cold")) finding.l2 = CacheState::kCold;
  for (const Json& each : list_in(json, "tried", kMaxMeasured)) {
    finding.configs.push_back(text_in(each, "tried"));
  }
  for (const Json& each : list_in(json, "times", kMaxMeasured)) {
    finding.times.push_back(times_in(each));
    if (finding.times.back().size() != finding.times.front().size()) {
      base::fail(ErrorCode::kInvalidFile, "its times have different numbers of rounds");
    }
  }
  if (finding.times.size() != finding.configs.size()) {
    base::fail(ErrorCode::kInvalidFile, "its times are not one list for each configuration");
  }
  if (journal.predicted && (finding.times.size() != 1 || finding.times.front().size() != 1)) {
    base::fail(ErrorCode::kInvalidFile, "its times are not one prediction");
  }
  return finding;
}

// Whether a text that decode_journal() does not read may come from a newer build: it has a later
// schema, or an undamaged first line with something that this build does not support.
bool may_be_of_newer_journals(std::string_view text) {
  if (!text.starts_with(kJournalMagic)) return false;
  text.remove_prefix(kJournalMagic.size());
  int schema = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), schema);
  if (error != std::errc() || schema < kJournalSchema) return false;
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto digits = static_cast<std::size_t>(end - text.data()) + 1;
  return schema > kJournalSchema || (line.size() > digits && line.size() < text.size() &&
                                     why_damaged(line.substr(digits)).empty());
}

// Names a family of kernels that has an earlier revision in a journal's subject. Empty if there is
// none. Also empty if a family has a later revision or is unknown here, because a newer build may
// continue from the journal.
std::string why_outdated(const Json& subject) {
  const auto stated = subject.find("families");
  if (stated == subject.end() || !stated->is_object()) return {};
  std::string why;
  for (const auto& [name, value] : stated->items()) {
    const attention::ConfigFamily* family = find_config_family(name);
    if (family == nullptr || !value.is_number_integer()) return {};
    const auto revision = value.get<std::int64_t>();
    if (revision > family->revision) return {};
    if (revision < family->revision) {
      why = fmt::format("it is of revision {} of the {} kernels, which are of revision {} here",
                        revision, name, family->revision);
    }
  }
  return why;
}

}  // namespace

Json subject_of(Json about, std::span<const Trial> trials, std::size_t default_at, bool predicted,
                const SearchOptions& options) {
  about["predicted"] = predicted;
  about["exhaustive"] = options.exhaustive;
  about["cold_cache"] = options.l2 == CacheState::kCold;
  about["nominated"] = Json::array();
  for (const KernelConfig& config : options.nominated) {
    about["nominated"].push_back(to_string(config));
  }
  about["default"] = to_string(trials[default_at].config);
  Json& candidates = about["candidates"] = Json::array();
  for (const Trial& trial : trials) {
    Json prediction;  // stays null if it is not finite
    if (std::isfinite(trial.predicted)) prediction = trial.predicted;
    candidates.push_back(Json::array({to_string(trial.config), std::move(prediction)}));
  }
  return about;
}

std::string why_other_subject(const Json& stated, const Json& wanted) {
  for (const auto& [name, value] : wanted.items()) {
    const auto found = stated.find(name);
    if (found == stated.end()) return fmt::format("it states no {}", name);
    if (*found == value || name == "nominated") continue;
    constexpr std::size_t kMost = 120;
    const std::string is = text_of(*found), wants = text_of(value);
    if (is.size() + wants.size() > kMost) return fmt::format("its {} is another", name);
    return fmt::format("its {} is {}, not {}", name, is, wants);
  }
  return stated.size() == wanted.size() ? "" : "it states more than this build supports";
}

std::string first_line(const Json& subject) {
  return fmt::format("{}{} {}", kJournalMagic, kJournalSchema, checked(subject));
}

std::string line_of(const Finding& finding) {
  if (finding.dropped) {
    return checked({{"dropped", finding.configs.front()}, {"why", *finding.dropped}});
  }
  return checked({{"tried", finding.configs},
                  {"times", finding.times},
                  {"cold", finding.l2 == CacheState::kCold}});
}

std::string last_line() { return checked({{"ended", true}}); }

std::optional<Journal> decode_journal(std::string_view text, std::string* why) {
  const std::string head = fmt::format("{}{} ", kJournalMagic, kJournalSchema);
  const std::size_t first = text.find('\n');
  if (!text.starts_with(kJournalMagic) || first == text.npos) {
    *why = "it has no whole first line of a journal";
    return std::nullopt;
  }
  if (!text.starts_with(head)) {
    *why = fmt::format("it is of another schema than {}", kJournalSchema);
    return std::nullopt;
  }
  Journal journal;
  try {
    read_subject(read_line(text.substr(head.size(), first - head.size())), &journal);
  } catch (const Error& error) {
    *why = error.what();
    return std::nullopt;
  }
  journal.whole_bytes = first + 1;
  journal.lines = 1;
  while (!journal.ended) {
    const std::size_t begin = journal.whole_bytes, end = text.find('\n', begin);
    if (end == text.npos) break;
    try {
      const Json json = read_line(text.substr(begin, end - begin));
      if (json.contains("ended")) {
        journal.ended = true;
      } else {
        journal.findings.push_back(finding_in(json, journal));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidFile) throw;
      break;
    }
    journal.whole_bytes = end + 1;
    ++journal.lines;
  }
  return journal;
}

std::string why_stale(std::string_view text) {
  std::string why;
  const std::optional<Journal> journal = decode_journal(text, &why);
  if (!journal) return may_be_of_newer_journals(text) ? std::string() : why;
  if (journal->ended) return "its search has ended";
  return why_outdated(journal->subject);
}

}  // namespace annulus::tuned
