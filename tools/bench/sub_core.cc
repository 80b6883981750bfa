#include "sub_core.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core_pipes.h"

namespace annulus::bench {
namespace {

constexpr Cycle kForever = std::numeric_limits<Cycle>::max();
constexpr int kScoreboards = 6;
std::size_t index_of(auto value) { return static_cast<std::size_t>(value); }

struct Pending {
  Cycle clear;
  Wait why;
  // For a try of an mbarrier: its number in the step; the data must have arrived as well.
  int phase = -1;
  std::int64_t step = 0;
};

struct Warp {
  int cta = 0;
  int place = 0;  // its number in its CTA
  std::size_t at = 0;
  std::int64_t step = 0;
  Cycle next = 0;  // the earliest cycle in which it can issue again
  Wait held_by = Wait::kStall;
  std::array<std::vector<Pending>, kScoreboards> scoreboards;
  std::deque<double> products, groups;  // the ends of those that are not complete
  double last_product = 0;
  std::array<int, kWaits> waited{};  // cycles since its last instruction, by reason
};

struct Cta {
  // Turns that were handed to each consumer and not yet taken.
  std::vector<std::deque<Cycle>> turns;
  int at_barrier = 0;
  // The cycle in which each warp released each buffer: [number in the step][warp][step].
  std::vector<std::vector<std::vector<Cycle>>> releases;
};

class Core {
 public:
  Core(const CoreProblem& problem, const CoreAssumptions& assumptions, double copy_rate,
       std::vector<TraceLine>* trace)
      : problem_(problem),
        assumed_(assumptions),
        product_bytes_(kSharedBytes - copy_rate),
        trace_(trace) {
    for (const Sass& one : problem.step) {
      ordinals_.push_back(one.kind == SassKind::kPhaseWait     ? phase_waits_++
                          : one.kind == SassKind::kPhaseArrive ? phase_arrivals_++
                                                               : 0);
    }
    for (int cta = 0; cta < problem.ctas; ++cta) {
      for (int place = 0; place < problem.warps; ++place) {
        Warp warp;
        warp.cta = cta;
        warp.place = place;
        warp.next = Cycle{assumptions.stagger} * static_cast<int>(warps_.size());
        warps_.push_back(std::move(warp));
      }
      Cta made;
      made.turns.resize(index_of(problem.warps));
      made.turns[0].push_back(0);
      made.releases.assign(index_of(phase_arrivals_), {});
      for (auto& of : made.releases) of.resize(index_of(problem.warps));
      ctas_.push_back(std::move(made));
    }
  }

  CoreReport run() {
    CoreReport report;
    Cycle begun = 0, now = 0, idle = 0;
    std::int64_t issued = 0;
    // The instructions are counted over all warps. A warp that the others always precede would
    // never finish its own steps.
    const auto whole = static_cast<std::int64_t>(problem_.step.size() * warps_.size());
    const std::int64_t begin = whole * (problem_.steps / 4), end = whole * problem_.steps;
    std::int64_t executed = 0;
    for (; executed < end; ++now) {
      const bool measured = executed >= begin;
      if (!measured) begun = now + 1;
      constexpr Cycle kTooLong = 1000000;
      if (++idle > kTooLong) throw std::runtime_error("the warps wait for one another for ever");
      const std::size_t chosen = choose(now);
      for (std::size_t i = 0; i < warps_.size(); ++i) {
        const Wait why = i == chosen                    ? Wait::kIssues
                         : reasons_[i] == Wait::kIssues ? Wait::kOtherWarp
                                                        : reasons_[i];
        ++warps_[i].waited[index_of(why)];
        if (measured) report.waits[index_of(why)] += 1;
      }
      if (chosen == warps_.size()) continue;
      idle = 0;
      issued += measured;
      ++executed;
      tracing_ = trace_ != nullptr && executed > end - whole;
      issue(warps_[chosen], static_cast<int>(chosen), now);
    }
    const double steps = static_cast<double>(issued) / static_cast<double>(problem_.step.size());
    report.step_cycles =
        static_cast<double>(now - begun) * static_cast<double>(warps_.size()) / steps;
    for (double& wait : report.waits) wait /= steps;
    report.busy = busy_pipes(problem_, assumed_);
    return report;
  }

