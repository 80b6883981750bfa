#include "simulator/nccl/wire.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/env.h"
#include "base/files.h"
#include "base/hash.h"

namespace annulus::simulator::nccl {
namespace {

using abi::NcclResult;
using Clock = std::chrono::steady_clock;

constexpr char kMagic[] = "annulus simulated nccl 1";
constexpr int kPollMillis = 20;
// The time to wait for a meeting place that no process serves, or not any more.
constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kGreeting = std::chrono::seconds(1);  // the time to wait for the greeting of a
                                                     // connection
// The time to send what is left when a communicator ends.
constexpr auto kFarewell = std::chrono::milliseconds(200);

struct Hello {
  char magic[sizeof(kMagic)] = {};
  Member member;
};
// The answer of the meeting place. If its code is 0, a Member for each rank follows.
struct Answer {
  char magic[sizeof(kMagic)] = {};
  std::int32_t code = 0;
};
struct FrameHead {
  Notice::Kind kind;
  std::int32_t from;
  Channel channel;
  std::uint32_t reserved;
  std::uint64_t number;
  Label label;
  std::uint64_t bytes;
  std::uint64_t written;
};

constexpr const char* kPlacePrefix = "/annulus-nccl-";
constexpr std::size_t kPlaceDigits = 32;
constexpr std::size_t kMaxLinkDigits = 5;  // ".4095"

std::string folder_of_sockets() {
  std::string folder = base::read_environment().temporary;
  while (folder.ends_with('/')) folder.pop_back();
  const std::string own = fmt::format("{}{}", kPlacePrefix, geteuid());
  const std::size_t rest = own.size() + 1 + kPlaceDigits + kMaxLinkDigits;
  const bool fits = folder.size() + rest < sizeof(sockaddr_un::sun_path);
  return (folder.starts_with('/') && fits ? folder : "/tmp") + own;
}

// A listening or connected socket. If it is -1, errno has the reason.
int socket_at(const std::string& path, bool listens) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return -1;
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  const bool good = listens ? bind(handle, at, sizeof(address)) == 0 && listen(handle, 256) == 0
                            : connect(handle, at, sizeof(address)) == 0;
  if (good) return handle;
  const int error = errno;
  close(handle);
  errno = error;
  return -1;
}

// A socket that listens at a path as long as the object exists.
class Listener {
 public:
  Listener(std::string path, std::string* problem) : path_(std::move(path)) {
    handle_ = socket_at(path_, true);
    if (handle_ >= 0) return;
    *problem = fmt::format("no socket can listen at {}: {}; TMPDIR names the folder of sockets",
                           path_, base::describe_errno(errno));
  }
  ~Listener() {
    if (handle_ < 0) return;
    close(handle_);
    unlink(path_.c_str());
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int handle() const { return handle_; }

  std::atomic<bool> stops{false};  // the thread that serves the socket ends

 private:
  const std::string path_;
  int handle_ = -1;
};

// Makes the folder, and removes sockets that killed processes have left there. Returns false if the
// folder belongs to another user.
bool prepare_folder(const std::string& folder) {
  mkdir(folder.c_str(), S_IRWXU);
  struct stat status = {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != geteuid()) {
    return false;
  }
  std::error_code error;
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::days(1);
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto written = entry.last_write_time(error);
    if (!error && written < old) unlink(entry.path().c_str());
  }
  return true;
}

// Moves all of the bytes. Returns false if the other side has gone or stopped() returns true.
template <typename Move, typename Stopped>
bool all_bytes(int handle, short event, std::size_t bytes, Stopped stopped, Move move) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t moved = move(done);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
    } else if (moved == 0 || (errno != EAGAIN && errno != EINTR)) {
      return false;
    } else {
      if (stopped()) return false;
      pollfd one = {handle, event, 0};
      poll(&one, 1, kPollMillis);
    }
  }
  return true;
}

