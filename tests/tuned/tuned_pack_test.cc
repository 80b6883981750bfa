#include "tuned/tuned_pack.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "annulus/types.h"
#include "base/random.h"
#include "support/faulty_files.h"
#include "tuned/sample_entry.h"

namespace annulus::tuned {
namespace {

using test::sample_device;
using test::sample_entry;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

PackedEntry packed(int number, const std::string& device = "a GPU") {
  return {sample_device(device).identity, sample_entry(number)};
}

std::string with_digest(const std::string& body, int schema = kEntrySchema) {
  return "annulus-tuned-pack " + std::to_string(schema) + " " + base::digest(body).hex() + "\n" +
         body;
}

std::string body_of(const std::string& text) { return text.substr(text.find('\n') + 1); }

// The code of the error that reading a text throws; kInternal if it throws none.
ErrorCode refusal(const std::string& text, std::string* why = nullptr) {
  std::vector<std::string> left_out;
  try {
    decode_pack(bytes_of(text), &left_out);
  } catch (const Error& error) {
    if (why != nullptr) *why = error.what();
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST_CASE("a pack reads back as it was, sorted, one line for each entry") {
  const Pack pack = merged({packed(3, "b"), packed(1, "b"), packed(2, "a"), packed(1, "a")});
  REQUIRE(pack.size() == 4);
  CHECK(pack[0].device == sample_device("a").identity);
  CHECK(pack[3].device == sample_device("b").identity);
  const std::string text = encode_pack(pack);
  CHECK(std::ranges::count(text, '\n') == 5);
  std::vector<std::string> left_out;
  CHECK(decode_pack(bytes_of(text), &left_out) == pack);
  CHECK(left_out.empty());
  CHECK(encode_pack(merged({pack[2], pack[0], pack[3], pack[1], pack[0]})) == text);
  const std::string none = encode_pack({});
  CHECK(decode_pack(bytes_of(none), &left_out).empty());
  // Entries of devices that are not requested are skipped.
  const Pack some = decode_pack(bytes_of(text), &left_out,
                                [](std::string_view device) { return device.starts_with("b,"); });
  CHECK(some == Pack(pack.begin() + 2, pack.end()));
}

TEST_CASE("a name has digits, letters and '-' alone, and says which kernels were compared") {
  Entry entry = sample_entry(1);
  CHECK(entry_name(entry) == digest(entry.shape).hex() + "-mma" + std::to_string(entry.revision));
  entry.config = *attention::parse_config("wgmma m64 n64 w4 s2 q b2");
  entry.revision = 7;
  CHECK(entry_name(entry).ends_with("-wgmma7-mma" + std::to_string(entry.default_revision)));
  CHECK(entry_name(entry).find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz-") ==
        std::string::npos);
}

TEST_CASE("a pack with any byte changed, cut anywhere or longer is refused") {
  const std::string whole = encode_pack(merged({packed(1), packed(2)}));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      CHECK(refusal(damaged) != ErrorCode::kInternal);
    }
    CHECK(refusal(whole.substr(0, i)) != ErrorCode::kInternal);
  }
  MESSAGE(whole.size() << " bytes, each bit of them changed and the file cut at each: all refused");
  CHECK(refusal(whole + "\n") == ErrorCode::kInvalidFile);
  CHECK(refusal(whole + whole) == ErrorCode::kInvalidFile);
}

TEST_CASE("a pack of a newer library says so") {
  const std::string body = body_of(encode_pack({packed(1)}));
  std::string why;
  CHECK(refusal(with_digest(body, kEntrySchema + 1), &why) == ErrorCode::kUnsupported);
  CHECK(why.find("a newer library wrote") != std::string::npos);
  CHECK(refusal("annulus-tuned-pack 99\n", &why) == ErrorCode::kUnsupported);
  CHECK(refusal("annulus-tuned-pack 99 other\n", &why) == ErrorCode::kUnsupported);
  CHECK(refusal(with_digest(body, kEntrySchema - 1), &why) == ErrorCode::kUnsupported);
  CHECK(why.find("reads no longer") != std::string::npos);
  CHECK(refusal("annulus-tuned-pack 04" + with_digest(body).substr(20)) == ErrorCode::kUnsupported);
  CHECK(refusal(with_digest(body, -3)) == ErrorCode::kUnsupported);
  CHECK(refusal("annulus-tuned-pack 99999999999999999999 x\n") == ErrorCode::kUnsupported);
  CHECK(refusal("") == ErrorCode::kInvalidFile);
  CHECK(refusal(std::string("\0\0", 2)) == ErrorCode::kInvalidFile);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("a line that holds no entry is left out, and the others serve") {
  const std::string whole = body_of(encode_pack(merged({packed(1), packed(2)})));
  const std::string first = whole.substr(0, whole.find('\n') + 1);
  const std::string second = whole.substr(first.size());
  std::string deep = std::string(100'000, '[') + "\n";
  std::string keys = "{";
  for (int i = 0; i < 5000; ++i) keys += "\"k" + std::to_string(i) + "\":1,";
  for (const std::string& wrong : std::vector<std::string>{
           replaced(first, "\"family\":\"mma\"", "\"family\":\"later\""),
           replaced(first, "\"tile_rows\":128", "\"tile_rows\":0"),
           replaced(first, "\"tile_rows\":128", "\"tile_rows\":1e308"),
           replaced(first, "\"tile_rows\":128", "\"tile_rows\":99999999999999999999"),
           replaced(first, "\"tile_rows\":128", "\"tile_rows\":128,\"tile_rows\":64"),
           replaced(first, "\"revision\":", "\"revision\":-"),
           replaced(first, "\"predicted\":false", "\"predicted\":true"),
           replaced(first, "108 multiprocessors", "many multiprocessors"),
           replaced(first, "measured", "../../etc"), replaced(first, "measured", "simulated"),
           replaced(first, "\"score\":\"\"}}", "\"score\":7}}"), first.substr(1),
           replaced(first, "\"score\":\"\"", "\"score\":\"" + std::string(2000, 'x') + "\""), deep,
           keys + "\"z\":1}\n", "\n", "null\n", "{}\n", "\xff\xfe\n"}) {
    std::vector<std::string> left_out;
    const Pack pack = decode_pack(bytes_of(with_digest(wrong + second)), &left_out);
    CAPTURE(wrong.substr(0, 300));
    CHECK(pack.size() == 1);
    CHECK(left_out.size() == 1);
  }
  std::vector<std::string> left_out;
  CHECK(decode_pack(bytes_of(with_digest(std::string(1000, '\n'))), &left_out).empty());
  CHECK(left_out.size() == 101);
  CHECK(left_out.back() == "900 more lines");
}

TEST_CASE("a pack that nobody would read is not written") {
  const test::ScratchFolder scratch;
  const std::string path = scratch / "a.pack";
  base::FileSystem files;
  PackedEntry large = packed(1);
  write_pack(files, path, {large});
  const std::vector<std::byte> before = base::read_file(files, path, kMaxPackBytes);
  CHECK(decode_pack(before, nullptr) == Pack{large});
  const auto rest = kMaxPackBytes - std::ssize(before);
  large.entry.origin.score.assign(static_cast<std::size_t>(rest) + 1, 'x');
  try {
    write_pack(files, path, {large});
    FAIL("it is written");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    const std::string why = error.what();
    CHECK(why.find("1 tuned results would have 67108865 bytes, more than the 67108864") !=
          std::string::npos);
  }
  CHECK(base::read_file(files, path, kMaxPackBytes) == before);
  large.entry.origin.score.pop_back();
  write_pack(files, path, {large});
  CHECK(std::filesystem::file_size(path) == static_cast<std::uintmax_t>(kMaxPackBytes));
}

// Entries that differ in everything that determines their order, and in some other members.
PackedEntry drawn(base::Random& random) {
  PackedEntry made = packed(static_cast<int>(random.below(3)), random.below(2) != 0 ? "a" : "b");
  Entry& entry = made.entry;
  entry.complete = random.below(3) != 0;
  entry.ratio_high_ppm = 900'000 + 10'000 * random.below(3);
  entry.time += random.below(2);
  entry.origin.driver_version = 12000 + 1000 * static_cast<int>(random.below(2));
  entry.origin.when += random.below(2);
  if (random.below(2) != 0) entry.config = *attention::parse_config("wgmma m64 n64 w4 s2 q b2");
  entry.revision = 1 + static_cast<int>(random.below(2));
  return made;
}

TEST_CASE("merging is commutative, associative and idempotent") {
  base::Random random(5);
  const auto join = [](const Pack& a, const Pack& b) {
    Pack all = a;
    all.insert(all.end(), b.begin(), b.end());
    return merged(all);
  };
  std::size_t replaced_ones = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::vector<Pack> stores(3);
    std::size_t count = 0;
    for (Pack& store : stores) {
      for (std::uint32_t left = random.below(7); left > 0; --left) store.push_back(drawn(random));
      count += store.size();
      store = merged(store);
      if (!(merged(store) == store && join(store, store) == store)) FAIL("not idempotent");
    }
    const auto& [a, b, c] = std::tie(stores[0], stores[1], stores[2]);
    const Pack all = join(join(a, b), c);
    if (encode_pack(all) != encode_pack(join(a, join(b, c)))) FAIL("not associative");
    if (encode_pack(all) != encode_pack(join(c, join(b, a)))) FAIL("not commutative");
    if (join(all, b) != all) FAIL("not idempotent");
    replaced_ones += count - all.size();
  }
  CHECK(replaced_ones > 10'000);
  MESSAGE("10000 triples of stores merged in every order, " << replaced_ones
                                                            << " entries replaced by better ones");
}

TEST_CASE("of two results the complete one stays, then the surer gain") {
  PackedEntry sure = packed(1), partial = packed(1), poor = packed(1);
  partial.entry.complete = false;
  partial.entry.ratio_high_ppm = 1;
  poor.entry.ratio_high_ppm = 990'000;
  CHECK(merged({partial, poor}) == Pack{poor});
  CHECK(merged({poor, partial, sure}) == Pack{sure});
  // Entries that compare other kernels both stay.
  PackedEntry before = packed(1);
  before.entry.revision -= 1;
  CHECK(merged({before, sure}).size() == 2);
}

TEST_CASE("random files are never taken for packs, and changed ones hold their ranges") {
  base::Random random(23);
  const std::string whole = encode_pack(merged({packed(1), packed(2)}));
  int read = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text;
    if (i % 2 == 0) {
      if (i % 4 == 0) text = "annulus-tuned-pack 4 ";
      for (std::uint32_t left = random.below(400); left > 0; --left) {
        text += static_cast<char>(random.below(256));
      }
      CHECK(refusal(text) != ErrorCode::kInternal);
      continue;
    }
    std::string body = body_of(whole);
    for (std::uint32_t changes = 1 + random.below(3); changes > 0; --changes) {
      body[random.below(static_cast<std::uint32_t>(body.size()))] =
          static_cast<char>(random.below(128));
    }
    CHECK(refusal(whole.substr(0, whole.find('\n') + 1) + body +
                  (body == body_of(whole) ? "x" : "")) == ErrorCode::kInvalidFile);
    std::vector<std::string> left_out;
    for (const PackedEntry& each : decode_pack(bytes_of(with_digest(body)), &left_out)) {
      ++read;
      CHECK(each.entry.config.tile_rows >= 1);
      CHECK(each.entry.config.tile_rows <= 1024);
      CHECK(each.entry.ratio_high_ppm >= each.entry.ratio_low_ppm);
    }
  }
  CHECK(read > 1000);
}

}  // namespace
}  // namespace annulus::tuned
