// The C interface of communicators: each function converts and calls annulus/communicator.h.
#include "annulus/c_communicator.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "annulus/communicator.h"
#include "api/c_functions.h"
#include "base/turn.h"

namespace annulus::api {
namespace {

constexpr StructName kCommunicatorOptions = {"annulus_communicator_options",
                                             "ANNULUS_COMMUNICATOR_OPTIONS_INIT"};
constexpr StructName kCommunicatorInfo = {"annulus_communicator_info",
                                          "ANNULUS_COMMUNICATOR_INFO_INIT"};

constexpr const char* kOneExchangeAtATime =
    "another thread is inside a call of this communicator; take turns";

CommunicatorOptions communicator_options_of(const annulus_communicator_options* given) {
  const annulus_communicator_options defaults = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  const annulus_communicator_options c =
      given == nullptr ? defaults : read_struct(kCommunicatorOptions, given, defaults);
  return {.blocking = truth("blocking", c.blocking),
          .deadline = milliseconds_of("deadline_ms", c.deadline_ms),
          .planning = milliseconds_of("planning_ms", c.planning_ms)};
}

// Numbers that no int holds become one that is no rank.
int rank_of(std::int64_t rank) {
  return static_cast<int>(std::clamp<std::int64_t>(rank, -1, std::numeric_limits<int>::max()));
}

void give_communicator(annulus_communicator** to, Communicator communicator) {
  give(to, communicators(), std::make_unique<CommunicatorObject>(std::move(communicator)));
}

}  // namespace

std::chrono::milliseconds milliseconds_of(const char* name, std::int64_t given) {
  constexpr std::int64_t kMost = std::chrono::milliseconds(std::chrono::years(1)).count();
  if (given < 0 || given > kMost) {
    base::fail(ErrorCode::kInvalidArgument, "{} is {}; give milliseconds from 0 to {}", name, given,
               kMost);
  }
  return std::chrono::milliseconds(given);
}

HandleTable<CommunicatorObject>& communicators() {
  static auto* table = new HandleTable<CommunicatorObject>(
      "communicator", 0x53, HandleTable<CommunicatorObject>::Use::kInItsProcess);
  return *table;
}

}  // namespace annulus::api

extern "C" {

annulus_status annulus_communicator_make_id(annulus_device* device, annulus_communicator_id* id) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("id (where the id goes)", id);
    const CommunicatorId made = make_communicator_id(pin->device);
    static_assert(sizeof(made.bytes) == sizeof(id->bytes));
    std::memcpy(id->bytes, made.bytes, sizeof(made.bytes));
  });
}

annulus_status annulus_communicator_open(annulus_device* device, const annulus_communicator_id* id,
                                         int32_t ranks, int32_t rank,
                                         const annulus_communicator_options* options,
                                         annulus_communicator** communicator) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("communicator (where the handle goes)", communicator);
    check_pointer("id", id);
    CommunicatorId given;
    std::memcpy(given.bytes, id->bytes, sizeof(given.bytes));
    give_communicator(communicator, Communicator::open(pin->device, given, ranks, rank,
                                                       communicator_options_of(options)));
  });
}

annulus_status annulus_communicator_meet(annulus_device* device, annulus_rendezvous* rendezvous,
                                         const annulus_communicator_options* options,
                                         annulus_communicator** communicator) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    const RendezvousPin ranks(rendezvouses(), number(rendezvous));
    check_pointer("communicator (where the handle goes)", communicator);
    give_communicator(communicator, Communicator::open(pin->device, ranks->rendezvous,
                                                       communicator_options_of(options)));
  });
}

annulus_status annulus_communicator_borrow(annulus_device* device, void* nccl_comm,
                                           const annulus_communicator_options* options,
                                           annulus_communicator** communicator) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("communicator (where the handle goes)", communicator);
    give_communicator(communicator, Communicator::borrow(pin->device, nccl_comm,
                                                         communicator_options_of(options)));
  });
}

annulus_status annulus_communicator_destroy(annulus_communicator* communicator) {
  return guarded([&] { communicators().erase(number(communicator)); });
}

annulus_status annulus_communicator_get_info(annulus_communicator* communicator,
                                             annulus_communicator_info* to) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    const CommunicatorInfo& info = pin->communicator.info();
    annulus_communicator_info c = ANNULUS_COMMUNICATOR_INFO_INIT;
    c.nccl = info.nccl.c_str();
    c.nccl_version = info.nccl_version;
    c.rank = info.rank;
    c.ranks = info.ranks;
    c.blocking = info.blocking ? 1 : 0;
    c.borrowed = info.borrowed ? 1 : 0;
    c.simulated = info.simulated ? 1 : 0;
    write_struct(kCommunicatorInfo, to, c);
  });
}

annulus_status annulus_communicator_exchange(annulus_communicator* communicator, void* stream,
                                             const annulus_sent_bytes* sends, size_t send_count,
                                             const annulus_received_bytes* receives,
                                             size_t receive_count) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    if (send_count > 0) check_pointer("sends", sends);
    if (receive_count > 0) check_pointer("receives", receives);
    const base::Turn turn(&pin->busy, kOneExchangeAtATime);
    pin->sends.clear();
    for (const annulus_sent_bytes& one : std::span(sends, send_count)) {
      pin->sends.push_back({rank_of(one.to), one.from, one.bytes});
    }
    pin->receives.clear();
    for (const annulus_received_bytes& one : std::span(receives, receive_count)) {
      pin->receives.push_back({rank_of(one.from), one.to, one.bytes});
    }
    pin->communicator.exchange(stream, pin->sends, pin->receives);
  });
}

annulus_status annulus_communicator_get_reason(annulus_communicator* communicator,
                                               const char** reason) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    check_pointer("reason (where the text goes)", reason);
    const std::lock_guard lock(pin->mutex);
    if (!pin->reason && !pin->communicator.usable()) pin->reason = pin->communicator.reason();
    *reason = pin->reason ? pin->reason->c_str() : nullptr;
  });
}

annulus_status annulus_communicator_give_up(annulus_communicator* communicator,
                                            const char* reason) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    check_pointer("reason", reason);
    pin->communicator.give_up(reason);
  });
}

}  // extern "C"
