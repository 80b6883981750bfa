#include "tuned/entry.h"

#include <fmt/core.h>

#include <charconv>
#include <tuple>

#include "base/fail.h"
#include "base/hash.h"
#include "base/json.h"
#include "tuned/config_families.h"

namespace annulus::tuned {
namespace {

using base::Json;

constexpr std::string_view kMagic = "annulus-tuned ";
// The limit of times, sizes and dates. It is so small that no sum or difference of two of them
// overflows 64 bits.
constexpr std::int64_t kMaxTime = std::int64_t{1} << 60;

// The first line of a file with this schema, up to the digest.
std::string header() { return fmt::format("{}{} ", kMagic, kEntrySchema); }

// If `revision` is 0, it is not written.
Json config_json(const attention::KernelConfig& config, int revision = 0) {
  Json json = {{"family", config.family->name}};
  if (revision != 0) json["revision"] = revision;
  json["tile_rows"] = config.tile_rows;
  json["tile_columns"] = config.tile_columns;
  for (std::size_t i = 0; i < config.family->fields.size(); ++i) {
    const attention::ConfigField& field = config.family->fields[i];
    if (field.form == attention::ConfigField::Form::kFlag) {
      json[field.name] = config.own[i] != 0;
    } else {
      json[field.name] = config.own[i];
    }
  }
  return json;
}

// Reads members of objects. If a member is missing, has the wrong type or is out of range, throws
// an error with the member's name.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  Reader object(const char* name) const {
    const Json& found = member(name);
    if (!found.is_object()) refuse(name, "is not an object");
    return Reader(found);
  }
  bool has(const char* name) const { return json_.contains(name); }
  bool boolean(const char* name) const {
    const Json& found = member(name);
    if (!found.is_boolean()) refuse(name, "is neither true nor false");
    return found.get<bool>();
  }
  std::int64_t number(const char* name, std::int64_t least, std::int64_t most) const {
    const Json& found = member(name);
    if (!found.is_number_integer()) refuse(name, "is not a whole number");
    // An unsigned number may exceed the signed range, and get() would let it wrap around.
    if (found.is_number_unsigned() && found.get<std::uint64_t>() > INT64_MAX) {
      refuse(name, "is out of range");
    }
    const auto value = found.get<std::int64_t>();
    if (value < least || value > most) refuse(name, "is out of range");
    return value;
  }
  std::vector<std::int64_t> numbers(const char* name, std::size_t most_of_them, std::int64_t least,
                                    std::int64_t most) const {
    const Json& found = member(name);
    if (!found.is_array()) refuse(name, "is not an array");
    if (found.size() > most_of_them) refuse(name, "is too long");
    std::vector<std::int64_t> all;
    for (const Json& each : found) {
      const Json one = {{name, each}};
      all.push_back(Reader(one).number(name, least, most));
    }
    return all;
  }
  int integer(const char* name, int least, int most) const {
    return static_cast<int>(number(name, least, most));
  }
  std::string text(const char* name) const {
    const Json& found = member(name);
    if (!found.is_string()) refuse(name, "is not a string");
    if (found.get_ref<const std::string&>().size() > kMaxEntryText) refuse(name, "is too long");
    return found.get<std::string>();
  }
  // The value whose to_text() is the text of the member.
  template <typename Enum, std::size_t kCount>
  Enum choice(const char* name, const Enum (&values)[kCount], const char* (*to_text)(Enum)) const {
    const std::string found = text(name);
    for (const Enum value : values) {
      if (found == to_text(value)) return value;
    }
    refuse(name, "is not known");
  }

 private:
  const Json& member(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) refuse(name, "is missing");
    return *found;
  }
  [[noreturn]] static void refuse(const char* name, const char* what) {
    base::fail(ErrorCode::kInvalidFile, "{} {}", name, what);
  }

  const Json& json_;
};

