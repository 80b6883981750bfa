// The C interface of communicators. Each function converts its arguments and calls
// annulus/communicator.h.
#include "annulus/c_ring.h"
#include "annulus/c_tools.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "annulus/communicator.h"
#include "base/turn.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

constexpr StructName kCommunicatorOptions = {"annulus_communicator_options",
                                             "ANNULUS_COMMUNICATOR_OPTIONS_INIT"};
constexpr StructName kCommunicatorInfo = {"annulus_communicator_info",
                                          "ANNULUS_COMMUNICATOR_INFO_INIT"};

constexpr StructName kCommunicatorFailure = {"annulus_communicator_failure",
                                             "ANNULUS_COMMUNICATOR_FAILURE_INIT"};
constexpr StructName kCommunicatorEvent = {"annulus_communicator_event",
                                           "ANNULUS_COMMUNICATOR_EVENT_INIT"};

static_assert(ANNULUS_RUN_UNDER_WAY == static_cast<int>(RunState::kUnderWay));
static_assert(ANNULUS_RUN_GOOD == static_cast<int>(RunState::kGood));
static_assert(ANNULUS_RUN_VOID == static_cast<int>(RunState::kVoid));
static_assert(ANNULUS_EVENT_OPENED == static_cast<int>(CommunicatorEventKind::kOpened));
static_assert(ANNULUS_EVENT_SLOW == static_cast<int>(CommunicatorEventKind::kSlow));
static_assert(ANNULUS_EVENT_GONE == static_cast<int>(CommunicatorEventKind::kGone));
static_assert(ANNULUS_EVENT_GIVEN_UP == static_cast<int>(CommunicatorEventKind::kGivenUp));
static_assert(std::is_same_v<int, std::int32_t>);

constexpr const char* kOneExchangeAtATime =
    "another thread is inside a call of this communicator; take turns";

// A number that does not fit an int becomes a number that is neither a rank nor a number of CTAs.
int int_of(std::int64_t number) {
  return static_cast<int>(std::clamp<std::int64_t>(number, -1, std::numeric_limits<int>::max()));
}

CommunicatorOptions communicator_options_of(const annulus_communicator_options* given) {
  const annulus_communicator_options defaults = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  const annulus_communicator_options c =
      given == nullptr ? defaults : read_struct(kCommunicatorOptions, given, defaults);
  return {.blocking = truth("blocking", c.blocking),
          .deadline = milliseconds_of("deadline_ms", c.deadline_ms),
          .planning = milliseconds_of("planning_ms", c.planning_ms),
          .ctas = int_of(c.ctas),
          .watched = truth("watched", c.watched)};
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

}  // namespace annulus::c_api

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
                                           annulus_rendezvous* rendezvous,
                                           const annulus_communicator_options* given,
                                           annulus_communicator** communicator) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("communicator (where the handle goes)", communicator);
    const CommunicatorOptions options = communicator_options_of(given);
    if (rendezvous == nullptr) {
      return give_communicator(communicator, Communicator::borrow(pin->device, nccl_comm, options));
    }
    const RendezvousPin ranks(rendezvouses(), number(rendezvous));
    give_communicator(communicator,
                      Communicator::borrow(pin->device, nccl_comm, ranks->rendezvous, options));
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
    c.watched = info.watched ? 1 : 0;
    c.generation = info.generation;
    c.ctas = info.ctas;
    c.members_digest = info.members_digest;
    write_struct(kCommunicatorInfo, to, c);
  });
}

annulus_status annulus_communicator_exchange(annulus_communicator* communicator, void* stream,
                                             const annulus_sent_bytes* sends, size_t send_count,
                                             const annulus_received_bytes* receives,
                                             size_t receive_count, int64_t* run) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    if (send_count > 0) check_pointer("sends", sends);
    if (receive_count > 0) check_pointer("receives", receives);
    const base::Turn turn(&pin->busy, kOneExchangeAtATime);
    pin->sends.clear();
    for (const annulus_sent_bytes& one : std::span(sends, send_count)) {
      pin->sends.push_back({int_of(one.to), one.from, one.bytes});
    }
    pin->receives.clear();
    for (const annulus_received_bytes& one : std::span(receives, receive_count)) {
      pin->receives.push_back({int_of(one.from), one.to, one.bytes});
    }
    const std::int64_t made = pin->communicator.exchange(stream, pin->sends, pin->receives);
    if (run != nullptr) *run = made;
  });
}

