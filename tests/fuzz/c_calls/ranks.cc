// Calls on rendezvous, communicators and plans of one rank. This process is the only rank, or the
// other ranks never arrive.

#include <cstring>
#include <string>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

annulus_rendezvous_options Program::alone_options() {
  annulus_rendezvous_options made = ANNULUS_RENDEZVOUS_OPTIONS_INIT;
  made.token = "alone";
  return made;
}

void Program::create_rendezvous() {
  annulus_rendezvous* rendezvous = nullptr;
  Sized<annulus_rendezvous_options> options(alone_options(), bytes_);
  if (bytes_.below(4) == 0 && may_wait()) {
    // The struct has its full size, because an older caller's default deadline is half a minute.
    annulus_rendezvous_options others = alone_options();
    const std::string file = "file:" + setting().folder + "/meeting";
    const char* const addresses[] = {file.c_str(), "tcp:127.0.0.1:1", "tcp:[::1", "file:", "",
                                     nullptr};
    others.address = addresses[bytes_.below(6)];
    others.token = bytes_.below(4) == 0 ? nullptr : "alone";
    others.listen_on = bytes_.below(4) == 0 ? "127.0.0.300" : nullptr;
    others.ranks = static_cast<std::int32_t>(small(3));
    others.rank = static_cast<std::int32_t>(small(2));
    others.deadline_ms = bytes_.between(-1, 8);
    options.value = others;
  }
  if (bytes_.below(3) > 0) {
    return made(annulus_rendezvous_meet(options.get(), &rendezvous), rendezvous, Kind::kRendezvous,
                "annulus_rendezvous_meet");
  }
  const auto fails = [](void*, const void*, std::size_t, void*) { return 3; };
  return made(annulus_rendezvous_over(bytes_.below(8) == 0 ? nullptr : +fails, nullptr,
                                      options.get(), &rendezvous),
              rendezvous, Kind::kRendezvous, "annulus_rendezvous_over");
}

void Program::regroup() {
  auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
  annulus_regroup_options options = ANNULUS_REGROUP_OPTIONS_INIT;
  const std::int32_t without[] = {static_cast<std::int32_t>(small(1)), 0};
  options.without = bytes_.below(8) == 0 ? nullptr : without;
  options.without_count = count(3);
  options.at_least = small(2);
  options.deadline_ms = bytes_.between(-1, 8);
  annulus_rendezvous* regrouped = nullptr;
  made(annulus_rendezvous_regroup(rendezvous, &options, &regrouped), regrouped, Kind::kRendezvous,
       "annulus_rendezvous_regroup");
}

void Program::call_rendezvous() {
  switch (bytes_.below(8)) {
    case 0:
      return create_rendezvous();
    case 1: {
      Sized<annulus_rendezvous_info> info(ANNULUS_RENDEZVOUS_INFO_INIT, bytes_);
      returned(annulus_rendezvous_get_info(pick<annulus_rendezvous>(Kind::kRendezvous), info.get()),
               "annulus_rendezvous_get_info");
      return;
    }
    case 2: {
      Sized<annulus_rank_state> state(ANNULUS_RANK_STATE_INIT, bytes_);
      auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
      returned(annulus_rendezvous_get_state(rendezvous, static_cast<std::int32_t>(small(2)),
                                            state.get()),
               "annulus_rendezvous_get_state");
      return;
    }
    case 3: {
      const annulus_position position = {bytes_.number(), bytes_.number(), 3};
      auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
      returned(annulus_rendezvous_post(rendezvous, bytes_.below(8) == 0 ? nullptr : &position),
               "annulus_rendezvous_post");
      return;
    }
    case 4:
      return give_back(Kind::kRendezvous);
    case 5:
      return regroup();
    default: {
      char own[64] = {1, 2, 3}, all[64] = {};
      std::size_t counts[1] = {};
      std::int32_t arrivals[1] = {};
      auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
      const auto size = static_cast<std::size_t>(bytes_.below(64));
      const std::size_t room = bytes_.below(4) == 0 ? count(64) : size;
      const std::int64_t deadline = bytes_.below(8) == 0 ? bytes_.number() : 5;
      void* const to = bytes_.below(16) == 0 ? nullptr : all;
      const bool gathers = bytes_.below(2) == 0;
      if (returned(gathers ? annulus_rendezvous_gather(rendezvous, own, size, deadline, to, room,
                                                       counts, arrivals)
                           : annulus_rendezvous_all_gather(rendezvous, own, size, deadline, to,
                                                           room, counts),
                   "annulus_rendezvous_gather") &&
          (counts[0] != size || std::memcmp(own, all, size) != 0)) {
        wrong("a rank alone gathers something else than it brought");
      }
    }
  }
}

