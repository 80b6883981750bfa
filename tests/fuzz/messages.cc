// Data that ranks read from sockets and files, before and after they know each other. The first
// byte selects the kind of the other bytes: a rendezvous file, a hello message, the contents of
// frames, an address, a stream of frames in pieces (the end of the bytes determines the sizes), or
// messages about the next generation. These messages come in any order, and may be false.
//
// Data that are read must be written as the same bytes. A stream in pieces must give the same
// frames as the whole stream, and a reader must not keep more than its limit. Whatever a rank
// receives, its set of members may only shrink until it follows a decision, and must contain the
// rank itself.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exchange/address.h"
#include "exchange/frames.h"
#include "exchange/survivors.h"
#include "fuzz/fuzz.h"

namespace annulus::fuzz {
namespace {

using namespace annulus::exchange;
using Content = std::span<const std::byte>;

void check_file(Content bytes) {
  std::string problem;
  const auto file = parse_file(bytes, &problem);
  if (!file) {
    if (problem.empty()) wrong("a file is refused without a word");
    return;
  }
  const std::string text = file_text(*file);
  const auto again = parse_file(std::as_bytes(std::span(text.data(), text.size())), &problem);
  if (!again || again->nonce != file->nonce || !(again->endpoint == file->endpoint)) {
    wrong("a file is read otherwise than it was written: {}", text);
  }
}

void check_hello(Content bytes) {
  const auto hello = parse_hello(bytes);
  if (!hello) return;
  if (hello->version != kProtocolVersion) return;
  const auto again = parse_hello(encode(*hello));
  if (!again || again->rank != hello->rank || again->ranks != hello->ranks ||
      !same_token(again->token, hello->token) || again->nonce != hello->nonce ||
      !(again->endpoint == hello->endpoint)) {
    wrong("a hello of rank {} is read otherwise than it was written", hello->rank);
  }
  if (same_token(hello->token, hello->token + "x")) wrong("a longer token is the same");
}

void check_contents(Content bytes) {
  if (const auto refusal = parse_refusal(bytes)) {
    const auto again = parse_refusal(encode(*refusal));
    if (!again || again->code != refusal->code || again->text != refusal->text) {
      wrong("a refusal is read otherwise than it was written");
    }
  }
  if (const auto token = parse_welcome(bytes);
      token && parse_welcome(encode_welcome(*token)) != token) {
    wrong("a welcome is read otherwise than it was written");
  }
  if (const auto position = parse_position(bytes)) {
    const auto again = encode(*position);
    if (!std::ranges::equal(again, bytes)) wrong("a position is written otherwise");
  }
  for (const int ranks : {1, 2, 5, kMaxRanks}) {
    if (const auto missing = parse_list(bytes, ranks)) {
      if (!std::ranges::equal(encode_list(*missing), bytes)) wrong("missing ranks change");
      if (missing->size() > static_cast<std::size_t>(ranks))
        wrong("more are missing than there are");
    }
    if (const auto notice = parse_notice(bytes, ranks)) {
      const auto again = parse_notice(encode(*notice), ranks);
      if (!again || again->ranks != notice->ranks || again->text != notice->text) {
        wrong("a notice is read otherwise than it was written");
      }
      for (const int rank : notice->ranks) {
        if (rank < 0 || rank >= ranks) wrong("a notice blames rank {} of {}", rank, ranks);
      }
    }
    if (const auto roster = parse_roster(bytes, ranks)) {
      const auto again = parse_roster(encode(*roster), ranks);
      if (!again || again->nonce != roster->nonce || again->endpoints != roster->endpoints) {
        wrong("a roster is read otherwise than it was written");
      }
    }
  }
}

void check_address(Content bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  refusal_of([&] {
    const Address address = parse_address(text);
    if (!address.path.empty()) return;
    if (!(parse_address("tcp:" + address.endpoint.text()).endpoint == address.endpoint)) {
      wrong("{} is another address", text);
    }
  });
}

std::vector<std::byte> frames_of(Content stream, std::size_t most, const std::uint8_t* steps,
                                 std::size_t count) {
  FrameReader reader(most);
  std::vector<std::byte> all;
  std::size_t turn = 0;
  while (!stream.empty()) {
    const std::size_t wanted = count == 0 ? stream.size() : 1u + steps[turn++ % count];
    const std::size_t taken = std::min(wanted, stream.size());
    reader.add(stream.first(taken));
    stream = stream.subspan(taken);
    while (const auto frame = reader.next()) {
      if (frame->bytes.size() > most)
        wrong("a frame of {} bytes, not {}", frame->bytes.size(), most);
      const auto written = encode(frame->kind, frame->number, frame->bytes);
      all.insert(all.end(), written.begin(), written.end());
    }
  }
  return all;
}

void check_stream(Content bytes) {
  if (bytes.empty()) return;
  const std::size_t most = std::to_integer<std::size_t>(bytes[0]) * 64;
  const Content stream = bytes.subspan(1);
  const std::size_t count = std::min<std::size_t>(stream.size(), 8);
  const auto* const steps = reinterpret_cast<const std::uint8_t*>(stream.last(count).data());
  const auto whole = frames_of(stream, most, nullptr, 0);
  if (whole != frames_of(stream, most, steps, count)) wrong("pieces give other frames");
  if (!std::ranges::equal(whole, stream.first(std::min(whole.size(), stream.size())))) {
    wrong("frames are written otherwise than they were read");
  }
}

// The ranks whose bits are set in `bits`.
std::vector<int> list_of(std::uint32_t bits, int ranks) {
  std::vector<int> list;
  for (int rank = 0; rank < ranks; ++rank) {
    if ((bits >> rank & 1) != 0) list.push_back(rank);
  }
  return list;
}

// A rank that receives lists from others. The first bytes are the number of ranks, the rank, and
// the ranks that it leaves out. Each two further bytes are a sender and its list.
void check_survivors(Content bytes) {
  if (bytes.size() < 3) return;
  const auto number = [&](std::size_t at) { return std::to_integer<std::uint32_t>(bytes[at]); };
  const int ranks = 1 + static_cast<int>(number(0) % 8);
  const int rank = static_cast<int>(number(1)) % ranks;
  Survivors survivors(rank, ranks, list_of(number(2), ranks));
  std::vector<std::optional<std::vector<int>>> said(static_cast<std::size_t>(ranks));
  bool follows = false;
  for (std::size_t at = 3; at + 1 < bytes.size(); at += 2) {
    const std::vector<int> before = survivors.members();
    const int from = static_cast<int>(number(at) % 8) % ranks;
    const std::vector<int> list = list_of(number(at + 1), ranks);
    const bool with_us = std::ranges::binary_search(list, rank);
    survivors.take_change();
    switch (from == rank ? 3 : number(at) >> 3 & 3) {
      case 0:
        survivors.gone(from);
        break;
      case 1:
        survivors.heard(from, list);
        said[static_cast<std::size_t>(from)] = list;
        break;
      case 2:
        survivors.decided(from, list);
        if (!follows && with_us && survivors.members() != list) wrong("a decision is not followed");
        if (!with_us) said[static_cast<std::size_t>(from)] = list;
        follows = follows || with_us;
        break;
      default:
        survivors.leave_out_silent();
    }
    const std::vector<int>& members = survivors.members();
    if (!survivors.has(rank)) wrong("rank {} leaves itself out", rank);
    if (!follows) {
      if (!std::ranges::includes(before, members)) wrong("who was left out comes back");
      if (survivors.take_change() != (members != before)) wrong("a change is not told");
      const bool all_said = std::ranges::all_of(members, [&](int one) {
        return one == rank || said[static_cast<std::size_t>(one)] == members;
      });
      if (survivors.agreed() != all_said) wrong("members have agreed that said something else");
    } else if (!survivors.agreed()) {
      wrong("a decision is not kept");
    }
    for (const int one : survivors.awaited()) {
      if (!survivors.has(one) || one == rank) wrong("rank {} is waited for", one);
    }
  }
}

}  // namespace
}  // namespace annulus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace annulus::fuzz;
  if (size == 0) return 0;
  const Content bytes = std::as_bytes(std::span(data + 1, size - 1));
  constexpr void (*kChecks[])(Content) = {check_file,    check_hello,  check_contents,
                                          check_address, check_stream, check_survivors};
  kChecks[data[0] % std::size(kChecks)](bytes);
  return 0;
}