// Fields that this build does not support are ignored. An option or flag that an older build did
// not have may be missing, as in the text of a configuration. An unknown family is an error that
// names the family, because the entry is valid for the build that wrote it.
attention::KernelConfig read_config(const Reader& from) {
  attention::KernelConfig config;
  const std::string family = from.text("family");
  config.family = find_config_family(family);
  if (config.family == nullptr) {
    base::fail(ErrorCode::kInvalidFile, "its family '{:.40}' is not in this build, which has {}",
               family, config_family_names());
  }
  // These limits are wider than any search space. why_outside() decides what is legal.
  config.tile_rows = from.integer("tile_rows", 1, 1024);
  config.tile_columns = from.integer("tile_columns", 1, 1024);
  for (std::size_t i = 0; i < config.family->fields.size(); ++i) {
    const attention::ConfigField& field = config.family->fields[i];
    const bool flag = field.form == attention::ConfigField::Form::kFlag;
    if (field.form != attention::ConfigField::Form::kNumber && !from.has(field.name)) {
      config.own[i] = flag ? 0 : 1;
    } else {
      config.own[i] = flag ? from.boolean(field.name) : from.integer(field.name, 1, field.largest);
    }
  }
  return config;
}

// The members of an entry's origin.
using Origin = Entry::Origin;
struct OriginNumber {
  const char* name;
  int Origin::*place;
};
struct OriginLength {
  const char* name;
  std::int64_t Origin::*place;
  std::int64_t least = 0;
};
struct OriginText {
  const char* name;
  std::string Origin::*place;
};
constexpr OriginNumber kOriginNumbers[] = {{"library", &Origin::library_version},
                                           {"driver", &Origin::driver_version},
                                           {"nvrtc", &Origin::nvrtc_version},
                                           {"clock_mhz", &Origin::clock_mhz},
                                           {"memory_clock_mhz", &Origin::memory_clock_mhz}};
// A result may be stamped with a time before 1970 if the clock was never set; such a result is
// valid.
constexpr OriginLength kOriginLengths[] = {
    {"when", &Origin::when, -kMaxTime},   {"batch", &Origin::batch},      {"heads", &Origin::heads},
    {"kv_heads", &Origin::kv_heads},      {"seq_q", &Origin::seq_q},      {"seq_k", &Origin::seq_k},
    {"q0", &Origin::q0, -kMaxTime},       {"k0", &Origin::k0, -kMaxTime}, {"layer", &Origin::layer},
    {"scale_block", &Origin::scale_block}};
constexpr OriginText kOriginTexts[] = {{"pattern", &Origin::pattern}, {"score", &Origin::score}};

// Their ranges are checked where they are used, in the same way as a caller's values.
template <typename Stated>
struct StatedNumber {
  const char* name;
  std::int64_t Stated::*place;
};
constexpr StatedNumber<StatedSelection> kSelectionNumbers[] = {
    {"block_rows", &StatedSelection::block_rows},
    {"block_columns", &StatedSelection::block_columns},
    {"rule", &StatedSelection::rule},
    {"max_blocks", &StatedSelection::max_blocks},
    {"mass", &StatedSelection::mass},
    {"pool", &StatedSelection::pool},
    {"stride", &StatedSelection::stride},
    {"coarse_factor", &StatedSelection::coarse_factor},
    {"coarse_blocks", &StatedSelection::coarse_blocks},
    {"sink_blocks", &StatedSelection::sink_blocks},
    {"diagonal_blocks", &StatedSelection::diagonal_blocks}};
constexpr StatedNumber<StatedBatch> kBatchNumbers[] = {
    {"most", &StatedBatch::requests},
    {"most_rows", &StatedBatch::rows},
    {"most_rows_of_one", &StatedBatch::rows_of_one},
    {"most_keys_of_one", &StatedBatch::keys_of_one},
    {"most_keys", &StatedBatch::keys},
    {"page_rows", &StatedBatch::page_rows},
    {"block_keys", &StatedBatch::block_keys},
    {"most_blocks", &StatedBatch::max_blocks},
    {"row_limits", &StatedBatch::row_limits},
    {"want_lse", &StatedBatch::want_lse},
    {"rank_block", &StatedBatch::rank_block},
    {"ranks", &StatedBatch::ranks},
    {"rank", &StatedBatch::rank}};

template <typename Stated, std::size_t kCount>
Json numbers_json(const StatedNumber<Stated> (&numbers)[kCount], const Stated& stated) {
  Json json;
  for (const auto& number : numbers) json[number.name] = stated.*number.place;
  return json;
}

template <typename Stated, std::size_t kCount>
Stated read_numbers(const StatedNumber<Stated> (&numbers)[kCount], const Reader& from) {
  Stated stated;
  for (const auto& number : numbers) {
    stated.*number.place = from.number(number.name, -kMaxTime, kMaxTime);
  }
  return stated;
}

