#include "exchange/frames.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace annulus::exchange {
namespace {

constexpr char kHelloMagic[8] = {'a', 'n', 'n', 'u', 'l', 'u', 's', '\n'};
constexpr std::uint32_t kFrameMagic = 0x46524e41;  // "ANRF"
constexpr std::size_t kHostBytes = 52;             // an IPv6 address as text is at most 45
constexpr std::size_t kTokenBytes = 64;
constexpr std::size_t kEndpointBytes = 4 + kHostBytes;
constexpr std::size_t kMaxTextBytes = 1024;

// The maximum size of a frame's contents, by the kind of the frame.
struct KindLimit {
  FrameKind kind;
  std::size_t most;
};
constexpr KindLimit kLimits[] = {
    {FrameKind::kWelcome, 4 + kTokenBytes},
    {FrameKind::kRefusal, 4 + kMaxTextBytes},
    {FrameKind::kMissing, 4 * kMaxRanks},
    {FrameKind::kRoster, sizeof(Nonce) + kEndpointBytes* kMaxRanks},
    {FrameKind::kReady, 0},
    {FrameKind::kGo, 0},
    {FrameKind::kGather, Rendezvous::kMaxBytes},
    {FrameKind::kPosition, 24},
    {FrameKind::kNotice, 4 + 4 * kMaxRanks + kMaxTextBytes},
    {FrameKind::kClosed, 0},
    {FrameKind::kSurvivors, 4 * kMaxRanks},
    {FrameKind::kGeneration, 4 * kMaxRanks},
    {FrameKind::kQuestion, 0},
    {FrameKind::kAnswer, 0},
};

// The error codes that a refusal can have. The protocol sends the index in this list.
constexpr std::optional<ErrorCode> kRefusals[] = {std::nullopt, ErrorCode::kInvalidArgument,
                                                  ErrorCode::kCommunication};

// Replaces characters that are not printable, because a text that a stranger sent may reach a log.
std::string printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

class Writer {
 public:
  void bytes(std::span<const std::byte> from) { to_.insert(to_.end(), from.begin(), from.end()); }
  void number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  // Appends the text, padded with zeros to `size` bytes.
  void text(const std::string& from, std::size_t size) {
    const std::size_t kept = std::min(from.size(), size);
    bytes(std::as_bytes(std::span(from.data(), kept)));
    to_.resize(to_.size() + size - kept);
  }
  std::vector<std::byte> take() { return std::move(to_); }