template <typename Stopped>
bool read_bytes(int handle, void* to, std::size_t bytes, Stopped stopped) {
  return all_bytes(handle, POLLIN, bytes, stopped, [&](std::size_t done) {
    return recv(handle, static_cast<char*>(to) + done, bytes - done, MSG_DONTWAIT);
  });
}

template <typename Stopped>
bool write_bytes(int handle, const void* from, std::size_t bytes, Stopped stopped) {
  return all_bytes(handle, POLLOUT, bytes, stopped, [&](std::size_t done) {
    return ::send(handle, static_cast<const char*>(from) + done, bytes - done,
                  MSG_DONTWAIT | MSG_NOSIGNAL);
  });
}

// Stops when the time is up.
auto within(Clock::duration time) {
  return [end = Clock::now() + time] { return Clock::now() > end; };
}

template <typename Stopped>
int accepted(int listener, Stopped stopped) {
  while (!stopped()) {
    pollfd one = {listener, POLLIN, 0};
    if (poll(&one, 1, kPollMillis) <= 0) continue;
    const int handle = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (handle >= 0) return handle;
  }
  return -1;
}

template <typename Stopped>
int connected(const std::string& path, Stopped stopped, std::string* problem) {
  const auto late = within(kPatience);
  while (true) {
    if (const int handle = socket_at(path, false); handle >= 0) return handle;
    if (stopped() || late()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMillis));
  }
  *problem = fmt::format(
      "no process answers at {}: {}; ranks have to be processes of one machine that see this "
      "folder, "
      "and the process that made the unique id has to run until all ranks have connected",
      path, base::describe_errno(errno));
  return -1;
}

std::string link_name(const std::string& place, int rank) {
  return fmt::format("{}.{}", place, rank);
}

// The code with which differing ranks are refused, as in NCCL.
NcclResult verdict(const std::vector<Member>& members) {
  std::map<std::pair<std::uint64_t, std::int32_t>, int> devices;
  for (const Member& member : members) {
    if (member.version != members.front().version) return abi::kNcclInvalidUsage;
    if (++devices[{member.host, member.device}] > 1) return abi::kNcclInvalidUsage;
  }
  return abi::kNcclSuccess;
}

// Receives the greetings of all ranks and answers them.
void serve_on(const std::shared_ptr<Listener>& listener) {
  std::vector<Member> members;
  std::map<int, int> handles;  // by rank
  NcclResult code = abi::kNcclSuccess;
  while (members.empty() || handles.size() < members.size()) {
    const int handle = accepted(listener->handle(), [&] { return listener->stops.load(); });
    if (handle < 0) break;
    Hello hello;
    if (!read_bytes(handle, &hello, sizeof(hello), within(kGreeting)) ||
        std::memcmp(hello.magic, kMagic, sizeof(kMagic)) != 0 || hello.member.ranks < 1 ||
        hello.member.ranks > kMaxRanks || hello.member.rank < 0) {
      close(handle);  // not a rank of this meeting place
      continue;
    }
    const Member& member = hello.member;
    if (members.empty()) members.resize(static_cast<std::size_t>(member.ranks));
    if (member.ranks != static_cast<int>(members.size()) || member.rank >= member.ranks ||
        handles.contains(member.rank)) {
      Answer answer;
      std::memcpy(answer.magic, kMagic, sizeof(kMagic));
      answer.code = abi::kNcclInvalidUsage;
      write_bytes(handle, &answer, sizeof(answer), within(kGreeting));
      close(handle);
      continue;
    }
    handles[member.rank] = handle;
    members[static_cast<std::size_t>(member.rank)] = member;
  }
  const bool all = !members.empty() && handles.size() == members.size();
  code = all ? verdict(members) : abi::kNcclSystemError;
  Answer answer;
  std::memcpy(answer.magic, kMagic, sizeof(kMagic));
  answer.code = code;
  for (const auto& [rank, handle] : handles) {
    write_bytes(handle, &answer, sizeof(answer), within(kGreeting));
    if (code == abi::kNcclSuccess) {
      write_bytes(handle, members.data(), members.size() * sizeof(Member), within(kGreeting));
    }
    close(handle);
  }
}