// An entry for a sum has this text instead of the class of its pattern, and another member has the
// class of its branches. Builds that do not support sums refuse such an entry.
constexpr const char* kSumText = "sum";
constexpr int kMaxBranches = 1 << 20;
constexpr const char* kRequestsText = "requests";  // the same for batches

ShapeKey read_shape(const Reader& from) {
  using kernels::Score;
  static constexpr Dtype kDtypes[] = {Dtype::kFloat16, Dtype::kBfloat16, Dtype::kFloat8E4M3};
  static constexpr Score kScores[] = {Score::kPositiveScale, Score::kAnyScale, Score::kSoftcap};
  static constexpr ExpressionClass kExpressions[] = {
      ExpressionClass::kNone, ExpressionClass::kShort, ExpressionClass::kLoop,
      ExpressionClass::kLong};
  static constexpr PatternClass kPatterns[] = {PatternClass::kDense, PatternClass::kCausal,
                                               PatternClass::kPositions, PatternClass::kLists,
                                               PatternClass::kChosen};
  using kernels::Pages;
  static constexpr Pages kPages[] = {Pages::kNone, Pages::kAny, Pages::k16, Pages::k64};
  static constexpr Requests kRequests[] = {Requests::kFewQueries, Requests::kManyQueries};
  ShapeKey key;
  key.dim_qk = from.integer("dim_qk", 1, 1024);
  key.dim_v = from.integer("dim_v", 1, 1024);
  key.dtype = from.choice("dtype", kDtypes, annulus::to_string);
  key.group = from.integer("group", 1, static_cast<int>(kMaxHeads));
  key.carry_in = from.boolean("carry_in");
  key.carry_out = from.boolean("carry_out");
  key.score = from.choice("score", kScores, to_string);
  key.expression = from.choice("expression", kExpressions, to_string);
  const bool is_sum = from.text("pattern") == kSumText;
  const bool is_batch = from.text("pattern") == kRequestsText;
  if (is_sum) key.branches = from.integer("branches", 2, kMaxBranches);
  if (is_batch) {
    key.requests = from.choice("requests", kRequests, to_string);
    const int pages = from.integer("pages", 0, 64);
    for (const Pages known : kPages) {
      if (pages == static_cast<int>(known)) key.pages = known;
    }
    if (pages != static_cast<int>(key.pages)) {
      base::fail(ErrorCode::kInvalidFile, "pages is not 0, 1, 16 or 64");
    }
    key.block_columns = from.integer("block_keys", 0, static_cast<int>(kMaxPosition));
  }
  key.pattern = from.choice(is_sum     ? "branch_pattern"
                            : is_batch ? "request_pattern"
                                       : "pattern",
                            kPatterns, to_string);
  if (key.pattern == PatternClass::kChosen) {
    if (is_sum || is_batch) {
      base::fail(ErrorCode::kInvalidFile, "it is of chosen blocks of a sum, or of requests");
    }
    key.block_rows = from.integer("block_rows", 1, static_cast<int>(kMaxPosition));
    key.block_columns = from.integer("block_columns", 1, static_cast<int>(kMaxPosition));
  }
  key.density = from.integer("density", 0, kNoBlocks);
  key.queries = from.integer("queries", 0, 126);
  key.keys = from.integer("keys", 0, 126);
  key.heads = from.integer("heads", 0, 63);
  return key;
}

}  // namespace