 private:
  // Returns the warp that issues in this cycle, or the number of warps if none can. Sets reasons_.
  std::size_t choose(Cycle now) {
    std::size_t chosen = warps_.size();
    reasons_.clear();
    for (std::size_t i = 0; i < warps_.size(); ++i) {
      reasons_.push_back(blocked(warps_[i], now));
      if (reasons_[i] != Wait::kIssues) continue;
      if (chosen == warps_.size() || assumed_.youngest != 0) chosen = i;
    }
    if (assumed_.youngest != 0 && last_ < warps_.size() && reasons_[last_] == Wait::kIssues) {
      chosen = last_;
    }
    return chosen;
  }

  // Returns why a warp cannot issue in this cycle, or kIssues if it can.
  Wait blocked(Warp& warp, Cycle now) {
    if (now < warp.next) return warp.held_by;
    const Sass& one = problem_.step[warp.at];
    for (int i = 0; i < kScoreboards; ++i) {
      if ((one.waits_for >> i & 1) != 0) {
        if (const Wait why = held(warp, i, 0, now); why != Wait::kIssues) return why;
      }
    }
    switch (one.kind) {
      case SassKind::kCountWait:
        return held(warp, one.scoreboard, one.pending, now);
      case SassKind::kGroupWait:
        drop(warp.groups, static_cast<double>(now) - assumed_.product_latency);
        if (static_cast<int>(warp.groups.size()) <= one.pending) return Wait::kIssues;
        return one.pending > 0 ? Wait::kOneGroup : Wait::kAllGroups;
      case SassKind::kGroupProduct:
        drop(warp.products, static_cast<double>(now));
        return static_cast<int>(warp.products.size()) < assumed_.product_queue ? Wait::kIssues
                                                                               : Wait::kQueue;
      default:
        return one.never || pipe_takes(one, now) ? Wait::kIssues : Wait::kPipe;
    }
  }

  static void drop(std::deque<double>& ends, double until) {
    while (!ends.empty() && ends.front() <= until) ends.pop_front();
  }

  // Returns why a scoreboard is set more than `most` times, or kIssues if it is not.
  Wait held(Warp& warp, int scoreboard, int most, Cycle now) {
    auto& pending = warp.scoreboards[index_of(scoreboard)];
    std::erase_if(pending, [&](const Pending& one) {
      return one.clear <= now && (one.phase < 0 || has_data(warp, one, now));
    });
    return static_cast<int>(pending.size()) > most ? pending.back().why : Wait::kIssues;
  }

  // Whether the data that a wait for a phase needs have arrived.
  bool has_data(const Warp& warp, const Pending& wait, Cycle now) const {
    const std::int64_t released = wait.step - problem_.stages;
    if (problem_.copy_latency == 0 || released < 0 || phase_arrivals_ == 0) return true;
    // If each buffer has one wait and one release in the step, waits and releases have the same
    // order.
    const int number = phase_arrivals_ == phase_waits_ ? wait.phase : phase_arrivals_ - 1;
    const auto& times = ctas_[index_of(warp.cta)].releases[index_of(number)];
    return std::ranges::all_of(times, [&](const std::vector<Cycle>& of_warp) {
      return static_cast<std::int64_t>(of_warp.size()) > released &&
             of_warp[index_of(released)] + problem_.copy_latency <= now;
    });
  }

