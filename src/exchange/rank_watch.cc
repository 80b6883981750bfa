// How a rank observes its device and the other ranks, and when it gives up because of them.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/fail.h"
#include "exchange/inside_nccl.h"
#include "exchange/names.h"
#include "exchange/rank.h"
#include "exchange/verdict.h"

namespace annulus::exchange {
namespace {

std::vector<RankState> states_of(const std::vector<Control::Known>& known) {
  std::vector<RankState> states;
  // If a rank has died, only dead ranks count as gone: the others end or regroup because of it.
  const bool dead = std::ranges::any_of(known, &Control::Known::dead);
  for (const Control::Known& one : known) {
    states.push_back(one.state);
    states.back().gone = dead ? one.dead : one.state.gone;
    if (!states.back().gone) states.back().reason.clear();
  }
  return states;
}

}  // namespace

std::vector<RankState> Rank::peers() const {
  return control_ ? states_of(control_->known(channel_)) : std::vector<RankState>();
}

// Notices are forwarded unchanged, because the rank that gave up first may end before all others
// have received its notice.
std::optional<Rank::News> Rank::notice_in(const std::vector<Control::Known>& known) const {
  for (const Control::Known& one : known) {
    if (!one.notice) continue;
    const int from = one.state.rank;
    return News{*one.notice, fmt::format("{} reports: {}", name_ranks({&from, 1}, info_.ranks),
                                         one.notice->text)};
  }
  return std::nullopt;
}

std::optional<Rank::News> Rank::bad_news(const Place& place) const {
  std::vector<int> all(static_cast<std::size_t>(info_.ranks));
  std::iota(all.begin(), all.end(), 0);
  return bad_news(place, all);
}

std::optional<Rank::News> Rank::bad_news(const Place& place, std::span<const int> awaited) const {
  if (!control_) return std::nullopt;
  if (const std::optional<std::string> ended = control_->ended()) return News{{{}, *ended}, *ended};
  const std::vector<Control::Known> known = control_->known(channel_);
  if (std::optional<News> said = notice_in(known)) return said;
  std::vector<RankState> states = states_of(known);
  std::erase_if(states, [&](const RankState& state) {
    return std::ranges::find(awaited, state.rank) == awaited.end();
  });
  if (gone_before(states, place).empty()) return std::nullopt;
  const Notice notice = blame(states, info_.ranks, place, {});
  return News{notice, notice.text};
}

void Rank::beat() {
  if (!control_) return;
  // if the watch holds the lock, it informs the others
  const std::unique_lock lock(look_mutex_, std::try_to_lock);
  const Clock::time_point now = Clock::now();
  if (!lock.owns_lock() || now - said_ < beat_) return;
  said_ = now;
  control_->post(channel_, {info_.generation, posted_.run, posted_.round});
}

std::vector<int> Rank::silent_ones(std::chrono::milliseconds within) const {
  std::vector<int> silent;
  for (const RankState& state : peers()) {
    if (!state.posted || 2 * state.silent >= within) silent.push_back(state.rank);
  }
  return silent;
}

Notice Rank::blame_late(const Waiting& waiting) const {
  if (!control_) return {};
  if (waiting.place.round != Place::kBefore) {
    return blame(peers(), info_.ranks, waiting.place, waiting.within);
  }
  Notice notice = {silent_ones(waiting.within), ""};
  if (notice.ranks.empty()) return notice;
  notice.text =
      fmt::format("{} {} sent nothing for {} ms or more", name_ranks(notice.ranks, info_.ranks),
                  have(notice.ranks), waiting.within.count() / 2);
  return notice;
}

std::optional<Rank::News> Rank::verdict_on(const Question& question, const Place& place,
                                           bool late) const {
  constexpr std::chrono::milliseconds kGrace(100);
  using std::chrono::milliseconds;
  if (!control_) return News{{{}, question.error}, question.error};
  if (std::optional<News> news = bad_news(place)) {
    news->text += fmt::format("; {}", question.error);
    return news;
  }
  const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - question.since);
  std::vector<int> dead, silent;
  for (const Control::Known& one : control_->known(channel_)) {
    if (one.dead) {
      // A rank that had completed its part is not missed.
      if (!one.left) dead.push_back(one.state.rank);
    } else if (one.answered < question.number && !one.state.gone) {
      silent.push_back(one.state.rank);
    }
  }
  if (dead.empty() && !late && (!silent.empty() || waited < kGrace)) return std::nullopt;
  const Notice notice = blame_for_error(question.error, dead, silent, info_.ranks, waited);
  return News{notice, notice.text};
}