// The order of the members has no effect: entry_of() reads them by name.
Json json_of(const Entry& entry, const std::string& device) {
  const ShapeKey& shape = entry.shape;
  Json json;
  json["device"] = device;
  json["shape"] = {{"dim_qk", shape.dim_qk},
                   {"dim_v", shape.dim_v},
                   {"dtype", to_string(shape.dtype)},
                   {"group", shape.group},
                   {"carry_in", shape.carry_in},
                   {"carry_out", shape.carry_out},
                   {"score", to_string(shape.score)},
                   {"expression", to_string(shape.expression)},
                   {"pattern", to_string(shape.pattern)},
                   {"density", shape.density},
                   {"queries", shape.queries},
                   {"keys", shape.keys},
                   {"heads", shape.heads}};
  if (shape.branches > 1) {
    json["shape"]["pattern"] = kSumText;
    json["shape"]["branches"] = shape.branches;
    json["shape"]["branch_pattern"] = to_string(shape.pattern);
  }
  if (shape.requests != Requests::kNone) {
    json["shape"]["pattern"] = kRequestsText;
    json["shape"]["requests"] = to_string(shape.requests);
    json["shape"]["request_pattern"] = to_string(shape.pattern);
    json["shape"]["pages"] = static_cast<int>(shape.pages);
    json["shape"]["block_keys"] = shape.block_columns;
  }
  if (shape.pattern == PatternClass::kChosen) {
    json["shape"]["block_rows"] = shape.block_rows;
    json["shape"]["block_columns"] = shape.block_columns;
  }
  json["config"] = config_json(entry.config, entry.revision);
  json["default_config"] = config_json(entry.default_config, entry.default_revision);
  if (entry.runner_up) json["runner_up"] = config_json(*entry.runner_up);
  json["result"] = {
      {"predicted", entry.predicted},
      {"complete", entry.complete},
      {entry.predicted ? "cycles" : "nanoseconds", entry.time},
      {entry.predicted ? "default_cycles" : "default_nanoseconds", entry.default_time},
      {"ratio_low_ppm", entry.ratio_low_ppm},
      {"ratio_high_ppm", entry.ratio_high_ppm},
      {"cold_cache", entry.cold_cache},
      {"other_ratio_ppm", entry.other_ratio_ppm},
      {"rounds", entry.rounds},
      {"repeated_rounds", entry.repeated_rounds},
      {"candidates", entry.candidates}};
  Json& origin = json["origin"];
  for (const OriginNumber& number : kOriginNumbers) {
    origin[number.name] = entry.origin.*number.place;
  }
  for (const OriginLength& length : kOriginLengths) {
    origin[length.name] = entry.origin.*length.place;
  }
  for (const OriginText& text : kOriginTexts) origin[text.name] = entry.origin.*text.place;
  if (entry.origin.selection) {
    origin["selection"] = numbers_json(kSelectionNumbers, *entry.origin.selection);
  }
  if (entry.origin.requests) {
    origin["requests"] = numbers_json(kBatchNumbers, *entry.origin.requests);
    origin["requests"]["step"] = entry.origin.requests->step;
  }
  return json;
}

Entry entry_of(const Json& json, std::string* device) {
  if (!json.is_object()) base::fail(ErrorCode::kInvalidFile, "it does not hold an object");
  const Reader top(json);
  *device = top.text("device");
  Entry entry;
  entry.shape = read_shape(top.object("shape"));
  const auto revised = [&](const char* name, int* revision) {
    const Reader from = top.object(name);
    *revision = from.integer("revision", 1, 1 << 20);
    return read_config(from);
  };
  entry.config = revised("config", &entry.revision);
  entry.default_config = revised("default_config", &entry.default_revision);
  if (top.has("runner_up")) entry.runner_up = read_config(top.object("runner_up"));
  const Reader result = top.object("result");
  entry.predicted = result.boolean("predicted");
  entry.complete = result.boolean("complete");
  entry.time = result.number(entry.predicted ? "cycles" : "nanoseconds", 1, kMaxTime);
  entry.default_time =
      result.number(entry.predicted ? "default_cycles" : "default_nanoseconds", 1, kMaxTime);
  entry.ratio_low_ppm = result.number("ratio_low_ppm", 0, kMaxTime);
  entry.ratio_high_ppm = result.number("ratio_high_ppm", entry.ratio_low_ppm, kMaxTime);
  entry.rounds = result.integer("rounds", 1, 1 << 20);
  // Entries of early builds do not have these members.
  if (result.has("cold_cache")) entry.cold_cache = result.boolean("cold_cache");
  if (result.has("other_ratio_ppm")) {
    entry.other_ratio_ppm = result.number("other_ratio_ppm", 0, kMaxTime);
  }
  if (result.has("repeated_rounds")) {
    entry.repeated_rounds = result.integer("repeated_rounds", 0, 1 << 30);
  }
  entry.candidates = result.integer("candidates", 1, 1 << 20);
  const Reader origin = top.object("origin");
  for (const OriginNumber& number : kOriginNumbers) {
    entry.origin.*number.place = origin.integer(number.name, 0, 1 << 30);
  }
  for (const OriginLength& length : kOriginLengths) {
    entry.origin.*length.place = origin.number(length.name, length.least, kMaxTime);
  }
  for (const OriginText& text : kOriginTexts) {
    entry.origin.*text.place = origin.text(text.name);
  }
  if (origin.has("selection")) {
    entry.origin.selection = read_numbers(kSelectionNumbers, origin.object("selection"));
  }
  if (origin.has("requests")) {
    const Reader requests = origin.object("requests");
    entry.origin.requests = read_numbers(kBatchNumbers, requests);
    entry.origin.requests->step = requests.numbers("step", kMaxStepNumbers, 1, kMaxTime);
  }
  return entry;
}