 private:
  std::vector<std::byte> to_;
};

// Takes values from the front of bytes. The caller ensures that enough bytes remain.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) : rest_(from) {}
  bool empty() const { return rest_.empty(); }
  std::span<const std::byte> bytes(std::size_t count) {
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::uint64_t number(int count) {
    std::uint64_t value = 0;
    int shift = 0;
    for (const std::byte byte : bytes(static_cast<std::size_t>(count))) {
      value |= std::to_integer<std::uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }
  std::string text(std::size_t count) {
    const auto taken = bytes(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  // The text up to the first zero.
  std::string padded(std::size_t count) {
    std::string all = text(count);
    all.resize(std::min(all.size(), all.find('\0')));
    return all;
  }
  Nonce nonce() {
    Nonce nonce{};
    std::ranges::copy(bytes(nonce.size()), nonce.begin());
    return nonce;
  }
  Endpoint endpoint() {
    const auto port = static_cast<std::uint16_t>(number(4));
    return {printable(padded(kHostBytes)), port};
  }

 private:
  std::span<const std::byte> rest_;
};

void put_endpoint(Writer* to, const Endpoint& endpoint) {
  to->number(endpoint.port, 4);
  to->text(endpoint.host, kHostBytes);
}

}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  Writer to;
  to.bytes(std::as_bytes(std::span(kHelloMagic)));
  to.number(hello.version, 4);
  to.number(static_cast<std::uint32_t>(hello.rank), 4);
  to.number(static_cast<std::uint32_t>(hello.ranks), 4);
  to.number(hello.token.size(), 4);
  to.text(hello.token, kTokenBytes);
  to.bytes(hello.nonce);
  put_endpoint(&to, hello.endpoint);
  return to.take();
}

std::optional<Hello> parse_hello(std::span<const std::byte> bytes) {
  if (bytes.size() != kHelloBytes) return std::nullopt;
  if (std::memcmp(bytes.data(), kHelloMagic, sizeof(kHelloMagic)) != 0) return std::nullopt;
  Reader from(bytes.subspan(sizeof(kHelloMagic)));
  Hello hello;
  hello.version = static_cast<std::uint32_t>(from.number(4));
  hello.rank = static_cast<int>(from.number(4));
  hello.ranks = static_cast<int>(from.number(4));
  const std::uint64_t token_bytes = from.number(4);
  if (token_bytes > kMaxTokenBytes) return std::nullopt;
  hello.token = from.text(kTokenBytes).substr(0, static_cast<std::size_t>(token_bytes));
  if (hello.version != kProtocolVersion) return hello;
  hello.nonce = from.nonce();
  hello.endpoint = from.endpoint();
  return hello;
}

bool same_token(const std::string& a, const std::string& b) {
  unsigned char padded[2][kTokenBytes] = {};
  std::memcpy(padded[0], a.data(), std::min(a.size(), kTokenBytes));
  std::memcpy(padded[1], b.data(), std::min(b.size(), kTokenBytes));
  // `volatile` keeps the compiler from ending the loop early.
  volatile unsigned differences = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < kTokenBytes; ++i) {
    differences = differences | static_cast<unsigned>(padded[0][i] ^ padded[1][i]);
  }
  return differences == 0;
}

std::vector<std::byte> encode(FrameKind kind, std::uint64_t number,
                              std::span<const std::byte> bytes) {
  Writer to;
  to.number(kFrameMagic, 4);
  to.number(static_cast<std::uint32_t>(kind), 4);
  to.number(number, 8);
  to.number(bytes.size(), 8);
  to.bytes(bytes);
  return to.take();
}

void FrameReader::add(std::span<const std::byte> bytes) {
  if (broken_) return;
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  kept_.insert(kept_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameReader::next() {
  const std::span<const std::byte> rest = std::span(kept_).subspan(at_);
  if (broken_ || rest.size() < kFrameHeadBytes) return std::nullopt;
  Reader head(rest.first(kFrameHeadBytes));
  const bool ours = head.number(4) == kFrameMagic;
  Frame frame;
  frame.kind = static_cast<FrameKind>(head.number(4));
  frame.number = head.number(8);
  const std::uint64_t bytes = head.number(8);
  const auto limit = std::ranges::find(kLimits, frame.kind, &KindLimit::kind);
  if (!ours || limit == std::end(kLimits) || bytes > std::min(limit->most, most_)) {
    broken_ = true;
    kept_.clear();
    at_ = 0;
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(bytes);
  if (rest.size() - kFrameHeadBytes < size) return std::nullopt;
  const auto content = rest.subspan(kFrameHeadBytes, size);
  frame.bytes.assign(content.begin(), content.end());
  at_ += kFrameHeadBytes + size;
  return frame;
}

std::vector<std::byte> encode(const Refusal& refusal) {
  Writer to;
  const auto at = std::ranges::find(kRefusals, refusal.code);
  const auto place = at == std::end(kRefusals) ? std::size(kRefusals) - 1
                                               : static_cast<std::size_t>(at - kRefusals);
  to.number(place, 4);
  to.text(refusal.text, std::min(refusal.text.size(), kMaxTextBytes));
  return to.take();
}

std::optional<Refusal> parse_refusal(std::span<const std::byte> bytes) {
  if (bytes.size() < 4 || bytes.size() > 4 + kMaxTextBytes) return std::nullopt;
  Reader from(bytes);
  const std::uint64_t place = from.number(4);
  if (place >= std::size(kRefusals)) return std::nullopt;
  return Refusal{kRefusals[place], printable(from.text(bytes.size() - 4))};
}

std::vector<std::byte> encode_welcome(const std::string& token) {
  Writer to;
  to.number(token.size(), 4);
  to.text(token, kTokenBytes);
  return to.take();
}

std::optional<std::string> parse_welcome(std::span<const std::byte> bytes) {
  if (bytes.size() != 4 + kTokenBytes) return std::nullopt;
  Reader from(bytes);
  const std::uint64_t token_bytes = from.number(4);
  if (token_bytes > kMaxTokenBytes) return std::nullopt;
  return from.text(static_cast<std::size_t>(token_bytes));
}

std::vector<std::byte> encode_list(std::span<const int> ranks) {
  Writer to;
  for (const int rank : ranks) to.number(static_cast<std::uint32_t>(rank), 4);
  return to.take();
}

std::optional<std::vector<int>> parse_list(std::span<const std::byte> bytes, int ranks) {
  if (bytes.size() % 4 != 0) return std::nullopt;
  std::vector<int> missing;
  for (Reader from(bytes); !from.empty();) {
    const std::uint64_t rank = from.number(4);
    const int last = missing.empty() ? -1 : missing.back();
    if (rank >= static_cast<std::uint64_t>(ranks) || static_cast<int>(rank) <= last) {
      return std::nullopt;
    }
    missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

std::vector<std::byte> encode(const Roster& roster) {
  Writer to;
  to.bytes(roster.nonce);
  for (const Endpoint& endpoint : roster.endpoints) put_endpoint(&to, endpoint);
  return to.take();
}

std::optional<Roster> parse_roster(std::span<const std::byte> bytes, int ranks) {
  if (bytes.size() != sizeof(Nonce) + kEndpointBytes * static_cast<std::size_t>(ranks)) {
    return std::nullopt;
  }
  Reader from(bytes);
  Roster roster;
  roster.nonce = from.nonce();
  for (int rank = 0; rank < ranks; ++rank) roster.endpoints.push_back(from.endpoint());
  return roster;
}

std::vector<std::byte> encode(const Notice& notice) {
  Writer to;
  to.number(notice.ranks.size(), 4);
  to.bytes(encode_list(notice.ranks));
  to.text(notice.text, std::min(notice.text.size(), kMaxTextBytes));
  return to.take();
}

std::optional<Notice> parse_notice(std::span<const std::byte> bytes, int ranks) {
  if (bytes.size() < 4) return std::nullopt;
  Reader from(bytes);
  const std::uint64_t count = from.number(4);
  if (count > static_cast<std::uint64_t>(ranks) || bytes.size() - 4 < 4 * count) {
    return std::nullopt;
  }
  const auto list = parse_list(from.bytes(static_cast<std::size_t>(4 * count)), ranks);
  const std::size_t rest = bytes.size() - 4 - static_cast<std::size_t>(4 * count);
  if (!list || rest > kMaxTextBytes) return std::nullopt;
  return Notice{*list, printable(from.text(rest))};
}

std::vector<std::byte> encode(const Position& position) {
  Writer to;
  for (const std::int64_t value : {position.generation, position.run, position.round}) {
    to.number(static_cast<std::uint64_t>(value), 8);
  }
  return to.take();
}

std::optional<Position> parse_position(std::span<const std::byte> bytes) {
  if (bytes.size() != 24) return std::nullopt;
  Reader from(bytes);
  Position position;
  position.generation = static_cast<std::int64_t>(from.number(8));
  position.run = static_cast<std::int64_t>(from.number(8));
  position.round = static_cast<std::int64_t>(from.number(8));
  return position;
}

}  // namespace annulus::exchange