  bool pipe_takes(const Sass& one, Cycle now) {
    switch (one.kind) {
      case SassKind::kFloat:
        return std::min(float_free_[0], float_free_[1]) <= now;
      case SassKind::kInteger:
        return float_free_[0] <= now;
      case SassKind::kLogic:
        return logic_free_ <= now;
      case SassKind::kProduct:
        return tensor_free_ <= static_cast<double>(now);
      case SassKind::kSpecial:
        return special_.takes(now, assumed_.special_queue);
      default:
        return shared_wavefronts(one) == 0 || shared_.takes(now, assumed_.shared_queue);
    }
  }

  // The generator of D. Knuth's MMIX. Its upper bits are random enough here.
  int jitter() {
    drawn_ = drawn_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((drawn_ >> 33) % static_cast<std::uint64_t>(assumed_.jitter + 1));
  }

  void issue(Warp& warp, int number, Cycle now) {
    const Sass& one = problem_.step[warp.at];
    last_ = one.yields ? warps_.size() : index_of(number);
    if (tracing_) {
      trace_->push_back({now, number, one.address, one.name, warp.waited});
    }
    warp.waited = {};
    warp.next = now + std::max(1, one.stall);
    warp.held_by = Wait::kStall;
    const bool wraps = warp.at + 1 == problem_.step.size();
    if (one.taken && assumed_.branch_latency > one.stall) {
      warp.next = now + assumed_.branch_latency;
      warp.held_by = Wait::kBranch;
    }
    if (!one.never) execute(warp, one, now);
    warp.at = wraps ? 0 : warp.at + 1;
    warp.step += wraps;
  }

  void execute(Warp& warp, const Sass& one, Cycle now) {
    Cycle start = now, written = now + assumed_.other_latency;
    Wait why = Wait::kOther;
    int phase = -1;
    Cta& cta = ctas_[index_of(warp.cta)];
    if (const int count = shared_wavefronts(one); count > 0) {
      start = shared_.add(now, count * assumed_.shared_interval);
      why = one.kind == SassKind::kShuffle  ? Wait::kShuffle
            : one.kind == SassKind::kShared ? Wait::kShared
            : one.kind == SassKind::kGlobal ? Wait::kGlobal
                                            : Wait::kData;
    }
    switch (one.kind) {
      case SassKind::kFloat: {
        // There are two halves, each of which accepts an instruction every second cycle, or only
        // one half.
        const std::size_t half = float_free_[1] <= now ? 1 : 0;
        float_free_[half] = now + (assumed_.float_interval > 1 ? assumed_.float_interval : 2);
        if (assumed_.float_interval > 1) float_free_[1 - half] = float_free_[half];
        break;
      }
      case SassKind::kInteger:
        float_free_[0] = now + assumed_.integer_interval;
        if (assumed_.float_interval > 1) float_free_[1] = float_free_[0];
        break;
      case SassKind::kLogic:
        logic_free_ = now + assumed_.logic_interval;
        break;
      case SassKind::kSpecial:
        start = special_.add(now, assumed_.special_interval);
        written = start + assumed_.special_latency;
        why = Wait::kSpecial;
        break;
      case SassKind::kShuffle:
        written = start + assumed_.shuffle_latency;
        break;
      case SassKind::kShared:
        written = start + assumed_.shared_latency + 2 * (one.wavefronts - 1);
        break;
      case SassKind::kGlobal:
        written = start + assumed_.global_latency;
        break;
      case SassKind::kSystem:
        written = now + assumed_.system_latency;
        break;
      case SassKind::kFence:
        written = now + assumed_.fence_latency;
        break;
      case SassKind::kPhaseWait:
        written = start + assumed_.phase_latency + jitter();
        phase = ordinals_[warp.at];
        break;
      case SassKind::kPhaseArrive:
        cta.releases[index_of(ordinals_[warp.at])][index_of(warp.place)].push_back(now);
        break;
      case SassKind::kCopyGroup:
        written = now + std::max(1, problem_.copy_latency);
        why = Wait::kData;
        break;
      case SassKind::kProduct:
        tensor_free_ = static_cast<double>(now) + assumed_.product_interval;
        break;
      case SassKind::kGroupProduct:
        tensor_free_ = std::max(tensor_free_, static_cast<double>(now)) +
                       std::max(one.columns / 2.0, operand_bytes(one) / product_bytes_);
        warp.products.push_back(tensor_free_);
        warp.last_product = tensor_free_;
        if (one.ends_group) warp.groups.push_back(warp.last_product);
        break;
      case SassKind::kBarrier:
      case SassKind::kBarrierArrive:
        meet(warp, cta, one, now);
        break;
      default:
        break;
    }
    const Cycle read =
        one.kind == SassKind::kFence ? written : std::max(start, now) + assumed_.read_latency;
    if (one.write_scoreboard >= 0) {
      warp.scoreboards[index_of(one.write_scoreboard)].push_back({written, why, phase, warp.step});
    }
    if (one.read_scoreboard >= 0) {
      warp.scoreboards[index_of(one.read_scoreboard)].push_back({read, why});
    }
  }

