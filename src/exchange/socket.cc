#include "exchange/socket.h"

#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace annulus::exchange {
namespace {

constexpr std::size_t kChunkBytes = 16384;
constexpr int kBacklog = 4096;  // the system also limits it

// Frames are small, so they are sent without delay. The caller has its own deadlines, so keepalive
// is off.
void set_options(const Socket& socket) {
  const int on = 1, off = 0;
  setsockopt(socket.handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket.handle(), SOL_SOCKET, SO_KEEPALIVE, &off, sizeof(off));
}

const sockaddr* generic(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

Socket new_socket(const SocketAddress& address, std::string* problem) {
  Socket made(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!made.is_open()) *problem = base::describe_errno(errno);
  return made;
}

std::optional<SocketAddress> peer_address(const Socket& socket) {
  SocketAddress address;
  address.bytes = sizeof(address.storage);
  auto* const to = reinterpret_cast<sockaddr*>(&address.storage);
  if (getpeername(socket.handle(), to, &address.bytes) != 0) return std::nullopt;
  return address;
}

std::vector<SocketAddress> addresses_of(const addrinfo* found) {
  std::vector<SocketAddress> all;
  for (; found != nullptr; found = found->ai_next) {
    if (found->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress address;
    std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
    address.bytes = found->ai_addrlen;
    all.push_back(address);
  }
  return all;
}

timespec until(SteadyClock::time_point end) {
  const auto left = std::max<SteadyClock::duration>(end - SteadyClock::now(), {});
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  return {static_cast<time_t>(nanos / 1000000000), static_cast<long>(nanos % 1000000000)};
}

// Names are resolved by a thread of the C library, because that may take longer than the caller's
// time limit.
struct Lookup {
  std::string host;
  std::string port;
  addrinfo hints{};
  gaicb request{};

  explicit Lookup(const Endpoint& endpoint)
      : host(endpoint.host), port(std::to_string(endpoint.port)) {
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    request.ar_name = host.c_str();
    request.ar_service = port.c_str();
    request.ar_request = &hints;
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  ~Lookup() {
    if (request.ar_result != nullptr) freeaddrinfo(request.ar_result);
  }
};

}  // namespace

Socket::~Socket() {
  if (handle_ >= 0) ::close(handle_);
}

Endpoint SocketAddress::endpoint() const {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "0";
  getnameinfo(generic(*this), bytes, host, sizeof(host), port, sizeof(port),
              NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, static_cast<std::uint16_t>(std::stoi(port))};
}

std::optional<SocketAddress> numeric_address(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found) != 0) return std::nullopt;
  const std::vector<SocketAddress> all = addresses_of(found);
  freeaddrinfo(found);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

std::vector<SocketAddress> resolve(const Endpoint& endpoint, SteadyClock::time_point end,
                                   std::string* problem) {
  if (const std::optional<SocketAddress> address = numeric_address(endpoint)) return {*address};
  auto lookup = std::make_unique<Lookup>(endpoint);
  gaicb* list[] = {&lookup->request};
  int code = getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr);
  while (code == 0 && (code = gai_error(list[0])) == EAI_INPROGRESS) {
    const timespec left = until(end);
    if (left.tv_sec == 0 && left.tv_nsec == 0) break;
    gai_suspend(list, 1, &left);
    code = 0;
  }
  if (code == EAI_INPROGRESS) {
    *problem = "its name is still being looked up";
    // The thread of the C library writes to it later, so it cannot be freed.
    if (gai_cancel(list[0]) == EAI_NOTCANCELED) static_cast<void>(lookup.release());
    return {};
  }
  if (code != 0) {
    *problem = gai_strerror(code);
    return {};
  }
  return addresses_of(lookup->request.ar_result);
}

std::optional<SocketAddress> own_address(const Socket& socket) {
  SocketAddress address;
  address.bytes = sizeof(address.storage);
  auto* const to = reinterpret_cast<sockaddr*>(&address.storage);
  if (getsockname(socket.handle(), to, &address.bytes) != 0) return std::nullopt;
  return address;
}

std::string peer_text(const Socket& socket) {
  const std::optional<SocketAddress> address = peer_address(socket);
  return address ? address->endpoint().text() : "an unknown address";
}

Socket listen_at(const SocketAddress& address, std::string* problem) {
  Socket listener = new_socket(address, problem);
  if (!listener.is_open()) return listener;
  // A port can be used again although a process that listened on it has just ended.
  const int on = 1;
  setsockopt(listener.handle(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener.handle(), generic(address), address.bytes) == 0 &&
      listen(listener.handle(), kBacklog) == 0) {
    return listener;
  }
  *problem = base::describe_errno(errno);
  return {};
}

Socket connect_to(const SocketAddress& address, SteadyClock::time_point end, std::string* problem) {
  Socket made = new_socket(address, problem);
  if (!made.is_open()) return made;
  set_options(made);
  int code = connect(made.handle(), generic(address), address.bytes) == 0 ? 0 : errno;
  if (code == EINPROGRESS || code == EINTR) {
    Poller poller;
    poller.add(made.handle(), POLLOUT);
    socklen_t bytes = sizeof(code);
    if (!poller.wait(end)) {
      code = ETIMEDOUT;
    } else if (getsockopt(made.handle(), SOL_SOCKET, SO_ERROR, &code, &bytes) != 0) {
      code = errno;
    }
  }
  // If no process listens at the port, and the system chooses the same port for this side, the
  // socket can become connected to itself.
  const auto own = own_address(made), peer = peer_address(made);
  if (code == 0 && own && peer && own->endpoint() == peer->endpoint()) code = ECONNREFUSED;
  if (code == 0) return made;
  *problem = base::describe_errno(code);
  return {};
}

Socket accept_from(const Socket& listener) {
  Socket made(accept4(listener.handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (made.is_open()) set_options(made);
  return made;
}

void Poller::add(int handle, short events) { polled_.push_back({handle, events, 0}); }

bool Poller::wait(SteadyClock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now());
    const auto millis = std::clamp<std::int64_t>(left.count(), 0, 60000);
    const int count = poll(polled_.data(), polled_.size(), static_cast<int>(millis));
    if (count > 0) return true;
    if (SteadyClock::now() >= end) return false;
  }
}

short Poller::events(int handle) const {
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    const std::size_t at = (next_ + i) % polled_.size();
    if (polled_[at].fd != handle) continue;
    next_ = at + 1;
    return polled_[at].revents;
  }
  return 0;
}

