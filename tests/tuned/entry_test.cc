#include "tuned/entry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "tuned/config_families.h"
#include "tuned/gpus.h"
#include "tuned/sample_entry.h"
#include "tuned/space.h"

namespace annulus::tuned {
namespace {

using test::sample_entry;

constexpr char kDevice[] = "a device";

std::string entry_text(const Entry& entry) {
  const auto bytes = encode_entry(entry, kDevice);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<Entry> read(const std::string& text, std::string* why = nullptr) {
  std::string device, ignored;
  return decode_entry(std::as_bytes(std::span(text)), &device, why ? why : &ignored);
}

std::string body_of(const std::string& text) { return text.substr(text.find('\n') + 1); }

// A file with a right digest for any body.
std::string with_digest(const std::string& body,
                        const std::string& schema = std::to_string(kEntrySchema)) {
  return "annulus-tuned " + schema + " " + base::digest(body).hex() + "\n" + body;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("an entry reads back as it was, with its device") {
  for (const bool predicted : {false, true}) {
    for (const bool runner_up : {false, true}) {
      Entry entry = sample_entry(3);
      entry.predicted = predicted;
      if (!runner_up) entry.runner_up.reset();
      std::string device, why;
      const auto bytes = encode_entry(entry, kDevice);
      const auto found = decode_entry(bytes, &device, &why);
      REQUIRE_MESSAGE(found, why);
      CHECK(*found == entry);
      CHECK(device == kDevice);
    }
  }
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16, Dtype::kFloat8E4M3}) {
    for (int score = 0; score < 3; ++score) {
      for (int pattern = 0; pattern < 4; ++pattern) {
        Entry entry = sample_entry(0);
        entry.shape.dtype = dtype;
        entry.shape.score = static_cast<kernels::Score>(score);
        entry.shape.pattern = static_cast<PatternClass>(pattern);
        entry.shape.expression = static_cast<ExpressionClass>((pattern + score) % 4);
        entry.shape.carry_in = pattern % 2 == 1;
        CHECK(read(entry_text(entry)) == entry);
        entry.shape.branches = 2 + score;
        CHECK(read(entry_text(entry)) == entry);
      }
    }
  }
}

TEST_CASE("an entry found under a clock that is far off reads back") {
  for (const std::int64_t when :
       {std::int64_t{-315'619'199}, std::int64_t{0}, std::int64_t{1} << 40}) {
    Entry entry = sample_entry(1);
    entry.origin.when = when;
    std::string why;
    const auto found = read(entry_text(entry), &why);
    REQUIRE_MESSAGE(found, why);
    CHECK(*found == entry);
  }
}

TEST_CASE("a file with any bit of it changed, cut anywhere or longer is none") {
  const std::string whole = entry_text(sample_entry(1));
  REQUIRE(read(whole));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ (1u << bit));
      CHECK_FALSE(read(damaged));
    }
    CHECK_FALSE(read(whole.substr(0, i)));
  }
  CHECK_FALSE(read(whole + "x"));
  CHECK_FALSE(read(whole + whole));
  CHECK_FALSE(read(""));
}

TEST_CASE("another schema is named as such") {
  std::string why;
  CHECK_FALSE(read(
      with_digest(body_of(entry_text(sample_entry(1))), std::to_string(kEntrySchema + 1)), &why));
  CHECK(why.find("another schema") != std::string::npos);
  CHECK_FALSE(read(with_digest(body_of(entry_text(sample_entry(1))), "0"), &why));
  CHECK(why.find("another schema") != std::string::npos);
  CHECK_FALSE(read("#!/bin/sh\n", &why));
  CHECK(why.find("not a tuned entry") != std::string::npos);
}

