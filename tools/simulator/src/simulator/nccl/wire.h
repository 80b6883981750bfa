#ifndef ANNULUS_SIMULATOR_NCCL_WIRE_H_
#define ANNULUS_SIMULATOR_NCCL_WIRE_H_

// How ranks find each other and how notices reach them: directly within a process, and over Unix
// sockets between processes of one machine. The sockets are files, so that processes in different
// network namespaces reach each other. A unique id is the path of a socket, on which the process
// that made the id hears of all ranks and tells each of them who the others are.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "abi/nccl_types.h"
#include "simulator/nccl/notice.h"

namespace annulus::simulator::nccl {

constexpr int kMostRanks = 4096;

// What a rank says of itself.
struct Member {
  std::int32_t ranks = 0;
  std::int32_t rank = 0;
  std::int32_t version = 0;  // of NCCL
  std::int32_t device = 0;   // ordinal: two ranks of a host may not have the same
  std::uint64_t host = 0;    // hash of the host's name, or of NCCL_HOSTID
  std::int64_t process = 0;
};

// The path of a meeting place, drawn anew or derived from another one: a file of the folder
// annulus-nccl-UID in $TMPDIR, or in /tmp if that is not set or too long for a socket. Empty: the
// system gives no random numbers.
std::string new_place();
std::string derived_place(const std::string& place, std::uint64_t number);
abi::NcclUniqueId id_of(const std::string& place);
std::string place_of(const abi::NcclUniqueId& id);  // empty: not an id of the simulator

// Opens the meeting place in this process and serves it on a thread of its own until all ranks have
// come. False: there is no socket for it, and *problem says why.
bool serve(const std::string& place, std::string* problem);
// Ends that, if this process serves the place and not all ranks have come.
void stop_serving(const std::string& place);

class Wire {
 public:
  // Meets the others at `place`; waits for all of them. `stop` ends the wait. Throws nothing but
  // bad_alloc; *code says what went wrong, as NCCL would, *problem says it in words, and the result
  // is null then.
  static std::unique_ptr<Wire> meet(const std::string& place, const Member& own,
                                    std::shared_ptr<Inbox> inbox, const std::atomic<bool>& stop,
                                    abi::NcclResult* code, std::string* problem);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  const std::vector<Member>& members() const { return members_; }
  const Member& own() const { return members_[static_cast<std::size_t>(rank_)]; }
  // Whether some rank is in another process.
  bool remote() const { return carrier_.joinable(); }
  // Never waits. What is sent to a process that has ended is lost.
  void send(int rank, Notice notice);
  // Ends the connection to a rank of another process, which then finds this rank lost, as this rank
  // finds it. False: there is none.
  bool cut(int rank);
  // Whether all that was sent would reach the others if this process died now.
  bool flushed();

 private:
  struct Link {
    std::shared_ptr<Inbox> inbox;  // of a rank of this process
    int socket = -1;               // of one of another process
    std::vector<char> in;          // the begin of a frame; of the carrier alone
    // Guarded by out_mutex_: frames that have not gone yet, and whether the other side has gone.
    std::vector<char> out;
    bool lost = false;
  };
  Wire() = default;
  bool connect_all(const std::string& place, int listener, const std::atomic<bool>& stop,
                   std::string* problem);
  void carry();  // until wake_ says `end`
  bool receive(Link& link);
  bool flush(Link& link);  // sends what goes without waiting; false: the other side has gone

  std::string place_;
  int rank_ = 0;
  std::vector<Member> members_;
  std::vector<Link> links_;
  std::shared_ptr<Inbox> inbox_;
  int wake_[2] = {-1, -1};  // a pipe: 's' something is to be sent, 'e' the carrier ends
  std::mutex out_mutex_;
  std::thread carrier_;  // moves frames to and from other processes
};

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_WIRE_H_