annulus_status annulus_communicator_allocate(annulus_communicator* communicator, size_t bytes,
                                             void** memory) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    check_pointer("memory (where the address goes)", memory);
    const ExchangeMemory made = pin->communicator.allocate(bytes);
    if (made.data() != nullptr) {
      const std::lock_guard lock(pin->mutex);
      pin->memory.emplace(made.data(), made);
    }
    *memory = made.data();
  });
}

annulus_status annulus_communicator_release(annulus_communicator* communicator, void* memory) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    if (memory == nullptr) return;
    const std::lock_guard lock(pin->mutex);
    if (pin->memory.erase(memory) == 0) {
      base::fail(ErrorCode::kInvalidArgument,
                 "{} is not memory of this communicator; was it released already?", memory);
    }
  });
}

annulus_status annulus_communicator_get_runs(annulus_communicator* communicator, int64_t* runs) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    check_pointer("runs (where the number goes)", runs);
    *runs = pin->communicator.runs();
  });
}

const char* annulus_run_state_text(int state) { return to_string(static_cast<RunState>(state)); }

annulus_status annulus_communicator_get_state(annulus_communicator* communicator, int64_t run,
                                              int32_t* state) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    check_pointer("state (where it goes)", state);
    *state = static_cast<std::int32_t>(pin->communicator.state(run));
  });
}

annulus_status annulus_communicator_wait(annulus_communicator* communicator, int64_t run,
                                         int32_t* state) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    check_pointer("state (where it goes)", state);
    *state = static_cast<std::int32_t>(pin->communicator.wait(run));
  });
}

annulus_status annulus_communicator_get_failure(annulus_communicator* communicator,
                                                annulus_communicator_failure* to) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    const Communicator& ranks = pin->communicator;
    annulus_communicator_failure c = ANNULUS_COMMUNICATOR_FAILURE_INIT;
    const std::lock_guard lock(pin->mutex);
    if (!pin->failure && !ranks.usable()) pin->failure.emplace(ranks.reason(), ranks.blamed());
    if (pin->failure) {
      c.reason = pin->failure->reason.c_str();
      c.blamed = pin->failure->blamed.data();
      c.blamed_count = pin->failure->blamed.size();
    }
    write_struct(kCommunicatorFailure, to, c);
  });
}

const char* annulus_communicator_event_text(int kind) {
  return to_string(static_cast<CommunicatorEventKind>(kind));
}

annulus_status annulus_communicator_next_event(annulus_communicator* communicator, int64_t after,
                                               annulus_communicator_event* to) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    annulus_communicator_event c = ANNULUS_COMMUNICATOR_EVENT_INIT;
    const std::lock_guard lock(pin->mutex);
    const std::vector<CommunicatorEvent> events = pin->communicator.events();
    const auto next = std::ranges::find_if(
        events, [&](const CommunicatorEvent& event) { return event.number > after; });
    if (next != events.end()) {
      const CommunicatorEvent& event = pin->events.try_emplace(next->number, *next).first->second;
      c.number = event.number;
      c.text = event.text.c_str();
      c.ranks = event.ranks.data();
      c.rank_count = event.ranks.size();
      c.unix_micros =
          std::chrono::duration_cast<std::chrono::microseconds>(event.time.time_since_epoch())
              .count();
      c.generation = event.generation;
      c.run = event.run;
      c.kind = static_cast<std::int64_t>(event.kind);
    }
    write_struct(kCommunicatorEvent, to, c);
  });
}

annulus_status annulus_communicator_get_peer(annulus_communicator* communicator, int32_t rank,
                                             annulus_rank_state* to) {
  return guarded([&] {
    const CommunicatorPin pin(communicators(), number(communicator));
    write_rank_state(to, pin->communicator.peers(), rank, &pin->reasons);
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
