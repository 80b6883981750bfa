#include "exchange/address.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/fail.h"

namespace annulus::exchange {
namespace {

constexpr std::size_t kMaxHost = 253;  // the longest name in DNS
constexpr std::string_view kTitle = "annulus rendezvous 1";

std::optional<std::uint16_t> port_of(std::string_view text) {
  unsigned value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  if (!whole || value < 1 || value > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(value);
}

// Accepts names and IP addresses. An IPv6 address may end with the name of an interface.
bool is_host(std::string_view text) {
  if (text.empty() || text.size() > kMaxHost) return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && std::string_view("-._:%").find(c) == std::string_view::npos) return false;
  }
  return true;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::optional<Nonce> nonce_of(std::string_view text) {
  Nonce nonce{};
  if (text.size() != 2 * nonce.size()) return std::nullopt;
  for (std::size_t i = 0; i < nonce.size(); ++i) {
    const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    nonce[i] = static_cast<std::byte>(high * 16 + low);
  }
  return nonce;
}

// Removes the first line from `rest` and returns it. Returns nothing if no line end follows.
std::optional<std::string_view> take_line(std::string_view* rest) {
  const std::size_t end = rest->find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string Endpoint::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

Address parse_address(const std::string& text) {
  Address address;
  const std::string_view all = text;
  const auto refuse = [&](const char* problem) {
    base::fail(ErrorCode::kInvalidArgument,
               "the address '{}' of a rendezvous {}; give tcp:HOST:PORT or file:PATH", text,
               problem);
  };
  if (all.find('\0') != std::string_view::npos) refuse("has a zero byte in it");
  if (all.starts_with("file:")) {
    address.path = all.substr(5);
    if (address.path.empty() || address.path.back() == '/') refuse("names no file");
    return address;
  }
  if (!all.starts_with("tcp:")) refuse("has an unknown kind");
  const std::string_view place = all.substr(4);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) refuse("has no port");
  std::string_view host = place.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    refuse("has an IPv6 address without brackets");
  }
  if (!is_host(host)) refuse("has an invalid host");
  const std::optional<std::uint16_t> port = port_of(place.substr(colon + 1));
  if (!port) refuse("has no port from 1 to 65535");
  address.endpoint = {std::string(host), *port};
  return address;
}

std::string file_text(const MeetingFile& file) {
  std::string nonce;
  for (const std::byte byte : file.nonce)
    nonce += fmt::format("{:02x}", std::to_integer<int>(byte));
  return fmt::format("{}\nhost {}\nport {}\nnonce {}\nend\n", kTitle, file.endpoint.host,
                     file.endpoint.port, nonce);
}

std::optional<MeetingFile> parse_file(std::span<const std::byte> bytes, std::string* problem) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  *problem = "is half written";
  if (kTitle.starts_with(rest)) return std::nullopt;
  const std::optional<std::string_view> title = take_line(&rest);
  if (title != kTitle) {
    *problem = "was not written by rank 0 of this version";
    return std::nullopt;
  }
  constexpr std::string_view kNames[] = {"host ", "port ", "nonce "};
  std::string_view values[3];
  for (int i = 0; i < 3; ++i) {
    const std::optional<std::string_view> line = take_line(&rest);
    if (!line) return std::nullopt;
    if (!line->starts_with(kNames[i])) {
      *problem = fmt::format("lacks the line that begins with '{}' at its place", kNames[i]);
      return std::nullopt;
    }
    values[i] = line->substr(kNames[i].size());
  }
  if (!take_line(&rest)) return std::nullopt;
  const std::optional<std::uint16_t> port = port_of(values[1]);
  const std::optional<Nonce> nonce = nonce_of(values[2]);
  if (!is_host(values[0]) || !port || !nonce) {
    *problem = "has an invalid host, port or nonce";
    return std::nullopt;
  }
  return MeetingFile{{std::string(values[0]), *port}, *nonce};
}

}  // namespace annulus::exchange