bool Rank::look() {
  const std::lock_guard lock(look_mutex_);
  if (!usable()) return false;
  Track::Look seen;
  try {
    const device::ContextScope scope(*context_);
    seen = track_.look();
  } catch (const Error& error) {
    const std::string text = fmt::format("{}: {}", name(), error.what());
    return !try_drop(text, {{info_.rank}, text}, true);
  }
  // Work that ends after the communicator was given up may have ended without its messages.
  if (!usable()) return false;
  passed_ = seen.passed;
  const Place at = seen.at.value_or(seen.passed);
  const Clock::time_point now = Clock::now();
  const bool beats = seen.under_way && now - said_ >= beat_;
  if (control_ && (at != posted_ || beats)) {
    control_->post(channel_, {info_.generation, at.run, at.round});
    said_ = now;
  }
  posted_ = at;
  constexpr std::chrono::milliseconds kBetweenQuestions(10);
  if (seen.under_way && !question_ && now - asked_nccl_ >= kBetweenQuestions) {
    asked_nccl_ = now;
    question_ = asynchronous_error();
  }
  const bool done = look_at_others(seen);
  return usable() && (seen.under_way || !done);
}

bool Rank::look_at_others(const Track::Look& seen) {
  using std::chrono::milliseconds;
  constexpr milliseconds kSoon(2), kGrace(100);
  const Clock::time_point now = Clock::now();
  const auto waited =
      seen.at ? std::chrono::duration_cast<milliseconds>(now - seen.since) : milliseconds::zero();
  const std::uint32_t rung = bell_->rung();
  if (rung == news_ && waited < kSoon && !question_) return true;
  std::vector<Control::Known> known;
  if (control_) {
    if (const std::optional<std::string> ended = control_->ended()) {
      return try_drop(*ended, {{}, *ended}, false);
    }
    known = control_->known(channel_);
  }
  for (const Control::Known& one : known) {
    const int from = one.state.rank;
    if (one.state.gone && std::ranges::find(gone_, from) == gone_.end()) {
      gone_.push_back(from);
      note(CommunicatorEventKind::kGone, {from}, one.state.reason);
    }
  }
  if (const std::optional<News> said = notice_in(known)) {
    return try_drop(said->text, said->notice, true);
  }
  news_ = rung;
  if (question_) {
    const bool late = deadline_.count() > 0 && now - question_->since >= deadline_;
    const std::optional<News> news = verdict_on(*question_, seen.at.value_or(seen.passed), late);
    return news && try_drop(news->text, news->notice, true);
  }
  if (!seen.at) return true;
  const std::vector<RankState> states = states_of(known);
  // The last messages of a rank that has gone may still arrive.
  if (gone_before(states, *seen.at).empty()) {
    gone_since_.reset();
  } else if (!gone_since_) {
    gone_since_ = now;
  }
  const bool late = deadline_.count() > 0 && waited >= deadline_;
  if (late || (gone_since_ && now - *gone_since_ >= kGrace)) {
    const Notice notice = blame(states, info_.ranks, *seen.at, waited);
    return try_drop(fmt::format("{} gives up: {}", name(), notice.text), notice, true);
  }
  if (deadline_.count() > 0 && waited >= deadline_ / 2 && slow_ != *seen.at) {
    slow_ = *seen.at;
    const Notice notice = blame(states, info_.ranks, *seen.at, waited);
    note(CommunicatorEventKind::kSlow, notice.ranks, notice.text);
  }
  return true;
}

// A thread inside NCCL returns at its own deadline. If the communicator is blocking, the thread may
// never return, and the messages cannot be ended.
bool Rank::try_drop(const std::string& reason, const Notice& notice, bool tell) {
  const InsideNccl inside(&in_nccl_, std::try_to_lock);
  if (!inside.entered() && !info_.blocking) return false;
  drop(reason, notice, tell, inside.entered());
  return true;
}

RunState Rank::state_of(std::int64_t run) const {
  if (run < 0 || run >= runs()) {
    base::fail(ErrorCode::kInvalidArgument, "run {} of a communicator that has had {}", run,
               runs());
  }
  if (run <= captured_ && run >= queued_) {
    base::fail(ErrorCode::kInvalidArgument,
               "a graph was captured of run {}, which has no state of its own", run);
  }
  if (passed_.run > run) return RunState::kGood;
  return usable() ? RunState::kUnderWay : RunState::kVoid;
}

RunState Rank::state(std::int64_t run) {
  look();
  const std::lock_guard lock(look_mutex_);
  return state_of(run);
}

RunState Rank::wait_for_run(std::int64_t run) {
  while (true) {
    const RunState state = this->state(run);
    if (state != RunState::kUnderWay) return state;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace annulus::exchange