void Link::close() {
  socket_ = Socket();
  out_.clear();
  sent_ = 0;
}

bool Link::receive(std::size_t most, std::string* reason) {
  std::byte chunk[kChunkBytes];
  for (std::size_t done = 0; done < most;) {
    const std::size_t wanted = std::min(most - done, sizeof(chunk));
    const ssize_t count = recv(handle(), chunk, wanted, 0);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
      in_.add({chunk, static_cast<std::size_t>(count)});
      if (static_cast<std::size_t>(count) < wanted) return true;
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    *reason = count == 0 ? std::string("it closed the connection") : base::describe_errno(errno);
    return false;
  }
  return true;
}

bool Link::flush(std::string* reason) {
  while (!out_.empty()) {
    const std::vector<std::byte>& first = *out_.front();
    const ssize_t count = send(handle(), first.data() + sent_, first.size() - sent_, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
      *reason = base::describe_errno(errno);
      out_.clear();
      sent_ = 0;
      return false;
    }
    sent_ += static_cast<std::size_t>(count);
    if (sent_ < first.size()) continue;
    out_.pop_front();
    sent_ = 0;
  }
  return true;
}

bool Link::arrived() const {
  int waiting = 0;
  return out_.empty() && (ioctl(handle(), SIOCOUTQ, &waiting) != 0 || waiting == 0);
}

void flush_all(std::span<Link> links, SteadyClock::time_point end) {
  while (true) {
    Poller poller;
    bool waits = false;
    for (Link& link : links) {
      std::string reason;
      if (!link.is_open() || link.queued() == 0) continue;
      if (!link.flush(&reason)) {
        link.close();
      } else if (link.queued() > 0) {
        poller.add(link.handle(), POLLOUT);
        waits = true;
      }
    }
    if (!waits || SteadyClock::now() >= end) return;
    poller.wait(std::min(end, SteadyClock::now() + std::chrono::milliseconds(10)));
  }
}

}  // namespace annulus::exchange
