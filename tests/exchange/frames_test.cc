// The messages between ranks, and the names of their meeting places, as bytes in memory.

#include "exchange/frames.h"

#include <doctest/doctest.h>

#include <string>

#include "annulus/types.h"
#include "exchange/names.h"

namespace annulus::exchange {
namespace {

std::span<const std::byte> bytes_in(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST_CASE("addresses are read or refused") {
  const auto endpoint = [](const std::string& text) { return parse_address(text).endpoint; };
  CHECK(endpoint("tcp:host-1.example:29500") == Endpoint{"host-1.example", 29500});
  CHECK(endpoint("tcp:10.0.0.1:1") == Endpoint{"10.0.0.1", 1});
  CHECK(endpoint("tcp:[fe80::1%eth0]:65535") == Endpoint{"fe80::1%eth0", 65535});
  CHECK(endpoint("tcp:[::1]:80").text() == "[::1]:80");
  CHECK(parse_address("file:a:b").path == "a:b");
  for (const std::string text :
       {"", "tcp:", "tcp:host", "tcp:host:", "tcp::80", "tcp:host:0", "tcp:host:65536",
        "tcp:host:80x", "tcp:host:-1", "tcp:::1:80", "tcp:ho st:80", "tcp:[]:80", "tcp:a/b:80",
        "file:", "file:folder/", "http:host:80", "TCP:host:80"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_address(text), Error);
  }
  CHECK_THROWS_AS(parse_address(std::string("file:a\0b", 8)), Error);
  CHECK_THROWS_AS(parse_address("tcp:" + std::string(254, 'a') + ":80"), Error);
}

TEST_CASE("a file of a meeting is read whole or not at all") {
  MeetingFile file = {{"::1", 4711}, {}};
  for (std::size_t i = 0; i < file.nonce.size(); ++i)
    file.nonce[i] = static_cast<std::byte>(17 * i);
  const std::string text = file_text(file);
  std::string problem;
  const auto read = parse_file(bytes_in(text), &problem);
  REQUIRE(read);
  CHECK(read->endpoint == file.endpoint);
  CHECK(read->nonce == file.nonce);
  for (std::size_t size = 0; size < text.size(); ++size) {
    CHECK(!parse_file(bytes_in(text.substr(0, size)), &problem));
    CHECK(problem == "is half written");
  }
  for (std::size_t at = 0; at + 4 < text.size(); ++at) {
    std::string changed = text;
    changed[at] = '\x7f';
    CHECK(!parse_file(bytes_in(changed), &problem));
  }
}

TEST_CASE("hellos come out as they went in, and nothing else is one") {
  const Hello hello = {.version = kProtocolVersion,
                       .rank = 3,
                       .ranks = 7,
                       .token = std::string("a\0b", 3),
                       .nonce = {std::byte{1}, std::byte{2}},
                       .endpoint = {"192.168.100.200", 65535}};
  std::vector<std::byte> bytes = encode(hello);
  REQUIRE(bytes.size() == kHelloBytes);
  const auto read = parse_hello(bytes);
  REQUIRE(read);
  CHECK(read->rank == 3);
  CHECK(read->ranks == 7);
  CHECK(read->token == hello.token);
  CHECK(read->nonce == hello.nonce);
  CHECK(read->endpoint == hello.endpoint);
  CHECK(!parse_hello(std::span(bytes).first(kHelloBytes - 1)));
  bytes[20] = std::byte{64};  // a token of 64 bytes
  CHECK(!parse_hello(bytes));
  bytes = encode(hello);
  bytes[0] = std::byte{'A'};
  CHECK(!parse_hello(bytes));
  CHECK(same_token("abc", "abc"));
  CHECK(!same_token("abc", "abd"));
  CHECK(!same_token("abc", std::string("abc\0", 4)));
  CHECK(!same_token("", "a"));
}

TEST_CASE("frames are cut out of a stream however it comes") {
  std::vector<std::byte> stream;
  for (std::uint64_t number = 0; number < 5; ++number) {
    const auto frame = encode(FrameKind::kGather, number, std::vector<std::byte>(number * 7));
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    FrameReader reader(4096);
    std::uint64_t count = 0;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.add(std::span(stream).subspan(at, std::min(step, stream.size() - at)));
      while (const auto frame = reader.next()) {
        CHECK(frame->number == count);
        CHECK(frame->bytes.size() == 7 * count);
        ++count;
      }
    }
    CHECK(count == 5);
    CHECK(!reader.broken());
  }
}

TEST_CASE("what is no frame, or too large, breaks the stream for good") {
  const auto good = encode(FrameKind::kGather, 1, std::vector<std::byte>(100));
  const auto breaks = [&](std::size_t at, int value, std::size_t most = 65536) {
    std::vector<std::byte> bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    FrameReader reader(most);
    reader.add(bytes);
    const bool none = !reader.next();
    const bool broken = reader.broken();
    reader.add(good);
    return none && broken && !reader.next();
  };
  CHECK(breaks(0, 0));  // the magic
  CHECK(breaks(4, 0));  // a kind that does not exist
  CHECK(breaks(4, 13));
  CHECK(breaks(4, 8));          // a position of 100 bytes
  CHECK(breaks(18, 2));         // 131172 bytes
  CHECK(breaks(23, 255));       // 2^63 bytes and more
  CHECK(breaks(16, 101, 100));  // one more than is accepted
  CHECK(!breaks(16, 100, 100));
}

TEST_CASE("contents of frames are read, or refused where they are none") {
  const auto refusal = parse_refusal(encode(Refusal{ErrorCode::kInvalidArgument, "no\n\xff"}));
  REQUIRE(refusal);
  CHECK(refusal->code == ErrorCode::kInvalidArgument);
  CHECK(refusal->text == "no??");
  CHECK(!parse_refusal(encode(Refusal{std::nullopt, "again"}))->code);
  CHECK(parse_refusal(encode(Refusal{ErrorCode::kFault, ""}))->code == ErrorCode::kCommunication);
  CHECK(parse_refusal(encode(Refusal{std::nullopt, std::string(5000, 'x')}))->text.size() == 1024);
  CHECK(!parse_refusal(std::vector<std::byte>(3)));
  CHECK(!parse_refusal(std::vector<std::byte>(4, std::byte{3})));
  CHECK(parse_welcome(encode_welcome("token")) == "token");
  CHECK(!parse_welcome(std::vector<std::byte>(67)));
  const std::vector<int> missing = {1, 3};
  CHECK(parse_list(encode_list(missing), 4) == missing);
  CHECK(!parse_list(encode_list(missing), 3));
  CHECK(!parse_list(encode_list(std::vector<int>{3, 1}), 4));
  CHECK(!parse_list(std::vector<std::byte>(3), 4));
  const Roster roster = {{std::byte{9}}, {{"10.0.0.1", 1}, {"::1", 2}}};
  const auto read = parse_roster(encode(roster), 2);
  REQUIRE(read);
  CHECK(read->nonce == roster.nonce);
  CHECK(read->endpoints == roster.endpoints);
  CHECK(!parse_roster(encode(roster), 3));
  const auto notice = parse_notice(encode(Notice{{0, 2}, "late\n"}), 3);
  REQUIRE(notice);
  CHECK(notice->ranks == std::vector<int>{0, 2});
  CHECK(notice->text == "late?");
  CHECK(!parse_notice(encode(Notice{{0, 2}, ""}), 2));
  CHECK(!parse_notice(std::vector<std::byte>(3), 3));
  CHECK(!parse_notice(std::vector<std::byte>(7, std::byte{1}), 3));
  CHECK(parse_notice(encode(Notice{{}, std::string(5000, 'x')}), 3)->text.size() == 1024);
  const auto position = parse_position(encode(Position{-1, 1ll << 60, 7}));
  REQUIRE(position);
  CHECK(position->generation == -1);
  CHECK(position->run == 1ll << 60);
  CHECK(position->round == 7);
  CHECK(!parse_position(std::vector<std::byte>(25)));
}

TEST_CASE("ranks have names") {
  const auto name = [](std::vector<int> which) { return name_ranks(which, 16); };
  CHECK(name({2}) == "rank 2 of 16");
  CHECK(name({1, 3}) == "ranks 1 and 3 of 16");
  CHECK(name({1, 3, 5}) == "ranks 1, 3 and 5 of 16");
  CHECK(name({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 others of 16");
}

}  // namespace
}  // namespace annulus::exchange
