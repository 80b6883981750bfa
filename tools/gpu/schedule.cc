#include "gpu/schedule.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

namespace annulus::gpu {
namespace {

// The most text that one step may print. An object may have several lines.
constexpr std::size_t kMaxText = 1 << 20;
constexpr std::size_t kWrapping = 24;  // {"of": ..., "says": ...}
constexpr std::chrono::milliseconds kTurn{20};
// If a killed program has not ended after this time, a driver holds it.
constexpr std::chrono::milliseconds kGoing{500};

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// A step that was started.
class Running {
 public:
  Running(const Step& step, std::string group, Results& results)
      : step_(step),
        group_(std::move(group)),
        results_(results),
        child_(step.command),
        begin_(Clock::now()),
        limit_(after(step.max_seconds)) {}

  // Reads the available output. Returns whether the step is over.
  bool turn(Clock::time_point deadline) {
    child_.pump();
    for (std::string& line : child_.take_lines()) take(std::move(line));
    const auto now = Clock::now();
    if (!killed_ && !child_.ended() && now >= std::min(limit_, deadline)) {
      by_deadline_ = deadline < limit_;
      child_.kill();
      killed_ = true;
      killed_at_ = now;
    }
    if (child_.ended() || (killed_ && now >= killed_at_ + kGoing)) {
      finish();
      return true;
    }
    return false;
  }

  const char* outcome() const { return outcome_; }
  int out() const { return child_.out(); }
  int error() const { return child_.error(); }

 private:
  void take(std::string line) {
    Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) {
      said_ += line.size() + step_.name.size() + kWrapping;
      if (said_ <= kMaxText) say(std::move(json));
    } else if (text_.size() < kMaxText) {
      text_ += line + "\n";
    }
  }

  void say(Json json) {
    if (step_.check && wrong_.empty()) {
      try {
        wrong_ = step_.check(json);
      } catch (const Json::exception& error) {  // a member of another type must not end the call
        wrong_ = std::string("it printed what cannot be checked: ") + error.what();
      }
    }
    results_.say(step_.name, std::move(json));
  }

  void finish() {
    const double seconds = seconds_between(begin_, Clock::now());
    const std::size_t object = text_.find('{');
    Json whole = object == text_.npos ? Json() : Json::parse(text_.substr(object), nullptr, false);
    if (whole.is_object()) {
      said_ += text_.size();
      say(std::move(whole));
    }
    const Child::Outcome& end = child_.outcome();
    if (step_.check && said_ == 0 && wrong_.empty()) wrong_ = "it printed no result";
    const bool good = end.exit == 0 || std::ranges::count(step_.good_exits, end.exit) > 0;
    if (!child_.ended()) {
      outcome_ = "hang";
    } else if (killed_ && by_deadline_) {
      outcome_ = "out of time";
    } else if (killed_) {
      outcome_ = "hang";
    } else if (end.signal != 0) {
      outcome_ = "crash";
    } else {
      outcome_ = good && wrong_.empty() ? "pass" : "fail";
    }
    Json line = {{"step", step_.name}, {"group", group_}, {"outcome", outcome_}};
    line["exit"] = end.exit;
    if (end.signal != 0) line["signal"] = end.signal;
    line["seconds"] = seconds;
    if (killed_ && !child_.ended()) line["note"] = "it did not go when it was killed";
    if (!wrong_.empty()) line["wrong"] = wrong_;
    // Tests print the reason of a failure on standard output, even if a library prints on standard
    // error.
    std::string tail = child_.tail();
    if (!whole.is_object()) {
      if (!tail.empty() && tail.back() != '\n') tail += '\n';
      tail += text_.substr(text_.size() - std::min(text_.size(), Child::kTailBytes));
    }
    if (std::string_view(outcome_) != "pass") line["tail"] = tail;
    results_.end(line, tail);
    std::printf("%-11s %6.1f s  %s%s%s\n", outcome_, seconds, step_.name.c_str(),
                wrong_.empty() ? "" : ": ", wrong_.c_str());
    std::fflush(stdout);
    if (step_.after) step_.after();
  }

  const Step& step_;
  std::string group_;
  Results& results_;
  Child child_;
  Clock::time_point begin_, limit_, killed_at_;
  bool killed_ = false;
  bool by_deadline_ = false;
  std::size_t said_ = 0;  // bytes of all objects
  std::string text_;      // output that is not an object on one line
  std::string wrong_;     // the error that the check found in the objects
  const char* outcome_ = "";
};

// Waits for a short time, or until one of the programs prints something.
void wait_for(const std::vector<std::unique_ptr<Running>>& running) {
  std::vector<pollfd> descriptors;
  for (const auto& one : running) {
    for (const int descriptor : {one->out(), one->error()}) {
      if (descriptor >= 0) descriptors.push_back({descriptor, POLLIN, 0});
    }
  }
  poll(descriptors.data(), descriptors.size(), static_cast<int>(kTurn.count()));
}

}  // namespace

Tally run_groups(const std::vector<Group>& groups, Clock::time_point deadline, Results& results) {
  Tally tally;
  for (const Group& group : groups) {
    std::vector<std::unique_ptr<Running>> running;
    auto next = group.steps.begin();
    while (true) {
      const bool time_left = Clock::now() < deadline;
      for (; time_left && next != group.steps.end() && std::ssize(running) < group.width; ++next) {
        if (!next->always && results.has_ended(next->name)) {
          ++tally.earlier;
          continue;
        }
        running.push_back(std::make_unique<Running>(*next, group.name, results));
      }
      if (running.empty()) break;
      wait_for(running);
      std::erase_if(running, [&](const std::unique_ptr<Running>& one) {
        if (!one->turn(deadline)) return false;
        const std::string_view outcome = one->outcome();
        ++(outcome == "pass"          ? tally.passed
           : outcome == "out of time" ? tally.not_begun
                                      : tally.failed);
        return true;
      });
    }
    for (; next != group.steps.end(); ++next) {
      const bool earlier = !next->always && results.has_ended(next->name);
      ++(earlier ? tally.earlier : tally.not_begun);
    }
  }
  return tally;
}

std::vector<std::string> lines_of(const Command& command, double max_seconds, Failing failing) {
  Child child(command);
  const auto limit = after(max_seconds);
  std::vector<std::string> lines;
  while (true) {
    child.pump();
    for (std::string& line : child.take_lines()) lines.push_back(std::move(line));
    if (child.ended()) break;
    if (Clock::now() >= limit) return {};
    poll(nullptr, 0, 5);
  }
  const bool counts = failing == Failing::kCounts || child.outcome().exit == 0;
  return counts ? lines : std::vector<std::string>{};
}

}  // namespace annulus::gpu