TEST_CASE("a file whose digest agrees is still held to every range and type") {
  const std::string body = body_of(entry_text(sample_entry(1)));
  REQUIRE(read(with_digest(body)) == sample_entry(1));
  const std::vector<std::pair<std::string, std::string>> wrongs = {
      {"\"tile_rows\": 128", "\"tile_rows\": -128"},
      {"\"tile_rows\": 128", "\"tile_rows\": 0"},
      {"\"tile_rows\": 128", "\"tile_rows\": 1000000000000"},
      {"\"tile_rows\": 128", "\"tile_rows\": 99999999999999999999999"},
      {"\"tile_rows\": 128", "\"tile_rows\": 18446744073709551615"},
      {"\"tile_rows\": 128", "\"tile_rows\": 128.0"},
      {"\"tile_rows\": 128", "\"tile_rows\": 1e2"},
      {"\"tile_rows\": 128", "\"tile_rows\": 1e308"},
      {"\"tile_rows\": 128", "\"tile_rows\": \"128\""},
      {"\"tile_rows\": 128", "\"tile_rows\": null"},
      {"\"tile_rows\": 128", "\"tile_rows\": [128]"},
      {"\"tile_rows\": 128,", ""},
      {"\"tile_rows\": 128", "\"tile_rows\": 128, \"tile_rows\": 64"},
      {"\"query_in_registers\": false", "\"query_in_registers\": 0"},
      {"\"family\": \"mma\"", "\"family\": \"../../kernel\""},
      {"\"dtype\": \"bf16\"", "\"dtype\": \"fp32\""},
      {"\"dtype\": \"bf16\"", "\"dtype\": \"bf16; trap\""},
      {"\"score\": \"positive_scale\"", "\"score\": \"\""},
      {"\"expression\": \"none\"", "\"expression\": \"any\""},
      {"\"pattern\": \"dense\"", "\"pattern\": 0"},
      {"\"density\": 0", "\"density\": 64"},
      {"\"heads\": 0", "\"heads\": -1"},
      {"\"rounds\": 25", "\"rounds\": 0"},
      {"\"nanoseconds\"", "\"cycles\""},
      {"\"predicted\": false", "\"predicted\": true"},
      {"\"ratio_high_ppm\": 910000", "\"ratio_high_ppm\": 1"},
      {"\"device\": \"a device\"", "\"device\": 7"},
      {"\"shape\": {", "\"form\": {"},
      {"\"config\": {", "\"config\": [{"},
  };
  for (const auto& [from, to] : wrongs) {
    CAPTURE(to);
    CHECK_FALSE(read(with_digest(replaced(body, from, to))));
  }
  for (const char* other :
       {"", "{}", "[]", "null", "1", "\"x\"", "{\"device\": \"a device\"}", "\xff\xfe{}", "{"}) {
    CAPTURE(other);
    CHECK_FALSE(read(with_digest(other)));
  }
}

TEST_CASE("an entry of a sum says so where builds without sums read the class") {
  Entry entry = sample_entry(1);
  entry.shape.branches = 2;
  const std::string body = body_of(entry_text(entry));
  CHECK(body.find("\"pattern\": \"sum\"") != body.npos);
  for (const char* wrong : {"1", "-2", "2.0", "\"2\"", "99999999999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read(
        with_digest(replaced(body, "\"branches\": 2", std::string("\"branches\": ") + wrong))));
  }
  CHECK_FALSE(read(with_digest(replaced(body, "\"branches\": 2", "\"other\": 2"))));
  CHECK_FALSE(read(
      with_digest(replaced(body, "\"branch_pattern\": \"dense\"", "\"branch_pattern\": \"sum\""))));
}

TEST_CASE("an entry of chosen blocks has their size") {
  Entry entry = sample_entry(1);
  entry.shape.pattern = PatternClass::kChosen;
  entry.shape.block_rows = 64;
  entry.shape.block_columns = 128;
  const std::string text = entry_text(entry), body = body_of(text);
  CHECK(read(text) == entry);
  CHECK_FALSE(read(with_digest(replaced(body, "\"block_rows\": 64", "\"block_rows\": 0"))));
  CHECK_FALSE(read(with_digest(replaced(body, "\"block_columns\": 128", "\"other\": 128"))));
  entry.shape.branches = 2;  // no selection has branches
  CHECK_FALSE(read(entry_text(entry)));
}

TEST_CASE("families of problems and of batches have names of their own, and an order") {
  std::set<std::string> names;
  int order = 0;
  for (const attention::ConfigFamily* family : config_families()) {
    CAPTURE(family->name);
    CHECK(names.insert(family->name).second);
    CHECK(find_config_family(family->name) == family);
    CHECK(order_of(*family) == order++);
  }
  CHECK(order == 6);
  CHECK(find_config_family("") == nullptr);
  CHECK(find_config_family("chunk_") == nullptr);
  CHECK(parse_any_config("chunk m64 n64 w4 s2")->family == find_config_family("chunk"));
  CHECK_FALSE(parse_any_config("tcgen05 m128 n128 w8 s2"));
}

TEST_CASE("an entry of requests has their class, their pages and a kernel of batches") {
  Entry entry = sample_entry(1);
  entry.shape.requests = Requests::kFewQueries;
  entry.shape.pages = kernels::Pages::k16;
  entry.shape.block_columns = 64;
  entry.config = parse_any_config("decode m16 n64 w4 s2 q x2").value();
  entry.revision = entry.config.family->revision;
  const std::string text = entry_text(entry), body = body_of(text);
  CHECK(read(text) == entry);
  const std::string mma = std::to_string(find_config_family("mma")->revision);
  CHECK(kernels_text(entry) == "decode" + std::to_string(entry.revision) + "-mma" + mma);
  CHECK_FALSE(read(with_digest(replaced(body, "\"pages\": 16", "\"pages\": 17"))));
  CHECK_FALSE(read(with_digest(
      replaced(body, "\"requests\": \"few queries\"", "\"requests\": \"no requests\""))));
  CHECK_FALSE(read(with_digest(
      replaced(body, "\"request_pattern\": \"dense\"", "\"request_pattern\": \"sum\""))));
  // A kernel serves only problems that it can compute.
  const attention::DeviceLimits limits = test::limits_of_gpu(80);
  CHECK_FALSE(why_outside(entry.config, entry.shape, limits));
  CHECK(why_outside(entry.default_config, entry.shape, limits));
  ShapeKey other = entry.shape;
  other.requests = Requests::kManyQueries;
  CHECK(why_outside(entry.config, other, limits));
  other.requests = Requests::kNone;
  CHECK(why_outside(entry.config, other, limits));
}

