// The C interface of rendezvous of ranks. Each function converts its arguments and calls
// annulus/communicator.h.
#include "annulus/c_ring.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "annulus/communicator.h"
#include "base/turn.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_MAX_GATHERED_BYTES == Rendezvous::kMaxBytes);

constexpr StructName kRendezvousOptions = {"annulus_rendezvous_options",
                                           "ANNULUS_RENDEZVOUS_OPTIONS_INIT"};
constexpr StructName kRendezvousInfo = {"annulus_rendezvous_info", "ANNULUS_RENDEZVOUS_INFO_INIT"};
constexpr StructName kRegroupOptions = {"annulus_regroup_options", "ANNULUS_REGROUP_OPTIONS_INIT"};
constexpr StructName kRankState = {"annulus_rank_state", "ANNULUS_RANK_STATE_INIT"};

constexpr const char* kOnePostAtATime =
    "another thread is posting a position to this rendezvous; take turns";

RendezvousOptions rendezvous_options_of(const annulus_rendezvous_options* given) {
  const annulus_rendezvous_options c = read_struct(
      kRendezvousOptions, given, annulus_rendezvous_options ANNULUS_RENDEZVOUS_OPTIONS_INIT);
  const auto text = [](const char* from) { return std::string(from == nullptr ? "" : from); };
  return {.address = text(c.address),
          .rank = c.rank,
          .ranks = c.ranks,
          .token = text(c.token),
          .interface = text(c.listen_on),
          .deadline = milliseconds_of("deadline_ms", c.deadline_ms)};
}

RegroupOptions regroup_options_of(const annulus_regroup_options* given) {
  const annulus_regroup_options defaults = ANNULUS_REGROUP_OPTIONS_INIT;
  const annulus_regroup_options c =
      given == nullptr ? defaults : read_struct(kRegroupOptions, given, defaults);
  if (c.without_count > 0) check_pointer("without", c.without);
  if (c.at_least != std::clamp<std::int64_t>(c.at_least, 0, std::numeric_limits<int>::max())) {
    base::fail(ErrorCode::kInvalidArgument,
               "at_least is {}; give a number of ranks, or 0 for more than half of them",
               c.at_least);
  }
  return {.without = {c.without, c.without + c.without_count},
          .at_least = static_cast<int>(c.at_least),
          .deadline = milliseconds_of("deadline_ms", c.deadline_ms)};
}

// The engine's all-gather, which returns one array.
AllGather all_gather_of(annulus_all_gather_callback call, void* user, int ranks) {
  return [=](std::span<const std::byte> own) {
    std::vector<std::byte> all(own.size() * static_cast<std::size_t>(ranks));
    const int code = call(user, own.data(), own.size(), all.data());
    if (code != 0) {
      base::fail(ErrorCode::kCommunication,
                 "the caller's all-gather of {} bytes of each rank failed: it returned {}",
                 own.size(), code);
    }
    std::vector<std::vector<std::byte>> parts;
    for (auto at = all.begin(); at != all.end(); at += std::ssize(own)) {
      parts.emplace_back(at, at + std::ssize(own));
    }
    return parts;
  };
}

void give_rendezvous(annulus_rendezvous** to, Rendezvous rendezvous) {
  give(to, rendezvouses(), std::make_unique<RendezvousObject>(std::move(rendezvous)));
}

// The caller's memory for the bytes of all ranks. It is checked before anything is sent.
class Room {
 public:
  Room(const Rendezvous& rendezvous, const void* own, std::size_t bytes, void* all,
       std::size_t room, std::size_t* counts)
      : own_(static_cast<const std::byte*>(own), bytes),
        ranks_(rendezvous.ranks()),
        all_(static_cast<std::byte*>(all)),
        room_(room),
        counts_(counts) {
    if (bytes > 0) check_pointer("own", own);
    if (room > 0) check_pointer("all (where the bytes go)", all);
    if (room > Rendezvous::kMaxBytes) {
      base::fail(ErrorCode::kInvalidArgument,
                 "room for {} bytes of each rank; no rank may bring more than {}", room,
                 Rendezvous::kMaxBytes);
    }
  }

  std::span<const std::byte> own() const { return own_; }

  // Nothing is written if a rank's bytes do not fit.
  void fill(const std::vector<std::vector<std::byte>>& gathered) const {
    for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
      const std::size_t bytes = gathered[rank].size();
      if (counts_ == nullptr ? bytes == room_ : bytes <= room_) continue;
      base::fail(ErrorCode::kInvalidArgument,
                 "rank {} of {} brought {} bytes; there is room for {}{}", rank, ranks_, bytes,
                 room_, counts_ == nullptr ? ", and counts is null" : "");
    }
    for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
      const std::vector<std::byte>& bytes = gathered[rank];
      if (!bytes.empty()) std::memcpy(all_ + rank * room_, bytes.data(), bytes.size());
      if (counts_ != nullptr) counts_[rank] = bytes.size();
    }
  }

 private:
  const std::span<const std::byte> own_;
  const int ranks_;
  std::byte* const all_;
  const std::size_t room_;
  std::size_t* const counts_;
};

}  // namespace

