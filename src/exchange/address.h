#ifndef ANNULUS_EXCHANGE_ADDRESS_H_
#define ANNULUS_EXCHANGE_ADDRESS_H_

// Where ranks meet, as text. All of it works on memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace annulus::exchange {

// 16 random bytes that tell one meeting from another.
using Nonce = std::array<std::byte, 16>;

struct Endpoint {
  std::string host;  // a name, or an IP address without brackets
  std::uint16_t port = 0;

  std::string text() const;  // "10.0.0.1:29500", "[::1]:29500"
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// RendezvousOptions::address: a file where `path` is not empty.
struct Address {
  Endpoint endpoint;
  std::string path;
};
// Throws Error{kInvalidArgument}.
Address parse_address(const std::string& text);

// The file by which rank 0 says where it listens:
//
//   annulus rendezvous 1
//   host 127.0.0.1
//   port 40321
//   nonce 00112233445566778899aabbccddeeff
//   end
//
// The last line tells that it is whole.
struct MeetingFile {
  Endpoint endpoint;
  Nonce nonce{};
};
inline constexpr std::int64_t kMostFileBytes = 4096;
std::string file_text(const MeetingFile& file);
// Nothing where it is not such a file, and then *problem is "is half written" or the like.
std::optional<MeetingFile> parse_file(std::span<const std::byte> bytes, std::string* problem);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_ADDRESS_H_
