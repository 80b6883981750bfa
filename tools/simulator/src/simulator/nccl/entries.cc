#include "simulator/nccl/entries.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/of_thread.h"
#include "simulator/driver/entries/entries.h"
#include "simulator/nccl/group.h"
#include "simulator/nccl/options.h"

namespace annulus::simulator::nccl {
namespace {

using namespace annulus::abi;

struct LastError {
  std::mutex mutex;
  std::string text;
};
LastError& last_error() {
  static LastError* const only = new LastError;
  return *only;
}

// Runs the body of an entry, unless the options make the call fail.
template <typename Body>
NcclResult guarded(const char* symbol, Body body) noexcept {
  try {
    if (const auto code = planned_failure(symbol)) {
      return say(*code,
                 fmt::format("{} fails because the simulator's options make it fail", symbol));
    }
    return body();
  } catch (const driver::Refusal& refusal) {
    return refusal.code == kCudaOutOfMemory ? kNcclSystemError : kNcclUnhandledCudaError;
  } catch (const std::bad_alloc&) {
    return kNcclSystemError;
  } catch (...) {
    return kNcclInternalError;
  }
}

// A call with a communicator. If a second thread calls at the same time, it breaks the rule of
// NCCL's guide under "Thread Safety".
class Inside {
 public:
  explicit Inside(CommunicatorPointer communicator) : communicator_(std::move(communicator)) {
    if (communicator_->inside.fetch_add(1) == 0) return;
    Fault fault;
    fault.kind = FaultKind::kSharedCommunicator;
    fault.detail =
        fmt::format("two threads call NCCL with the communicator of rank {} of {} at the same time",
                    communicator_->rank(), communicator_->ranks());
    driver::break_context(*communicator_->context(), fault);
  }
  ~Inside() { communicator_->inside.fetch_sub(1); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const CommunicatorPointer communicator_;
};

// Calls body(communicator) if the handle is valid. With `ready` the communicator must be ready.
template <typename Body>
NcclResult with(const char* symbol, NcclComm handle, bool ready, Body body) noexcept {
  return guarded(symbol, [&]() -> NcclResult {
    const CommunicatorPointer communicator = communicators().find(handle);
    if (communicator == nullptr) {
      return say(kNcclInvalidArgument, fmt::format("{}: there is no such communicator", symbol));
    }
    const Inside inside(communicator);
    if (ready) {
      if (const NcclResult code = communicator->refusal(); code != kNcclSuccess) {
        return Group::of_thread().fail(say(
            code,
            code == kNcclInvalidArgument
                ? fmt::format("{}: attempt to use a communicator before the previous operation "
                              "returned ncclSuccess",
                              symbol)
                : fmt::format("{}: the communicator was revoked, aborted or has failed", symbol)));
      }
    }
    return body(communicator);
  });
}

NcclResult call(const char* symbol, NcclComm handle, CUstream stream, Call made) noexcept {
  return with(symbol, handle, true, [&](const CommunicatorPointer& communicator) -> NcclResult {
    made.communicator = communicator;
    if (const NcclResult code = check(made); code != kNcclSuccess) {
      return Group::of_thread().fail(
          say(code, fmt::format("{}: an argument is out of range", symbol)));
    }
    try {
      made.stream = driver::find_stream(communicator->context(), stream);
    } catch (...) {
      return Group::of_thread().fail(kNcclUnhandledCudaError);
    }
    return Group::of_thread().add(made);
  });
}

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// Reads a configuration. Returns false if it is not valid. It has the layout of nccl.h since 2.14.
bool read_config(const NcclConfig* config, bool* blocking) {
  struct Head {
    std::size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
  };
  *blocking = true;
  if (config == nullptr) return true;
  Head head;
  std::memcpy(&head, config, sizeof(head));
  constexpr unsigned kMagic = 0xcafebeef;
  constexpr int kUndefined = -2147483647 - 1;
  if (head.magic != kMagic || head.size < sizeof(head)) return false;
  if (head.blocking != 0 && head.blocking != 1 && head.blocking != kUndefined) return false;
  *blocking = head.blocking != 0;
  return true;
}

NcclResult start(const char* symbol, NcclComm* comm, int ranks, const std::string& place, int rank,
                 const NcclConfig* config,
                 const std::shared_ptr<driver::Context>* given = nullptr) {
  bool blocking = true;
  if (comm == nullptr || ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks ||
      place.empty() || !read_config(config, &blocking)) {
    return say(kNcclInvalidArgument,
               fmt::format("{}: rank {} of {}, or the id or the configuration, is wrong", symbol,
                           rank, ranks));
  }
  std::shared_ptr<driver::Context> context;
  try {
    context = given != nullptr ? *given : driver::live_context();
  } catch (const driver::Refusal&) {
    Group::of_thread().stay_inside();
    return kNcclUnhandledCudaError;
  }
  const auto communicator = std::make_shared<Communicator>(context, ranks, rank, blocking);
  *comm = communicators().add(communicator);
  communicator->start([place, ranks, rank](Communicator::Seat* seat, const std::atomic<bool>&) {
    *seat = {place, ranks, rank};
    return kNcclSuccess;
  });
  const NcclResult code = Group::of_thread().add(communicator);
  if (code == kNcclSuccess || code == kNcclInProgress) return code;
  communicators().remove(*comm);
  *comm = nullptr;
  return code;
}

NcclResult serve_derived(const std::string& place) {
  std::string problem;
  return serve(place, &problem) ? kNcclSuccess : say(kNcclSystemError, problem);
}

// Makes a communicator from an older one.
NcclResult derive(const CommunicatorPointer& parent, NcclComm* created, const NcclConfig* config,
                  Communicator::FindSeat find_seat) {
  bool blocking = parent->blocking();
  if (created == nullptr || (config != nullptr && !read_config(config, &blocking))) {
    return say(kNcclInvalidArgument,
               "the place for the new communicator, or its configuration, is wrong");
  }
  const auto communicator = std::make_shared<Communicator>(parent->context(), 0, 0, blocking);
  *created = communicators().add(communicator);
  communicator->start(std::move(find_seat));
  if (!blocking) return kNcclInProgress;
  const NcclResult code = communicator->finish();
  if (code == kNcclSuccess && communicator->ranks() > 0) return code;
  communicators().remove(*created);
  *created = nullptr;
  return code;
}

}  // namespace

NcclResult say(NcclResult code, std::string text) {
  const std::lock_guard lock(last_error().mutex);
  last_error().text = std::move(text);
  return code;
}

namespace entry {

NcclResult get_version(int* version) {
  return guarded("ncclGetVersion", [&]() -> NcclResult {
    if (version == nullptr) return kNcclInvalidArgument;
    *version = static_cast<int>(options().version);
    return kNcclSuccess;
  });
}

const char* get_error_string(NcclResult result) {
  static constexpr const char* kTexts[] = {"no error",
                                           "unhandled cuda error (simulated NCCL)",
                                           "unhandled system error",
                                           "internal error",
                                           "invalid argument",
                                           "invalid usage",
                                           "remote process exited or there was a network error",
                                           "operation in progress"};
  const bool known = result >= 0 && result < static_cast<int>(std::size(kTexts));
  return known ? kTexts[result] : "unknown result code";
}

const char* get_last_error(NcclComm) {
  try {
    std::string& text = base::of_thread<std::string>();
    const std::lock_guard lock(last_error().mutex);
    text = last_error().text;
    return text.c_str();
  } catch (const std::bad_alloc&) {
    return "the host is out of memory, even for the text of the last error";
  }
}

NcclResult get_unique_id(NcclUniqueId* id) {
  return guarded("ncclGetUniqueId", [&]() -> NcclResult {
    if (id == nullptr) return kNcclInvalidArgument;
    std::string problem;
    const std::string place = new_place();
    if (!serve(place, &problem)) return say(kNcclSystemError, problem);
    *id = id_of(place);
    return kNcclSuccess;
  });
}

NcclResult comm_init_rank(NcclComm* comm, int ranks, NcclUniqueId id, int rank) {
  return guarded("ncclCommInitRank", [&] {
    return start("ncclCommInitRank", comm, ranks, place_of(id), rank, nullptr);
  });
}

NcclResult comm_init_rank_config(NcclComm* comm, int ranks, NcclUniqueId id, int rank,
                                 NcclConfig* config) {
  return guarded("ncclCommInitRankConfig", [&] {
    return start("ncclCommInitRankConfig", comm, ranks, place_of(id), rank, config);
  });
}

NcclResult comm_init_rank_scalable(NcclComm* comm, int ranks, int rank, int ids, NcclUniqueId* id,
                                   NcclConfig* config) {
  return guarded("ncclCommInitRankScalable", [&]() -> NcclResult {
    if (ids < 1 || id == nullptr) return kNcclInvalidArgument;
    return start("ncclCommInitRankScalable", comm, ranks, place_of(*id), rank, config);
  });
}

NcclResult comm_init_all(NcclComm* comms, int devices, const int* ordinals) {
  return guarded("ncclCommInitAll", [&]() -> NcclResult {
    if (comms == nullptr || devices < 1) return kNcclInvalidArgument;
    std::string problem;
    const std::string place = new_place();
    if (!serve(place, &problem)) return say(kNcclSystemError, problem);
    Group& group = Group::of_thread();
    group.begin();
    NcclResult code = kNcclSuccess;
    for (int rank = 0; rank < devices && code == kNcclSuccess; ++rank) {
      const int ordinal = ordinals == nullptr ? rank : ordinals[rank];
      const auto context = driver::retain_primary_context(ordinal);
      code = start("ncclCommInitAll", comms + rank, devices, place, rank, nullptr, &context);
    }
    const NcclResult met = group.end();
    return code == kNcclSuccess ? met : code;
  });
}

NcclResult comm_finalize(NcclComm comm) {
  return with("ncclCommFinalize", comm, true,
              [&](const CommunicatorPointer& communicator) -> NcclResult {
                const NcclResult code = communicator->finalize();
                if (code != kNcclSuccess) return code;
                return communicator->blocking() ? communicator->finish() : kNcclInProgress;
              });
}

// Collective over the ranks of a host, unless the communicator was finalized or revoked, or was
// never completed.
NcclResult comm_destroy(NcclComm comm) {
  return with("ncclCommDestroy", comm, false,
              [&](const CommunicatorPointer& communicator) -> NcclResult {
                if (communicator->refusal() == kNcclSuccess) communicator->finalize();
                if (communicator->finalized()) communicator->finish();
                communicators().remove(comm);
                return kNcclSuccess;
              });
}

NcclResult comm_abort(NcclComm comm) {
  if (comm == nullptr) return kNcclSuccess;
  return with("ncclCommAbort", comm, false,
              [&](const CommunicatorPointer& communicator) -> NcclResult {
                communicator->give_up();
                communicators().remove(comm);
                return kNcclSuccess;
              });
}

NcclResult comm_revoke(NcclComm comm, int flags) {
  return with("ncclCommRevoke", comm, false,
              [&](const CommunicatorPointer& communicator) -> NcclResult {
                if (flags != 0 || communicator->finalized() || communicator->stopped()) {
                  return kNcclInvalidArgument;
                }
                const NcclResult code = communicator->revoke();
                return communicator->blocking() ? code : kNcclInProgress;
              });
}

NcclResult comm_get_async_error(NcclComm comm, NcclResult* error) {
  return with("ncclCommGetAsyncError", comm, false,
              [&](const CommunicatorPointer& communicator) -> NcclResult {
                if (error == nullptr) return kNcclInvalidArgument;
                // A caller that polls gives the device time to run work, as with cuEventQuery.
                driver::step(*communicator->context());
                *error = communicator->status();
                return kNcclSuccess;
              });
}

NcclResult comm_count(NcclComm comm, int* ranks) {
  return with("ncclCommCount", comm, true,
              [&](const CommunicatorPointer& communicator) -> NcclResult {
                if (ranks == nullptr) return kNcclInvalidArgument;
                *ranks = communicator->ranks();
                return kNcclSuccess;
              });
}

NcclResult comm_cu_device(NcclComm comm, int* device) {
  return with("ncclCommCuDevice", comm, true,
              [&](const CommunicatorPointer& communicator) -> NcclResult {
                if (device == nullptr) return kNcclInvalidArgument;
                *device = driver::device_of(*communicator->context());
                return kNcclSuccess;
              });
}

NcclResult comm_user_rank(NcclComm comm, int* rank) {
  return with("ncclCommUserRank", comm, true,
              [&](const CommunicatorPointer& communicator) -> NcclResult {
                if (rank == nullptr) return kNcclInvalidArgument;
                *rank = communicator->rank();
                return kNcclSuccess;
              });
}

NcclResult send(const void* from, std::size_t count, int type, int peer, NcclComm comm,
                CUstream stream) {
  return call("ncclSend", comm, stream,
              {.operation = Operation::kSend,
               .from = address(from),
               .count = count,
               .type = type,
               .root = peer});
}

NcclResult recv(void* to, std::size_t count, int type, int peer, NcclComm comm, CUstream stream) {
  return call("ncclRecv", comm, stream,
              {.operation = Operation::kReceive,
               .to = address(to),
               .count = count,
               .type = type,
               .root = peer});
}

NcclResult all_gather(const void* from, void* to, std::size_t count, int type, NcclComm comm,
                      CUstream stream) {
  return call("ncclAllGather", comm, stream,
              {.operation = Operation::kAllGather,
               .from = address(from),
               .to = address(to),
               .count = count,
               .type = type});
}

NcclResult all_reduce(const void* from, void* to, std::size_t count, int type, int operation,
                      NcclComm comm, CUstream stream) {
  return call("ncclAllReduce", comm, stream,
              {.operation = Operation::kAllReduce,
               .from = address(from),
               .to = address(to),
               .count = count,
               .type = type,
               .reduction = operation});
}

NcclResult reduce(const void* from, void* to, std::size_t count, int type, int operation, int root,
                  NcclComm comm, CUstream stream) {
  return call("ncclReduce", comm, stream,
              {.operation = Operation::kReduce,
               .from = address(from),
               .to = address(to),
               .count = count,
               .type = type,
               .reduction = operation,
               .root = root});
}

NcclResult reduce_scatter(const void* from, void* to, std::size_t count, int type, int operation,
                          NcclComm comm, CUstream stream) {
  return call("ncclReduceScatter", comm, stream,
              {.operation = Operation::kReduceScatter,
               .from = address(from),
               .to = address(to),
               .count = count,
               .type = type,
               .reduction = operation});
}

NcclResult broadcast(const void* from, void* to, std::size_t count, int type, int root,
                     NcclComm comm, CUstream stream) {
  return call("ncclBroadcast", comm, stream,
              {.operation = Operation::kBroadcast,
               .from = address(from),
               .to = address(to),
               .count = count,
               .type = type,
               .root = root});
}

NcclResult all_to_all(const void* from, void* to, std::size_t count, int type, NcclComm comm,
                      CUstream stream) {
  return call("ncclAlltoAll", comm, stream,
              {.operation = Operation::kAllToAll,
               .from = address(from),
               .to = address(to),
               .count = count,
               .type = type});
}

NcclResult group_start() {
  return guarded("ncclGroupStart", [] {
    Group::of_thread().begin();
    return kNcclSuccess;
  });
}

NcclResult group_end() {
  bool ended = false;
  const NcclResult code = guarded("ncclGroupEnd", [&] {
    ended = true;
    return Group::of_thread().end();
  });
  if (ended) return code;
  try {
    Group::of_thread().leave();
  } catch (const std::bad_alloc&) {
    // The thread has no group yet, so it is not inside one.
  }
  return code;
}

// Ranks with the same color meet in a new communicator, in the order of their keys.
NcclResult comm_split(NcclComm comm, int color, int key, NcclComm* created, NcclConfig* config) {
  return with("ncclCommSplit", comm, true, [&](const CommunicatorPointer& parent) -> NcclResult {
    const std::uint64_t number = parent->next_child();
    Notice mine = {.kind = Notice::Kind::kData, .channel = Channel::kValues, .number = number};
    mine.label.type = color;
    mine.label.root = key;
    for (int rank = 0; rank < parent->ranks(); ++rank) parent->wire().send(rank, mine);
    const auto find_seat = [parent, number, color](Communicator::Seat* seat,
                                                   const std::atomic<bool>& stop) -> NcclResult {
      struct One {
        int key;
        int rank;
        auto operator<=>(const One&) const = default;
      };
      std::vector<One> members;
      for (int rank = 0; rank < parent->ranks(); ++rank) {
        std::optional<Notice> theirs;
        parent->inbox().wait([&] {
          theirs = parent->inbox().take(Notice::Kind::kData, rank, Channel::kValues, number);
          return theirs.has_value() || stop || parent->stopped();
        });
        if (!theirs) return kNcclInternalError;
        if (theirs->label.type == color) members.push_back({theirs->label.root, rank});
      }
      if (color < 0) return kNcclSuccess;
      std::ranges::sort(members);
      seat->ranks = static_cast<int>(members.size());
      const auto own = std::ranges::find(members, parent->rank(), &One::rank);
      seat->rank = static_cast<int>(own - members.begin());
      const auto of_color = static_cast<std::uint64_t>(color);
      seat->place = derived_place(parent->place(), number << 32 | of_color);
      return seat->rank == 0 ? serve_derived(seat->place) : kNcclSuccess;
    };
    return derive(parent, created, config, find_seat);
  });
}

NcclResult comm_shrink(NcclComm comm, int* excluded, int excluded_count, NcclComm* created,
                       NcclConfig* config, int flags) {
  return with("ncclCommShrink", comm, false, [&](const CommunicatorPointer& parent) -> NcclResult {
    constexpr int kAbort = 1;
    if (excluded == nullptr || excluded_count < 1 || excluded_count >= parent->ranks()) {
      return kNcclInvalidArgument;
    }
    const std::vector<int> left(excluded, excluded + excluded_count);
    std::string key;
    int rank = 0, ranks = 0;
    for (int one = 0; one < parent->ranks(); ++one) {
      if (std::ranges::find(left, one) != left.end()) {
        if (one == parent->rank()) return kNcclInvalidArgument;
        key += fmt::format(" {}", one);
        continue;
      }
      if (one == parent->rank()) rank = ranks;
      ++ranks;
    }
    if (flags == kAbort) {
      if (!parent->stopped()) parent->revoke();
    } else if (const NcclResult code = parent->refusal(); code != kNcclSuccess) {
      return code;
    }
    const std::string place = derived_place(parent->place() + key, parent->next_child());
    return derive(parent, created, config,
                  [=](Communicator::Seat* seat, const std::atomic<bool>&) -> NcclResult {
                    *seat = {place, ranks, rank};
                    return rank == 0 ? serve_derived(place) : kNcclSuccess;
                  });
  });
}

NcclResult mem_alloc(void** pointer, std::size_t bytes) {
  return guarded("ncclMemAlloc", [&]() -> NcclResult {
    if (pointer == nullptr || bytes == 0) return kNcclInvalidArgument;
    constexpr std::size_t kStep = std::size_t{2} << 20;  // memory is allocated in steps of 2 MiB
    CUdeviceptr address = 0;
    const CUresult code = driver::entry::mem_alloc(&address, (bytes + kStep - 1) / kStep * kStep);
    if (code != kCudaSuccess) {
      return say(kNcclUnhandledCudaError,
                 fmt::format("ncclMemAlloc: cuMemAlloc of {} bytes returned {}", bytes,
                             static_cast<int>(code)));
    }
    *pointer = reinterpret_cast<void*>(address);
    return kNcclSuccess;
  });
}

NcclResult mem_free(void* pointer) {
  return guarded("ncclMemFree", [&]() -> NcclResult {
    const CUresult code = driver::entry::mem_free(reinterpret_cast<CUdeviceptr>(pointer));
    return code == kCudaSuccess ? kNcclSuccess : kNcclInvalidArgument;
  });
}

// Registering has no visible effect. The handle is null, as it is if registration is disabled in
// NCCL.
NcclResult comm_register(NcclComm comm, void* buffer, std::size_t bytes, void** handle) {
  return with("ncclCommRegister", comm, true, [&](const CommunicatorPointer&) -> NcclResult {
    if (buffer == nullptr || bytes == 0 || handle == nullptr) return kNcclInvalidArgument;
    *handle = nullptr;
    return kNcclSuccess;
  });
}

NcclResult comm_deregister(NcclComm comm, void*) {
  return with("ncclCommDeregister", comm, true,
              [&](const CommunicatorPointer&) { return kNcclSuccess; });
}

NcclResult comm_window_register(NcclComm comm, void* buffer, std::size_t bytes, NcclWindow* window,
                                int) {
  return with("ncclCommWindowRegister", comm, true, [&](const CommunicatorPointer&) -> NcclResult {
    constexpr std::uint64_t kAlignment = 4096;
    if (buffer == nullptr || bytes == 0 || window == nullptr || address(buffer) % kAlignment != 0) {
      return kNcclInvalidArgument;
    }
    *window = nullptr;
    return kNcclSuccess;
  });
}

NcclResult comm_window_deregister(NcclComm comm, NcclWindow) {
  return with("ncclCommWindowDeregister", comm, true,
              [&](const CommunicatorPointer&) { return kNcclSuccess; });
}

}  // namespace entry

namespace {

struct Symbol {
  std::string_view name;
  void* address;
};
template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}
const Symbol kSymbols[] = {
#define REQUIRED(result, member, symbol, parameters) {#symbol, address_of(&entry::member)},
#define OPTIONAL(result, member, symbol, parameters) {#symbol, address_of(&entry::member)},
#include "abi/nccl.def"
#undef REQUIRED
#undef OPTIONAL
};

}  // namespace

void* find_entry(std::string_view symbol) {
  const auto* const found = std::ranges::find(kSymbols, symbol, &Symbol::name);
  return found == std::end(kSymbols) || !has_function(symbol) ? nullptr : found->address;
}

abi::NcclTable make_table() {
  abi::NcclTable table;
#define REQUIRED(result, member, symbol, parameters) table.member = entry::member;
#define OPTIONAL(result, member, symbol, parameters) \
  if (has_function(#symbol)) table.member = entry::member;
#include "abi/nccl.def"
#undef REQUIRED
#undef OPTIONAL
  return table;
}

}  // namespace annulus::simulator::nccl
