#ifndef ANNULUS_EXCHANGE_SOCKET_H_
#define ANNULUS_EXCHANGE_SOCKET_H_

// TCP sockets that never block. All waiting is done in a Poller, until a given time.

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

  // The address in numeric form.
  Endpoint endpoint() const;
};

// The addresses of a host name or of a numeric address. Empty if there are none, or if they were
// not found by `end`. Then *problem has the reason.
std::vector<SocketAddress> resolve(const Endpoint& endpoint, SteadyClock::time_point end,
                                   std::string* problem);
// Parses a numeric IP address. Returns nothing if the text is a name.
std::optional<SocketAddress> numeric_address(const Endpoint& endpoint);

// The local address of a connection. Nothing if the socket has none.
std::optional<SocketAddress> own_address(const Socket& socket);
// The remote address for messages, such as "10.0.0.7:41122".
std::string peer_text(const Socket& socket);

// Both functions return a closed socket if they fail. Then *problem has the reason.
Socket listen_at(const SocketAddress& address, std::string* problem);
Socket connect_to(const SocketAddress& address, SteadyClock::time_point end, std::string* problem);
// Accepts a connection. Returns a closed socket if no connection is waiting.
Socket accept_from(const Socket& listener);

// Waits for several sockets at once.
class Poller {
 public:
  // `events` is POLLIN, POLLOUT or both.
  void add(int handle, short events);
  // Returns false if nothing has happened by `end`.
  bool wait(SteadyClock::time_point end);
  // The events of the socket at the last wait: it can be read or written, or it has ended. The
  // lookup is fast if sockets are queried in the order in which they were added.
  short events(int handle) const;

 private:
  std::vector<pollfd> polled_;
  mutable std::size_t next_ = 0;  // the place after the handle that was queried last
};

// A connection to another rank, which sends and receives frames.
class Link {
 public:
  Link() : in_(0) {}
  // Accepts frames whose contents have up to `most` bytes.
  Link(Socket socket, std::size_t most) : socket_(std::move(socket)), in_(most) {}

  bool is_open() const { return socket_.is_open(); }
  const Socket& socket() const { return socket_; }
  int handle() const { return socket_.handle(); }
  void close();
  FrameReader& in() { return in_; }

  // Reads what has arrived, up to `most` bytes. Returns false if the connection has ended or if the
  // bytes are not a sequence of frames. Then *reason has the cause.
  bool receive(std::size_t most, std::string* reason);

  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  void put(Bytes frame) { out_.push_back(std::move(frame)); }
  void put(std::vector<std::byte> frame) {
    put(std::make_shared<const std::vector<std::byte>>(std::move(frame)));
  }
  // Sends as much as is possible without waiting. Returns false if the connection has ended; then
  // nothing is queued any more.
  bool flush(std::string* reason);
  // The number of frames that are not sent completely.
  std::size_t queued() const { return out_.size(); }
  // Whether the host of the other side has received all that was sent.
  bool arrived() const;

 private:
  Socket socket_;
  FrameReader in_;
  std::deque<Bytes> out_;
  std::size_t sent_ = 0;  // bytes of the first queued frame that were sent
};

// Sends the queued frames on all links, until `end` at the latest.
void flush_all(std::span<Link> links, SteadyClock::time_point end);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_SOCKET_H_