// The meeting places that this process serves, by their paths.
struct Served {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Listener>> all;
};
Served& served() {
  static Served* const only = new Served;  // used by threads of communicators until the process
                                           // ends
  return *only;
}

// The inboxes of this process, by place and rank.
struct Inboxes {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Inbox>> all;
};
Inboxes& inboxes() {
  static Inboxes* const only = new Inboxes;  // used by threads of communicators until the process
                                             // ends
  return *only;
}

}  // namespace

std::string new_place() {
  unsigned char bytes[16] = {};
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) return "";
  std::string place = folder_of_sockets() + "/";
  for (const unsigned char byte : bytes) place += fmt::format("{:02x}", byte);
  return place;
}

std::string derived_place(const std::string& place, std::uint64_t number) {
  const std::string folder = place.substr(0, place.rfind('/') + 1);
  return folder + base::digest(fmt::format("{} {}", place, number)).hex().substr(0, kPlaceDigits);
}

abi::NcclUniqueId id_of(const std::string& place) {
  abi::NcclUniqueId id{};
  std::memcpy(id.bytes, place.data(), std::min(place.size(), sizeof(id.bytes) - 1));
  return id;
}

std::string place_of(const abi::NcclUniqueId& id) {
  const std::string place(id.bytes, strnlen(id.bytes, sizeof(id.bytes)));
  return place.starts_with('/') && place.find(kPlacePrefix) != std::string::npos ? place : "";
}

bool serve(const std::string& place, std::string* problem) {
  if (place.empty()) {
    *problem = "the system gives no random numbers for a unique id";
    return false;
  }
  const std::string folder = place.substr(0, place.rfind('/'));
  if (!prepare_folder(folder)) {
    *problem = fmt::format(
        "the folder of sockets {} cannot be made, or is another user's; name another with TMPDIR",
        folder);
    return false;
  }
  const auto listener = std::make_shared<Listener>(place, problem);
  if (listener->handle() < 0) return false;
  {
    const std::lock_guard lock(served().mutex);
    std::erase_if(served().all, [](const auto& one) { return one.second.expired(); });
    served().all[place] = listener;
  }
  std::thread(serve_on, listener).detach();
  return true;
}

void stop_serving(const std::string& place) {
  const std::lock_guard lock(served().mutex);
  const auto found = served().all.find(place);
  if (found == served().all.end()) return;
  if (const std::shared_ptr<Listener> listener = found->second.lock()) listener->stops = true;
}

std::unique_ptr<Wire> Wire::meet(const std::string& place, const Member& own,
                                 std::shared_ptr<Inbox> inbox, const std::atomic<bool>& stop,
                                 NcclResult* code, std::string* problem) {
  const auto stopped = [&stop] { return stop.load(); };
  std::unique_ptr<Wire> wire(new Wire);
  wire->place_ = place;
  wire->rank_ = own.rank;
  wire->inbox_ = std::move(inbox);
  *code = abi::kNcclSystemError;
  {
    const std::lock_guard lock(inboxes().mutex);
    inboxes().all[link_name(place, own.rank)] = wire->inbox_;
  }
  const Listener listener(link_name(place, own.rank), problem);
  const int handle = listener.handle() < 0 ? -1 : connected(place, stopped, problem);
  const auto fail = [&]() -> std::unique_ptr<Wire> {
    if (handle >= 0) close(handle);
    return nullptr;
  };
  if (handle < 0) return fail();
  Hello hello;
  std::memcpy(hello.magic, kMagic, sizeof(kMagic));
  hello.member = own;
  Answer answer;
  if (!write_bytes(handle, &hello, sizeof(hello), stopped) ||
      !read_bytes(handle, &answer, sizeof(answer), stopped) ||
      std::memcmp(answer.magic, kMagic, sizeof(kMagic)) != 0) {
    *problem =
        fmt::format("the process that made the unique id ended before all ranks had connected");
    return fail();
  }
  *code = answer.code;
  if (answer.code != abi::kNcclSuccess) {
    *problem =
        "two ranks have the same number or the same device, or ranks differ in their "
        "number of ranks or their version";
    return fail();
  }
  *code = abi::kNcclSystemError;
  wire->members_.resize(static_cast<std::size_t>(own.ranks));
  if (!read_bytes(handle, wire->members_.data(), wire->members_.size() * sizeof(Member), stopped) ||
      !wire->connect_all(place, listener.handle(), stop, problem)) {
    if (problem->empty()) *problem = "a rank ended while the ranks connected to each other";
    return fail();
  }
  close(handle);
  *code = abi::kNcclSuccess;
  return wire;
}