void Program::create_communicator() {
  annulus_communicator_id id = {};
  auto* const device = pick<annulus_device>(Kind::kDevice);
  if (bytes_.below(8) > 0) {
    returned(annulus_communicator_make_id(device, &id), "annulus_communicator_make_id");
  }
  annulus_communicator* communicator = nullptr;
  Sized<annulus_communicator_options> options(ANNULUS_COMMUNICATOR_OPTIONS_INIT, bytes_);
  options->blocking = bytes_.below(12) == 0 ? 2 : bytes_.below(2);
  std::int32_t ranks = 1;
  if (bytes_.below(4) == 0 && may_wait()) {
    annulus_communicator_options others = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
    others.planning_ms = bytes_.between(1, 8);
    options.value = others;
    ranks = static_cast<std::int32_t>(small(3));
  }
  switch (bytes_.below(4)) {
    case 0: {
      auto* const rendezvous = pick<annulus_rendezvous>(Kind::kRendezvous);
      return made(annulus_communicator_meet(device, rendezvous, options.get(), &communicator),
                  communicator, Kind::kCommunicator, "annulus_communicator_meet");
    }
    case 1:  // NCCL would try to connect to any other address
      return made(
          annulus_communicator_borrow(device, nullptr, nullptr, options.get(), &communicator),
          communicator, Kind::kCommunicator, "annulus_communicator_borrow");
    default: {
      const auto rank = static_cast<std::int32_t>(bytes_.below(4) == 0 ? small(2) : 0);
      return made(annulus_communicator_open(device, &id, ranks, rank, options.get(), &communicator),
                  communicator, Kind::kCommunicator, "annulus_communicator_open");
    }
  }
}

// Calls that read the states of runs and the events of a communicator.
void Program::ask_communicator() {
  auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
  std::int64_t runs = 0;
  std::int32_t state = 0;
  Sized<annulus_communicator_event> event(ANNULUS_COMMUNICATOR_EVENT_INIT, bytes_);
  Sized<annulus_rank_state> peer(ANNULUS_RANK_STATE_INIT, bytes_);
  switch (bytes_.below(5)) {
    case 0:
      returned(annulus_communicator_get_runs(communicator, &runs), "annulus_communicator_get_runs");
      return;
    case 1:
      returned(annulus_communicator_get_state(communicator, small(2), &state),
               "annulus_communicator_get_state");
      return;
    case 2:
      if (returned(annulus_communicator_wait(communicator, small(2), &state),
                   "annulus_communicator_wait") &&
          state != ANNULUS_RUN_GOOD && state != ANNULUS_RUN_VOID) {
        wrong("a run that was waited for is {}", annulus_run_state_text(state));
      }
      return;
    case 3:
      returned(annulus_communicator_next_event(communicator, small(3), event.get()),
               "annulus_communicator_next_event");
      return;
    default:
      returned(annulus_communicator_get_peer(communicator, static_cast<std::int32_t>(small(2)),
                                             peer.get()),
               "annulus_communicator_get_peer");
  }
}

