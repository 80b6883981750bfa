#ifndef ANNULUS_EXCHANGE_FRAMES_H_
#define ANNULUS_EXCHANGE_FRAMES_H_

// What ranks send each other over sockets, as bytes in memory. Numbers are little-endian.
//
// Whoever connects says hello first, and nothing else is read from it before that is known to be
// one of the session's ranks:
//
//   0        8         12     16      20      24        88        104    108        160
//   | magic  | version | rank | ranks | token | token   | nonce   | port | host,    |
//   |        |         |      |       | bytes |         |         |      | zeros    |
//
// The first 160 bytes of every version have the first five fields at these places.
//
// Frames follow:
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
inline constexpr int kMostRanks = 1024;
inline constexpr std::size_t kMostTokenBytes = 63;

struct Hello {
  std::uint32_t version = kProtocolVersion;
  int rank = 0;
  int ranks = 0;
  std::string token;
  Nonce nonce{};
  Endpoint endpoint;  // where it listens; port 0: it could not
};
inline constexpr std::size_t kHelloBytes = 160;
std::vector<std::byte> encode(const Hello& hello);
// Nothing for what is no hello. Of another version only the first five fields are read.
std::optional<Hello> parse_hello(std::span<const std::byte> bytes);

// Takes as long wherever two tokens differ.
bool same_token(const std::string& a, const std::string& b);

enum class FrameKind : std::uint32_t {
  kWelcome = 1,      // rank 0 knows whoever said hello: the token
  kRefusal = 2,      // the meeting has failed, or it is not for you: a Refusal
  kMissing = 3,      // ranks that have not come yet
  kRoster = 4,       // where all ranks listen
  kReady = 5,        // to rank 0: connected to all
  kGo = 6,           // from rank 0: all are
  kGather = 7,       // bytes of the call of that number
  kPosition = 8,     // a Position, of the channel of that number
  kNotice = 9,       // a Notice, of the channel of that number
  kClosed = 10,      // the channel of that number is
  kSurvivors = 11,   // who may be of the generation of that number, as one of them sees it: a list
  kGeneration = 12,  // who is; what follows is of that generation
  kQuestion = 13,    // whether the other rank is there: the number of the question
  kAnswer = 14,      // it is, to the question of that number
};

struct Frame {
  FrameKind kind = FrameKind::kWelcome;
  std::uint64_t number = 0;
  std::vector<std::byte> bytes;
};
inline constexpr std::size_t kFrameHeadBytes = 24;
std::vector<std::byte> encode(FrameKind kind, std::uint64_t number,
                              std::span<const std::byte> bytes);

// Cuts a stream of bytes into frames, however it comes.
class FrameReader {
 public:
  // Nothing larger than `most` bytes behind its head is accepted, nor a frame of a kind that is
  // never that large.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void accept_up_to(std::size_t most) { most_ = most; }

  void add(std::span<const std::byte> bytes);
  // The next whole frame. Nothing where it has not come yet, or broken().
  std::optional<Frame> next();
  bool broken() const { return broken_; }  // no more frames come

 private:
  std::size_t most_;
  std::vector<std::byte> kept_;
  std::size_t at_ = 0;  // what was taken off the front of kept_
  bool broken_ = false;
};

// The contents of frames. Parsers return nothing for what is no such content.
struct Refusal {
  // Where it is nothing, whoever gets it may try again: it came to another meeting.
  std::optional<ErrorCode> code;
  std::string text;  // printable, at most 1 KiB
};
std::vector<std::byte> encode(const Refusal& refusal);
std::optional<Refusal> parse_refusal(std::span<const std::byte> bytes);

std::vector<std::byte> encode_welcome(const std::string& token);
std::optional<std::string> parse_welcome(std::span<const std::byte> bytes);

// Ranks, ascending.
std::vector<std::byte> encode_list(std::span<const int> ranks);
std::optional<std::vector<int>> parse_list(std::span<const std::byte> bytes, int ranks);

struct Roster {
  Nonce nonce{};  // of the connections that follow
  std::vector<Endpoint> endpoints;
};
std::vector<std::byte> encode(const Roster& roster);
std::optional<Roster> parse_roster(std::span<const std::byte> bytes, int ranks);

// Why a rank does not go on.
struct Notice {
  std::vector<int> ranks;  // without whom it cannot; ascending
  std::string text;        // printable, at most 1 KiB
};
std::vector<std::byte> encode(const Notice& notice);
std::optional<Notice> parse_notice(std::span<const std::byte> bytes, int ranks);

std::vector<std::byte> encode(const Position& position);
std::optional<Position> parse_position(std::span<const std::byte> bytes);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_FRAMES_H_