// Of two ranks in different processes, the higher one connects to the lower one.
bool Wire::connect_all(const std::string& place, int listener, const std::atomic<bool>& stop,
                       std::string* problem) {
  const auto stopped = [&stop] { return stop.load(); };
  links_.resize(members_.size());
  int callers = 0;
  bool remote = false;
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    Link& link = links_[static_cast<std::size_t>(rank)];
    if (members_[static_cast<std::size_t>(rank)].process == own().process) {
      const std::lock_guard lock(inboxes().mutex);
      link.inbox = inboxes().all[link_name(place, rank)].lock();
      if (link.inbox == nullptr) return false;
      continue;
    }
    remote = true;
    if (rank > rank_) {
      ++callers;
      continue;
    }
    link.socket = connected(link_name(place, rank), stopped, problem);
    if (link.socket < 0 || !write_bytes(link.socket, &rank_, sizeof(rank_), stopped)) return false;
  }
  while (callers > 0) {
    const int handle = accepted(listener, stopped);
    if (handle < 0) return false;
    int caller = -1;
    const bool known = read_bytes(handle, &caller, sizeof(caller), within(kGreeting)) &&
                       caller > rank_ && caller < static_cast<int>(links_.size()) &&
                       links_[static_cast<std::size_t>(caller)].inbox == nullptr &&
                       links_[static_cast<std::size_t>(caller)].socket < 0;
    if (!known) {
      close(handle);
      continue;
    }
    links_[static_cast<std::size_t>(caller)].socket = handle;
    --callers;
  }
  if (!remote) return true;
  if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  carrier_ = std::thread([this] { carry(); });
  return true;
}

Wire::~Wire() {
  if (carrier_.joinable()) {
    static_cast<void>(write(wake_[1], "e", 1));
    carrier_.join();
  }
  for (const int handle : wake_) {
    if (handle >= 0) close(handle);
  }
  for (Link& link : links_) {
    if (link.socket < 0) continue;
    for (const auto late = within(kFarewell); !link.out.empty() && !late() && flush(link);) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    close(link.socket);
  }
  const std::lock_guard lock(inboxes().mutex);
  inboxes().all.erase(link_name(place_, rank_));
}

void Wire::send(int rank, Notice notice) {
  notice.from = rank_;
  Link& link = links_[static_cast<std::size_t>(rank)];
  if (link.inbox != nullptr) {
    link.inbox->deliver(std::move(notice));
    return;
  }
  const FrameHead head = {notice.kind,   notice.from,  notice.channel,      0,
                          notice.number, notice.label, notice.bytes.size(), notice.written.size()};
  {
    const std::lock_guard lock(out_mutex_);
    if (link.lost) return;
    const auto put = [&](const void* from, std::size_t bytes) {
      const auto* const begin = static_cast<const char*>(from);
      link.out.insert(link.out.end(), begin, begin + bytes);
    };
    put(&head, sizeof(head));
    put(notice.bytes.data(), notice.bytes.size());
    put(notice.written.data(), notice.written.size());
  }
  static_cast<void>(write(wake_[1], "s", 1));
}