void write_rank_state(annulus_rank_state* to, const std::vector<RankState>& states, int rank,
                      KeptTexts* reasons) {
  const auto state = std::ranges::find(states, rank, &RankState::rank);
  if (state == states.end()) {
    base::fail(ErrorCode::kInvalidArgument, "rank {} is not one of the {} other ranks", rank,
               states.size());
  }
  annulus_rank_state c = ANNULUS_RANK_STATE_INIT;
  c.position = {state->position.generation, state->position.run, state->position.round};
  c.posted = state->posted ? 1 : 0;
  c.gone = state->gone ? 1 : 0;
  c.silent_ms = state->silent.count();
  c.reason = reasons->keep(state->reason);
  write_struct(kRankState, to, c);
}

HandleTable<RendezvousObject>& rendezvouses() {
  static auto* table = new HandleTable<RendezvousObject>(
      "rendezvous", 0x65, HandleTable<RendezvousObject>::Use::kInItsProcess);
  return *table;
}

}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_rendezvous_meet(const annulus_rendezvous_options* options,
                                       annulus_rendezvous** rendezvous) {
  return guarded([&] {
    check_pointer("rendezvous (where the handle goes)", rendezvous);
    give_rendezvous(rendezvous, Rendezvous::meet(rendezvous_options_of(options)));
  });
}

annulus_status annulus_rendezvous_over(annulus_all_gather_callback all_gather, void* user,
                                       const annulus_rendezvous_options* given,
                                       annulus_rendezvous** rendezvous) {
  return guarded([&] {
    check_pointer("rendezvous (where the handle goes)", rendezvous);
    check_pointer("all_gather", reinterpret_cast<const void*>(all_gather));
    const RendezvousOptions options = rendezvous_options_of(given);
    give_rendezvous(rendezvous,
                    Rendezvous::over(all_gather_of(all_gather, user, options.ranks), options));
  });
}

annulus_status annulus_rendezvous_destroy(annulus_rendezvous* rendezvous) {
  return guarded([&] { rendezvouses().erase(number(rendezvous)); });
}

annulus_status annulus_rendezvous_get_info(annulus_rendezvous* rendezvous,
                                           annulus_rendezvous_info* to) {
  return guarded([&] {
    const RendezvousPin pin(rendezvouses(), number(rendezvous));
    annulus_rendezvous_info c = ANNULUS_RENDEZVOUS_INFO_INIT;
    c.rank = pin->rendezvous.rank();
    c.ranks = pin->rendezvous.ranks();
    c.generation = pin->rendezvous.generation();
    static_assert(std::is_same_v<int, std::int32_t>);
    c.members = pin->rendezvous.members().data();
    c.members_digest = pin->rendezvous.members_digest();
    write_struct(kRendezvousInfo, to, c);
  });
}

annulus_status annulus_rendezvous_all_gather(annulus_rendezvous* rendezvous, const void* own,
                                             size_t bytes, int64_t deadline_ms, void* all,
                                             size_t room, size_t* counts) {
  return guarded([&] {
    const RendezvousPin pin(rendezvouses(), number(rendezvous));
    const Room to(pin->rendezvous, own, bytes, all, room, counts);
    to.fill(pin->rendezvous.all_gather(to.own(), milliseconds_of("deadline_ms", deadline_ms)));
  });
}

annulus_status annulus_rendezvous_gather(annulus_rendezvous* rendezvous, const void* own,
                                         size_t bytes, int64_t deadline_ms, void* all, size_t room,
                                         size_t* counts, int32_t* arrivals) {
  return guarded([&] {
    const RendezvousPin pin(rendezvouses(), number(rendezvous));
    check_pointer("counts (where numbers of bytes go)", counts);
    check_pointer("arrivals (where it goes who came)", arrivals);
    const Room to(pin->rendezvous, own, bytes, all, room, counts);
    const Gathered gathered =
        pin->rendezvous.gather(to.own(), milliseconds_of("deadline_ms", deadline_ms));
    to.fill(gathered.bytes);
    std::fill_n(arrivals, gathered.bytes.size(), std::int32_t{ANNULUS_CAME});
    for (const int rank : gathered.gone) arrivals[rank] = ANNULUS_GONE;
    for (const int rank : gathered.late) arrivals[rank] = ANNULUS_LATE;
  });
}

annulus_status annulus_rendezvous_post(annulus_rendezvous* rendezvous,
                                       const annulus_position* position) {
  return guarded([&] {
    const RendezvousPin pin(rendezvouses(), number(rendezvous));
    check_pointer("position", position);
    const base::Turn turn(&pin->posting, kOnePostAtATime);
    pin->rendezvous.post({position->generation, position->run, position->round});
  });
}

annulus_status annulus_rendezvous_get_state(annulus_rendezvous* rendezvous, int32_t rank,
                                            annulus_rank_state* to) {
  return guarded([&] {
    const RendezvousPin pin(rendezvouses(), number(rendezvous));
    write_rank_state(to, pin->rendezvous.states(), rank, &pin->reasons);
  });
}

annulus_status annulus_rendezvous_regroup(annulus_rendezvous* rendezvous,
                                          const annulus_regroup_options* given,
                                          annulus_rendezvous** regrouped) {
  return guarded([&] {
    const RendezvousPin pin(rendezvouses(), number(rendezvous));
    check_pointer("regrouped (where the handle goes)", regrouped);
    give_rendezvous(regrouped, pin->rendezvous.regroup(regroup_options_of(given)));
  });
}

}  // extern "C"