void Program::call_communicator() {
  switch (bytes_.below(9)) {
    case 0:
    case 1:
      return create_communicator();
    case 2: {
      Sized<annulus_communicator_info> info(ANNULUS_COMMUNICATOR_INFO_INIT, bytes_);
      returned(annulus_communicator_get_info(pick<annulus_communicator>(Kind::kCommunicator),
                                             info.get()),
               "annulus_communicator_get_info");
      return;
    }
    case 3: {
      // The only rank has no peer.
      const annulus_sent_bytes sent = {setting().memory[0], 4, small(2)};
      const annulus_received_bytes received = {setting().memory[1], 4, small(2)};
      auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
      const std::size_t sends = count(2), receives = count(2);
      returned(annulus_communicator_exchange(communicator, nullptr,
                                             bytes_.below(8) == 0 ? nullptr : &sent, sends,
                                             &received, receives, nullptr),
               "annulus_communicator_exchange");
      return;
    }
    case 4: {
      Sized<annulus_communicator_failure> failure(ANNULUS_COMMUNICATOR_FAILURE_INIT, bytes_);
      if (returned(annulus_communicator_get_failure(pick<annulus_communicator>(Kind::kCommunicator),
                                                    failure.get()),
                   "annulus_communicator_get_failure") &&
          failure->reason != nullptr && std::strcmp(failure->reason, "given up") != 0) {
        wrong("a communicator was given up because of '{}'", failure->reason);
      }
      return;
    }
    case 5: {
      auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
      returned(
          annulus_communicator_give_up(communicator, bytes_.below(8) == 0 ? nullptr : "given up"),
          "annulus_communicator_give_up");
      return;
    }
    case 6:
      return give_back(Kind::kCommunicator);
    default:
      return ask_communicator();
  }
}

void Program::create_rank_plan() {
  auto* const device = pick<annulus_device>(Kind::kDevice);
  auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
  auto described = problem(true);
  Sized<annulus_ring_options> options(ANNULUS_RING_OPTIONS_INIT, bytes_);
  options->config = kConfig;
  options->sharding = tiny(2);
  options->route = tiny(3);
  annulus_ring_rank_plan* plan = nullptr;
  made(annulus_ring_rank_plan_create(device, communicator, described.get(), options.get(), &plan),
       plan, Kind::kRankPlan, "annulus_ring_rank_plan_create");
}

void Program::call_ranks() {
  switch (bytes_.below(10)) {
    case 0:
    case 1:
      return call_rendezvous();
    case 2:
    case 3:
    case 4:
      return call_communicator();
    case 5:
      return create_rank_plan();
    case 6: {
      Sized<annulus_ring_info> info(ANNULUS_RING_INFO_INIT, bytes_);
      returned(annulus_ring_rank_plan_get_info(pick<annulus_ring_rank_plan>(Kind::kRankPlan),
                                               info.get()),
               "annulus_ring_rank_plan_get_info");
      return;
    }
    case 7: {
      Sized<annulus_ring_rank> info(ANNULUS_RING_RANK_INIT, bytes_);
      returned(annulus_ring_rank_plan_get_rank(pick<annulus_ring_rank_plan>(Kind::kRankPlan),
                                               info.get()),
               "annulus_ring_rank_plan_get_rank");
      return;
    }
    case 8:
      return give_back(Kind::kRankPlan);
    default: {
      auto* const plan = pick<annulus_ring_rank_plan>(Kind::kRankPlan);
      Sized<annulus_operands> given = operands();
      Sized<annulus_ring_call> call(ANNULUS_RING_CALL_INIT, bytes_);
      call->operands = bytes_.below(16) == 0 ? nullptr : given.get();
      call->workspace = scratch();
      if (!may_launch()) return;
      std::int64_t run = 0;
      returned(annulus_ring_rank_plan_run(plan, call.get(), &run), "annulus_ring_rank_plan_run");
    }
  }
}

}  // namespace annulus::fuzz