// An entry is one object of objects with at most 20 members each. The limit is higher, because a
// later build may add fields, which this build ignores.
base::JsonLimits entry_limits() { return {static_cast<std::size_t>(kMaxEntryBytes), 4, 100}; }

std::vector<std::byte> encode_entry(const Entry& entry, const std::string& device) {
  const std::string body = json_of(entry, device).dump(1, ' ', true) + "\n";
  const std::string text = header() + base::digest(body).hex() + "\n" + body;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

namespace {

// The text after the first line of a file with this schema. Nothing if the digest does not match.
std::optional<std::string_view> whole_body(std::string_view text) {
  const std::string expected = header();
  const std::size_t body_at = expected.size() + kDigestDigits + 1;
  if (!text.starts_with(expected) || text.size() < body_at || text[body_at - 1] != '\n' ||
      text.substr(expected.size(), kDigestDigits) != base::digest(text.substr(body_at)).hex()) {
    return std::nullopt;
  }
  return text.substr(body_at);
}

// The number before the first blank, if there is one.
std::optional<int> leading_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  return number;
}

}  // namespace

bool may_be_of_newer_build(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) return false;
  const int schema = leading_number(text.substr(kMagic.size())).value_or(0);
  return schema > kEntrySchema || whole_body(text).has_value();
}

bool is_of_newer_kernels(const Entry& entry) {
  return entry.revision >= entry.config.family->revision &&
         entry.default_revision >= entry.default_config.family->revision;
}

std::string why_other_schema(std::string_view stated) {
  if (stated.starts_with(fmt::format("{} ", kEntrySchema))) return {};
  const std::optional<int> schema = leading_number(stated);
  const std::string which = schema ? fmt::format(", {}", *schema) : "";
  if (schema.value_or(0) > kEntrySchema) {
    return fmt::format(
        "it is of another schema{}, which a newer library wrote; this one reads "
        "schema {}",
        which, kEntrySchema);
  }
  return fmt::format(
      "it is of another schema{}, which this library reads no longer; it reads "
      "schema {}",
      which, kEntrySchema);
}

// The magic word, the schema and the digest are checked before the JSON is parsed, and the JSON is
// limited in size and depth, because the file may come from an untrusted source.
std::optional<Entry> decode_entry(std::span<const std::byte> file, std::string* device,
                                  std::string* why) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) {
    *why = "it is not a tuned entry";
    return std::nullopt;
  }
  *why = why_other_schema(text.substr(kMagic.size()));
  if (!why->empty()) return std::nullopt;
  const std::optional<std::string_view> body = whole_body(text);
  if (!body) {
    *why = "its digest does not agree";
    return std::nullopt;
  }
  try {
    return entry_of(base::parse_json(*body, "its JSON", entry_limits()), device);
  } catch (const Error& error) {
    *why = error.what();
  }
  return std::nullopt;
}

std::string kernels_text(const Entry& entry) {
  std::string text = fmt::format("{}{}", entry.config.family->name, entry.revision);
  if (entry.default_config.family == entry.config.family) return text;
  return fmt::format("{}-{}{}", text, entry.default_config.family->name, entry.default_revision);
}

std::string why_outdated(const Entry& entry) {
  const auto outdated = [](const attention::KernelConfig& config, int revision) -> std::string {
    if (config.family->revision == revision) return {};
    return fmt::format("it is of revision {} of the {} kernels, which are of revision {} here",
                       revision, config.family->name, config.family->revision);
  };
  const std::string why = outdated(entry.config, entry.revision);
  return why.empty() ? outdated(entry.default_config, entry.default_revision) : why;
}

bool better(const Entry& a, const Entry& b) {
  const auto rank = [](const Entry& entry) {
    const attention::KernelConfig& config = entry.config;
    return std::tuple(!entry.complete, entry.ratio_high_ppm, -entry.rounds, -entry.origin.when,
                      config.tile_rows, config.tile_columns, tuned::order_of(*config.family),
                      config.own);
  };
  const auto of_a = rank(a), of_b = rank(b);
  if (of_a != of_b) return of_a < of_b;
  return a != b && json_of(a, {}).dump() < json_of(b, {}).dump();
}

}  // namespace annulus::tuned