bool Wire::cut(int rank) {
  const Link& link = links_[static_cast<std::size_t>(rank)];
  return link.socket >= 0 && shutdown(link.socket, SHUT_RDWR) == 0;
}

bool Wire::flushed() {
  const std::lock_guard lock(out_mutex_);
  return std::ranges::all_of(links_, [](const Link& link) { return link.out.empty(); });
}

bool Wire::flush(Link& link) {
  const std::lock_guard lock(out_mutex_);
  if (link.out.empty()) return true;
  const ssize_t sent =
      ::send(link.socket, link.out.data(), link.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) link.out.erase(link.out.begin(), link.out.begin() + sent);
  return sent > 0 || errno == EAGAIN || errno == EINTR;
}

// Reads the bytes that have arrived, and delivers the complete notices. Returns false if the other
// side has gone.
bool Wire::receive(Link& link) {
  constexpr std::size_t kPiece = 1 << 18;
  const std::size_t before = link.in.size();
  link.in.resize(before + kPiece);
  const ssize_t got = recv(link.socket, link.in.data() + before, kPiece, MSG_DONTWAIT);
  const bool gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  link.in.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  std::size_t at = 0;
  while (link.in.size() - at >= sizeof(FrameHead)) {
    FrameHead head;
    std::memcpy(&head, link.in.data() + at, sizeof(head));
    if (link.in.size() - at - sizeof(head) < head.bytes + head.written) break;
    Notice notice = {head.kind, head.from, head.channel, head.number, head.label, {}, {}};
    const char* const bytes = link.in.data() + at + sizeof(head);
    notice.bytes.resize(head.bytes);
    notice.written.resize(head.written);
    if (head.bytes > 0) std::memcpy(notice.bytes.data(), bytes, head.bytes);
    if (head.written > 0) std::memcpy(notice.written.data(), bytes + head.bytes, head.written);
    inbox_->deliver(std::move(notice));
    at += sizeof(head) + head.bytes + head.written;
  }
  link.in.erase(link.in.begin(), link.in.begin() + static_cast<std::ptrdiff_t>(at));
  return !gone;
}

void Wire::carry() {
  std::vector<pollfd> polled = {{wake_[0], POLLIN, 0}};
  std::vector<int> ranks = {-1};
  for (int rank = 0; rank < static_cast<int>(links_.size()); ++rank) {
    const int handle = links_[static_cast<std::size_t>(rank)].socket;
    if (handle < 0) continue;
    polled.push_back({handle, POLLIN, 0});
    ranks.push_back(rank);
  }
  while (true) {
    for (std::size_t i = 1; i < polled.size(); ++i) {
      const std::lock_guard lock(out_mutex_);
      const bool waits = !links_[static_cast<std::size_t>(ranks[i])].out.empty();
      polled[i].events = static_cast<short>(POLLIN | (waits ? POLLOUT : 0));
    }
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    char orders[64];
    const ssize_t count = read(wake_[0], orders, sizeof(orders));
    if (count > 0 && std::count(orders, orders + count, 'e') > 0) return;
    for (std::size_t i = 1; i < polled.size(); ++i) {
      Link& link = links_[static_cast<std::size_t>(ranks[i])];
      if (polled[i].revents == 0 || polled[i].fd < 0) continue;
      bool good = true;
      if ((polled[i].revents & POLLOUT) != 0) {
        good = flush(link);
        if (flushed()) inbox_->wake();
      }
      if ((polled[i].revents & ~POLLOUT) != 0) good = receive(link) && good;
      if (good) continue;
      polled[i].fd = -1;  // poll() ignores this entry
      {
        const std::lock_guard lock(out_mutex_);
        link.out.clear();
        link.lost = true;
      }
      inbox_->lose(ranks[i]);
    }
  }
}

}  // namespace annulus::simulator::nccl
