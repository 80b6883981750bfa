#ifndef ANNULUS_SIMULATOR_NCCL_WIRE_H_
#define ANNULUS_SIMULATOR_NCCL_WIRE_H_

// How ranks find each other and exchange notices: directly within a process, and over Unix sockets
// between processes of one machine. The sockets are files, so processes in different network
// namespaces reach each other. A unique id is the path of a socket. The process that made the id
// receives the greetings of all ranks there, and sends each of them the list of all ranks.

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

constexpr int kMaxRanks = 4096;

// The greeting of a rank.
struct Member {
  std::int32_t ranks = 0;
  std::int32_t rank = 0;
  std::int32_t version = 0;  // NCCL's version
  std::int32_t device = 0;   // ordinal of the device; two ranks of a host may not have the same
                             // device
  std::uint64_t host = 0;    // hash of the host's name, or of NCCL_HOSTID
  std::int64_t process = 0;
};

// The path of a meeting place, drawn at random or derived from another one. It is a file in the
// folder annulus-nccl-UID in $TMPDIR, or in /tmp if that is not set or too long for a socket. The
// path is empty if the system has no random numbers.
std::string new_place();
std::string derived_place(const std::string& place, std::uint64_t number);
abi::NcclUniqueId id_of(const std::string& place);
std::string place_of(const abi::NcclUniqueId& id);  // empty: not an id of the simulator

// Opens the meeting place in this process and serves it on a separate thread until all ranks have
// connected. Returns false if there is no socket for it; *problem has the reason.
bool serve(const std::string& place, std::string* problem);
// Stops serving the place, if this process serves it and not all ranks have connected.
void stop_serving(const std::string& place);

class Wire {
 public:
  // Meets the other ranks at `place`, and waits for all of them. `stop` ends the wait. If it fails,
  // it returns null, *code is the code of NCCL and *problem the reason. Throws only bad_alloc.
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
  // Never waits. A notice to a process that has ended is lost.
  void send(int rank, Notice notice);
  // Ends the connection to a rank of another process. Both ranks then count each other as lost.
  // Returns false if there is no connection.
  bool cut(int rank);
  // Whether all notices would reach the other ranks if this process died now.
  bool flushed();

 private:
  struct Link {
    std::shared_ptr<Inbox> inbox;  // the inbox of a rank in this process
    int socket = -1;               // to a rank in another process
    std::vector<char> in;          // the beginning of a frame; only the carrier thread uses it
    // Guarded by out_mutex_: frames that are not sent yet, and whether the other side has gone.
    std::vector<char> out;
    bool lost = false;
  };
  Wire() = default;
  bool connect_all(const std::string& place, int listener, const std::atomic<bool>& stop,
                   std::string* problem);
  void carry();  // runs until `end` arrives in wake_
  bool receive(Link& link);
  bool flush(Link& link);  // sends what it can without waiting; returns false if the other side has
                           // gone

  std::string place_;
  int rank_ = 0;
  std::vector<Member> members_;
  std::vector<Link> links_;
  std::shared_ptr<Inbox> inbox_;
  int wake_[2] = {-1, -1};  // a pipe: 's' means that there is something to send, 'e' that the
                            // carrier ends
  std::mutex out_mutex_;
  std::thread carrier_;  // moves frames to and from other processes
};

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_WIRE_H_
