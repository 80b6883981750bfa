#include "exchange/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "exchange/names.h"

namespace annulus::exchange {
namespace {

// A rank that has posted no position counts as not having reached the first run.
Place place_of(const RankState& state) {
  return state.posted ? Place{state.position.run, state.position.round}
                      : Place{Place::kMeeting, Place::kBefore};
}

}  // namespace

std::string text_of(const Place& place) {
  if (place.run == Place::kMeeting) return "the meeting";
  return place.round == Place::kBefore ? fmt::format("run {}", place.run)
                                       : fmt::format("round {} of run {}", place.round, place.run);
}

std::vector<int> gone_before(std::span<const RankState> others, const Place& place) {
  std::vector<int> gone;
  for (const RankState& state : others) {
    if (state.gone && place_of(state) <= place) gone.push_back(state.rank);
  }
  return gone;
}

Notice blame(std::span<const RankState> others, int ranks, const Place& place,
             std::chrono::milliseconds waited) {
  Notice notice;
  notice.ranks = gone_before(others, place);
  if (!notice.ranks.empty()) {
    notice.text = fmt::format("{} {} gone before the end of {}", name_ranks(notice.ranks, ranks),
                              have(notice.ranks), text_of(place));
    return notice;
  }
  Place last = place;
  for (const RankState& state : others) last = std::min(last, place_of(state));
  std::vector<int> at_last, silent;
  for (const RankState& state : others) {
    if (place_of(state) != last) continue;
    at_last.push_back(state.rank);
    if (state.silent.count() > 0 && 2 * state.silent >= waited) silent.push_back(state.rank);
  }
  if (last == place) {
    notice.ranks = silent;
    notice.text =
        silent.empty()
            ? fmt::format("all ranks have reached {}, whose messages have not ended within {} ms",
                          text_of(place), waited.count())
            : fmt::format("{} {} reached {} and sent nothing since, for {} ms or more",
                          name_ranks(silent, ranks), have(silent), text_of(place),
                          waited.count() / 2);
    return notice;
  }
  // A rank that sends signs of life only waits for another rank.
  notice.ranks = silent.empty() ? at_last : silent;
  notice.text = fmt::format("{} {} not reached {} within {} ms", name_ranks(notice.ranks, ranks),
                            have(notice.ranks), text_of(place), waited.count());
  if (last.run >= 0) {
    notice.text += last.round == Place::kBefore ? fmt::format(", being before run {}", last.run)
                                                : fmt::format(", being at {}", text_of(last));
  }
  return notice;
}

Notice blame_for_error(const std::string& error, std::span<const int> dead,
                       std::span<const int> silent, int ranks, std::chrono::milliseconds waited) {
  Notice notice;
  const std::span<const int> blamed = dead.empty() ? silent : dead;
  notice.ranks.assign(blamed.begin(), blamed.end());
  const std::string names = name_ranks(blamed, ranks);
  if (!dead.empty()) {
    notice.text = fmt::format("{} {} gone", names, have(blamed));
  } else if (!silent.empty()) {
    notice.text = fmt::format("{} {} not answered for {} ms", names, have(blamed), waited.count());
  } else {
    notice.text = "all ranks answer, so no rank is to blame";
  }
  notice.text += fmt::format("; {}", error);
  return notice;
}

}  // namespace annulus::exchange