TEST_CASE("members that are not known are left alone") {
  const std::string body = body_of(entry_text(sample_entry(1)));
  CHECK(read(with_digest(replaced(body, "\"shape\": {",
                                  "\"later\": [1], \"shape\": {\"new\": 2, "))) == sample_entry(1));
}

// The fields are those that every configuration had before each family had separate fields.
TEST_CASE("entries of before stay readable") {
  const std::string body = body_of(entry_text(sample_entry(1)));
  CHECK(read(with_digest(replaced(body, "\"family\": \"mma\"",
                                  "\"blocks\": 1, \"heads\": 1, \"cluster\": 1, "
                                  "\"family\": \"mma\""))) == sample_entry(1));
  Entry clustered = sample_entry(1);
  clustered.config = *attention::parse_config("wgmma m64 n64 w8 s2 q b2 h2 c2");
  const std::string of_clustered = body_of(entry_text(clustered));
  REQUIRE(of_clustered.find("\"without_turns\": false") != std::string::npos);
  CHECK(read(with_digest(replaced(of_clustered, "\"without_turns\": false", "\"other\": 0"))) ==
        clustered);
  CHECK(read(with_digest(replaced(of_clustered, "\"resident\": 1", "\"other\": 0"))) == clustered);
}

TEST_CASE("a family that this build lacks is named, with those there are") {
  const std::string body = body_of(entry_text(sample_entry(1)));
  std::string why;
  CHECK_FALSE(
      read(with_digest(replaced(body, "\"family\": \"mma\"", "\"family\": \"tcgen05\"")), &why));
  CHECK(why.find("family 'tcgen05' is not in this build, which has wgmma, wgmma8, mma, "
                 "decode, chunk_wgmma and chunk") != std::string::npos);
}

TEST_CASE("deep and large files cost nothing") {
  CHECK_FALSE(read(with_digest(std::string(1'000'000, '['))));
  CHECK_FALSE(read(with_digest("{\"a\":" + std::string(1'000'000, '{'))));
  std::string keys = "{";
  for (int i = 0; i < 5000; ++i) keys += "\"k" + std::to_string(i) + "\":1,";
  CHECK_FALSE(read(with_digest(keys + "\"z\":1}")));
}

TEST_CASE("random bytes under a right digest are never taken for an entry") {
  base::Random random(3);
  const std::string body = body_of(entry_text(sample_entry(1)));
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = body;
    for (std::uint32_t changes = 1 + random.below(3); changes > 0; --changes) {
      damaged[random.below(static_cast<std::uint32_t>(damaged.size()))] =
          static_cast<char>(random.below(128));
    }
    const auto found = read(with_digest(damaged));
    if (!found) continue;
    ++taken;  // a digit became another digit, or a blank stayed a blank; all ranges are still right
    CHECK(found->config.tile_rows >= 1);
    CHECK(found->config.tile_rows <= 1024);
    CHECK(found->rounds >= 1);
    CHECK(found->ratio_high_ppm >= found->ratio_low_ppm);
  }
  MESSAGE(taken << " of 20000 changed bodies read as entries, all within their ranges");
}

TEST_CASE("of two entries one is better, in any order and any company") {
  std::vector<Entry> entries;
  base::Random random(9);
  for (int i = 0; i < 40; ++i) {
    Entry entry = sample_entry(0);
    entry.complete = random.below(3) != 0;
    entry.ratio_high_ppm = 900'000 + 10'000 * random.below(4);
    entry.rounds = 7 + static_cast<int>(random.below(2));
    entry.origin.when = random.below(3);
    attention::MmaConfig config = attention::mma_config(entry.config);
    config.stages = 1 + static_cast<int>(random.below(3));
    entry.config = config;
    entries.push_back(entry);
  }
  for (const Entry& a : entries) {
    CHECK_FALSE(better(a, a));
    for (const Entry& b : entries) {
      CHECK_FALSE((better(a, b) && better(b, a)));
      for (const Entry& c : entries) {
        if (better(a, b) && better(b, c)) CHECK(better(a, c));
      }
    }
  }
  Entry sure = sample_entry(0), cut_short = sure, lucky = sure;
  cut_short.complete = false;
  cut_short.ratio_high_ppm = 500'000;
  lucky.time = 1;
  lucky.ratio_high_ppm = 1'200'000;
  CHECK(better(sure, cut_short));
  CHECK(better(sure, lucky));
}

}  // namespace
}  // namespace annulus::tuned
