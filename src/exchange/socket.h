#ifndef ANNULUS_EXCHANGE_SOCKET_H_
#define ANNULUS_EXCHANGE_SOCKET_H_

// TCP sockets that never block: what waits, waits in a Poller until a moment that it is given.

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exchange/frames.h"

namespace annulus::exchange {

using SteadyClock = std::chrono::steady_clock;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int handle) : handle_(handle) {}
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Socket();

  int handle() const { return handle_; }
  bool is_open() const { return handle_ >= 0; }

 private:
  int handle_ = -1;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  // As text of numbers.
  Endpoint endpoint() const;
};

// The addresses of a name or of a numeric address. Empty where there are none, or where they were
// not found by `end`; *problem says why.
std::vector<SocketAddress> resolve(const Endpoint& endpoint, SteadyClock::time_point end,
                                   std::string* problem);
// The address that the text is, if it is an IP address; nothing for a name.
std::optional<SocketAddress> numeric_address(const Endpoint& endpoint);

// The end of a connection on this side. Nothing where the socket has none.
std::optional<SocketAddress> own_address(const Socket& socket);
// "10.0.0.7:41122", for messages.
std::string peer_text(const Socket& socket);

// Closed, with *problem saying why, where that fails.
Socket listen_at(const SocketAddress& address, std::string* problem);
Socket connect_to(const SocketAddress& address, SteadyClock::time_point end, std::string* problem);
// A connection that came to a listener; closed where none is there.
Socket accept_from(const Socket& listener);

// Waits for several sockets at once.
class Poller {
 public:
  // POLLIN, POLLOUT or both.
  void add(int handle, short events);
  // False: nothing has happened by `end`.
  bool wait(SteadyClock::time_point end);
  // Whether the socket can be read, written or has ended, as of the last wait. Quick where sockets
  // are asked for in the order in which they were added.
  short events(int handle) const;

 private:
  std::vector<pollfd> polled_;
  mutable std::size_t next_ = 0;  // behind the one that was asked for last
};

// A connection to another rank: frames in, frames out.
class Link {
 public:
  Link() : in_(0) {}
  // Takes frames of up to `most` bytes.
  Link(Socket socket, std::size_t most) : socket_(std::move(socket)), in_(most) {}

  bool is_open() const { return socket_.is_open(); }
  const Socket& socket() const { return socket_; }
  int handle() const { return socket_.handle(); }
  void close();
  FrameReader& in() { return in_; }

  // Reads what is there, up to `most` bytes. False: the connection has ended, or what came is no
  // sequence of frames; *reason says which.
  bool receive(std::size_t most, std::string* reason);

  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  void put(Bytes frame) { out_.push_back(std::move(frame)); }
  void put(std::vector<std::byte> frame) {
    put(std::make_shared<const std::vector<std::byte>>(std::move(frame)));
  }
  // Sends what goes without waiting. False: the connection has ended, and nothing is queued now.
  bool flush(std::string* reason);
  // Frames that have not gone whole.
  std::size_t queued() const { return out_.size(); }
  // Whether the other side's host has all that was sent.
  bool arrived() const;

 private:
  Socket socket_;
  FrameReader in_;
  std::deque<Bytes> out_;
  std::size_t sent_ = 0;  // bytes of the first of them
};

// Sends what is queued on all of them until `end`.
void flush_all(std::span<Link> links, SteadyClock::time_point end);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_SOCKET_H_
