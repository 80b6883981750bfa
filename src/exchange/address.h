#ifndef ANNULUS_EXCHANGE_ADDRESS_H_
#define ANNULUS_EXCHANGE_ADDRESS_H_

// Addresses of a meeting of ranks, as text. The functions only read and write memory: no files and
// no sockets.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace annulus::exchange {

// 16 random bytes that distinguish one meeting from another.
using Nonce = std::array<std::byte, 16>;

struct Endpoint {
  std::string host;  // a name, or an IP address without brackets
  std::uint16_t port = 0;

  std::string text() const;  // "10.0.0.1:29500", "[::1]:29500"
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// The parsed RendezvousOptions::address. It names a file if `path` is not empty, else an endpoint.
struct Address {
  Endpoint endpoint;
  std::string path;
};
// Throws Error{kInvalidArgument} if the text is not a valid address.
Address parse_address(const std::string& text);

// The file in which rank 0 publishes the address that it listens on:
//
//   annulus rendezvous 1
//   host 127.0.0.1
//   port 40321
//   nonce 00112233445566778899aabbccddeeff
//   end
//
// The last line marks the file as complete.
struct MeetingFile {
  Endpoint endpoint;
  Nonce nonce{};
};
inline constexpr std::int64_t kMaxFileBytes = 4096;
std::string file_text(const MeetingFile& file);
// Returns nothing if the bytes are not such a file. Then *problem is a predicate such as "is half
// written".
std::optional<MeetingFile> parse_file(std::span<const std::byte> bytes, std::string* problem);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_ADDRESS_H_