  // A barrier whose number is in a register is a turn in the ring of consumers. All other barriers
  // are barriers of the whole CTA.
  void meet(Warp& warp, Cta& cta, const Sass& one, Cycle now) {
    const bool arrives = one.kind == SassKind::kBarrierArrive;
    if (one.barrier < 0) {
      const int whose = arrives ? (warp.place + 1) % problem_.warps : warp.place;
      auto& turns = cta.turns[index_of(whose)];
      if (arrives) {
        turns.push_back(now);
        for (Warp& other : warps_) {
          if (other.cta == warp.cta && other.place == whose && other.next == kForever) {
            turns.pop_front();
            other.next = now + assumed_.barrier_latency + jitter();
          }
        }
        return;
      }
      warp.held_by = Wait::kTurn;
      warp.next = kForever;
      if (!turns.empty()) {
        warp.next = std::max(now, turns.front()) + assumed_.barrier_latency + jitter();
        turns.pop_front();
      }
      return;
    }
    ++cta.at_barrier;
    if (!arrives) {
      warp.held_by = Wait::kBarrier;
      warp.next = kForever;
    }
    if (cta.at_barrier < problem_.warps) return;
    cta.at_barrier = 0;
    for (Warp& other : warps_) {
      if (other.cta == warp.cta && other.next == kForever) {
        other.next = now + assumed_.barrier_latency + jitter();
      }
    }
  }

  const CoreProblem& problem_;
  const CoreAssumptions& assumed_;
  const double product_bytes_;
  std::vector<TraceLine>* const trace_;
  std::vector<int> ordinals_;  // numbers of waits for phases, and of arrivals, within the step
  int phase_waits_ = 0, phase_arrivals_ = 0;
  std::vector<Warp> warps_;
  std::vector<Cta> ctas_;
  std::vector<Wait> reasons_;
  std::size_t last_ = kNone;
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::array<Cycle, 2> float_free_{};
  std::uint64_t drawn_ = 1;
  bool tracing_ = false;
  Cycle logic_free_ = 0;
  double tensor_free_ = 0;
  QueuedPipe special_, shared_;
};

}  // namespace

CoreReport model_core(const CoreProblem& problem, const CoreAssumptions& assumptions,
                      std::vector<TraceLine>* trace) {
  // Other uses of shared memory take their share from the products, evenly over the step.
  const double others =
      assumptions.copies_first != 0 ? other_shared_bytes(problem, assumptions) : 0;
  constexpr int kRounds = 4;
  double rate = 0;
  CoreReport report = Core(problem, assumptions, rate, nullptr).run();
  for (int i = 0; i < kRounds && std::abs(others / report.step_cycles - rate) > 1; ++i) {
    rate = others / report.step_cycles;
    report = Core(problem, assumptions, rate, nullptr).run();
  }
  if (trace != nullptr) Core(problem, assumptions, rate, trace).run();
  return report;
}

}  // namespace annulus::bench
