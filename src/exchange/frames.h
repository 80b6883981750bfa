#ifndef ANNULUS_EXCHANGE_FRAMES_H_
#define ANNULUS_EXCHANGE_FRAMES_H_

// The messages that ranks send each other over sockets, as bytes in memory. Numbers are
// little-endian.
//
// The rank that connects sends a hello first. Nothing else is read from it until the hello shows
// the session token of this rendezvous:
//
//   0        8         12     16      20      24        88        104    108        160
//   | magic  | version | rank | ranks | token | token   | nonce   | port | host,    |
//   |        |         |      |       | bytes |         |         |      | zeros    |
//
// In every version of the protocol the first 160 bytes have the first five fields at these places.
//
// Frames follow the hello:
//
//   0       4      8        16      24
//   | magic | kind | number | bytes | ...

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "annulus/communicator.h"
#include "annulus/types.h"
#include "exchange/address.h"

namespace annulus::exchange {

inline constexpr std::uint32_t kProtocolVersion = 3;
inline constexpr int kMaxRanks = 1024;
inline constexpr std::size_t kMaxTokenBytes = 63;

struct Hello {
  std::uint32_t version = kProtocolVersion;
  int rank = 0;
  int ranks = 0;
  std::string token;
  Nonce nonce{};
  Endpoint endpoint;  // the address that the rank listens on; port 0 if it could not listen
};
inline constexpr std::size_t kHelloBytes = 160;
std::vector<std::byte> encode(const Hello& hello);
// Returns nothing if the bytes are not a hello. If the version differs, only the first five fields
// are read.
std::optional<Hello> parse_hello(std::span<const std::byte> bytes);

// Compares in constant time: the duration does not depend on the place of the difference.
bool same_token(const std::string& a, const std::string& b);

enum class FrameKind : std::uint32_t {
  kWelcome = 1,  // rank 0 accepts the rank that sent a hello; contents: the token
  // the meeting has failed, or the rank belongs to another meeting; contents: a Refusal
  kRefusal = 2,
  kMissing = 3,   // the ranks that have not arrived yet; contents: a list
  kRoster = 4,    // the addresses at which all ranks listen; contents: a Roster
  kReady = 5,     // reports to rank 0 that this rank is connected to all others
  kGo = 6,        // rank 0 reports that all ranks are connected
  kGather = 7,    // the bytes of the all-gather with this number
  kPosition = 8,  // a Position on the channel with this number
  kNotice = 9,    // a Notice on the channel with this number
  kClosed = 10,   // the sender has closed the channel with this number
  // the ranks that may be members of the generation with this number, according to the sender: a
  // list
  kSurvivors = 11,
  // the decided members of that generation: a list; what follows belongs to that generation
  kGeneration = 12,
  kQuestion = 13,  // a question; the receiver answers with the same number if it is alive
  kAnswer = 14,    // the answer to the question with this number
};

struct Frame {
  FrameKind kind = FrameKind::kWelcome;
  std::uint64_t number = 0;
  std::vector<std::byte> bytes;
};
inline constexpr std::size_t kFrameHeadBytes = 24;
std::vector<std::byte> encode(FrameKind kind, std::uint64_t number,
                              std::span<const std::byte> bytes);

// Splits a stream of bytes into frames, however the bytes are divided on arrival.
class FrameReader {
 public:
  // Rejects a frame if its contents have more than `most` bytes, or more than its kind may have.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void accept_up_to(std::size_t most) { most_ = most; }

  void add(std::span<const std::byte> bytes);
  // The next complete frame. Nothing if it has not arrived yet, or if broken().
  std::optional<Frame> next();
  // the bytes that arrived are not a frame, so no more frames follow
  bool broken() const { return broken_; }

 private:
  std::size_t most_;
  std::vector<std::byte> kept_;
  std::size_t at_ = 0;  // the number of bytes of kept_ that were consumed
  bool broken_ = false;
};

// The contents of frames. A parser returns nothing if the bytes are not such contents.
struct Refusal {
  // If it has no value, the receiver may try again: it has connected to another meeting.
  std::optional<ErrorCode> code;
  std::string text;  // printable, at most 1 KiB
};
std::vector<std::byte> encode(const Refusal& refusal);
std::optional<Refusal> parse_refusal(std::span<const std::byte> bytes);

std::vector<std::byte> encode_welcome(const std::string& token);
std::optional<std::string> parse_welcome(std::span<const std::byte> bytes);

// A list of ranks in ascending order.
std::vector<std::byte> encode_list(std::span<const int> ranks);
std::optional<std::vector<int>> parse_list(std::span<const std::byte> bytes, int ranks);

struct Roster {
  Nonce nonce{};  // the nonce for the connections that follow
  std::vector<Endpoint> endpoints;
};
std::vector<std::byte> encode(const Roster& roster);
std::optional<Roster> parse_roster(std::span<const std::byte> bytes, int ranks);

// The reason why a rank stops.
struct Notice {
  std::vector<int> ranks;  // the ranks that it cannot continue without; ascending
  std::string text;        // printable, at most 1 KiB
};
std::vector<std::byte> encode(const Notice& notice);
std::optional<Notice> parse_notice(std::span<const std::byte> bytes, int ranks);

std::vector<std::byte> encode(const Position& position);
std::optional<Position> parse_position(std::span<const std::byte> bytes);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_FRAMES_H_
