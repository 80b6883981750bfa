#include "planner/ring/prepared_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/withheld.h"
#include "base/fail.h"
#include "base/join.h"
#include "base/span.h"
#include "base/work.h"
#include "exchange/gather.h"
#include "jit/missing_kernel.h"
#include "planner/choices.h"
#include "planner/describe.h"
#include "planner/fit.h"
#include "planner/millis.h"
#include "planner/ring/ring_request.h"
#include "ring/agreement.h"
#include "ring/turn.h"
#include "shape_log/shape_line.h"

namespace annulus::planner {
namespace {

// The contribution of a rank to a step of planning: a text, or the rank's error.
struct Said {
  std::optional<ErrorCode> failed;
  std::string text;
};

// Calls say(), and sends its result or its error to all ranks. If a rank has failed, all ranks
// throw the error of the first rank that failed, with the number of that rank.
template <typename Say>
std::vector<std::string> say_to_all(exchange::Rank& rank, const Say& say) {
  std::string own;
  try {
    own = "+" + say();
  } catch (const Error& error) {
    own = fmt::format("-{} {}", static_cast<int>(error.code()), error.what());
  }
  std::vector<std::string> all = exchange::all_gather(rank, own);
  for (std::size_t one = 0; one < all.size(); ++one) {
    if (all[one].starts_with('+')) {
      all[one].erase(0, 1);
      continue;
    }
    const int code = std::atoi(all[one].c_str() + 1);
    const std::size_t text = std::min(all[one].find(' '), all[one].size() - 1);
    base::fail(static_cast<ErrorCode>(code), "rank {}: {}", one, all[one].substr(text + 1));
  }
  return all;
}

// Encodes terms as one text, and decodes them. Neither names nor values contain the separators.
constexpr char kEnd = '\x1e', kMiddle = '\x1f';

std::string text_of(const ring::Terms& terms) {
  std::string text;
  for (const ring::Term& term : terms) text += term.name + kMiddle + term.value + kEnd;
  return text;
}

ring::Terms terms_of(const std::string& text) {
  ring::Terms terms;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t middle = text.find(kMiddle, at);
    const std::size_t end = middle == std::string::npos ? middle : text.find(kEnd, middle);
    if (end == std::string::npos) {
      base::fail(ErrorCode::kCommunication, "a rank sent a text that cannot be read: \"{}\"", text);
    }
    terms.push_back({text.substr(at, middle - at), text.substr(middle + 1, end - middle - 1)});
    at = end + 1;
  }
  return terms;
}

// The configurations that rank 0 would run, in the order in which they are tried. Each is a line
// with the configuration and the origin of its tuned result.
std::string candidates_of(const Choices& choices) {
  std::string text;
  const auto add = [&](const attention::KernelConfig& config, const std::string& origin) {
    text += fmt::format("{}\t{}\n", attention::to_string(config), origin);
  };
  const auto add_choice = [&](const attention::Choice& choice, const std::string& origin) {
    add(choice.config, origin);
    if (choice.second) add(*choice.second, origin);
  };
  if (choices.tuned) add_choice(choices.tuned->choice, origin_of(choices.tuned->found));
  add_choice(choices.untuned, "");
  return text;
}

// Throws if this rank cannot run the configuration with its device and its strides, or if the
// configuration is withheld here and the caller requested none.
void require_possible(const attention::KernelConfig& config, const Problem& problem,
                      const attention::DeviceLimits& limits, const RingOptions& options) {
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  auto reason = attention::why_not(config, problem.dtype);
  if (!reason) reason = attention::why_not(config, dims, limits);
  if (!reason) reason = attention::why_not(config, problem, options.strides);
  if (!reason && options.config.empty()) reason = attention::why_withheld(config, dims, limits);
  if (!reason) return;
  base::fail(ErrorCode::kUnsupported, "configuration '{}' of rank 0 is not possible here: {}",
             attention::to_string(config), *reason);
}

struct Candidate {
  std::string config;
  std::string origin;
};

std::vector<Candidate> read_candidates(const std::string& text) {
  std::vector<Candidate> candidates;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t tab = std::min(text.find('\t', at), end);
    candidates.push_back({text.substr(at, tab - at),
                          text.substr(std::min(tab + 1, end), end - std::min(tab + 1, end))});
    at = end + 1;
  }
  return candidates;
}

// The ranks that this rank exchanges messages with, in ascending order.
std::vector<int> peers_of(const ring::RankSchedule& schedule) {
  std::vector<int> peers;
  for (const ring::Op& op : schedule.ops) {
    for (const ring::Transfer& transfer : op.sends) peers.push_back(transfer.peer);
    for (const ring::Transfer& transfer : op.receives) peers.push_back(transfer.peer);
  }
  std::ranges::sort(peers);
  const auto repeated = std::ranges::unique(peers);
  peers.erase(repeated.begin(), repeated.end());
  return peers;
}

}  // namespace

// The part of a run that can fail after begin_run() and leave the run partly queued.
void PreparedRank::queue(const RingCall& call) const {
  try {
    driver_.begin(call);
    for (int step = 0; step <= driver_.rounds(); ++step) {
      if (step < driver_.rounds()) {
        driver_.exchange(call, step, transport_);
        driver_.exchanged(step);
      }
      driver_.compute(call, step - 1);
    }
    const bool exchanges = driver_.exchange_stream() != nullptr;
    transport_.end_run(exchanges ? driver_.exchange_stream()
                                 : static_cast<abi::CUstream>(call.stream));
    driver_.end(call);
  } catch (const std::exception& error) {
    transport_.abandon_run(error.what());
    throw;
  }
}

std::int64_t PreparedRank::run(const RingCall& call) const {
  const base::Span span("ring run");
  base::Tally& tally = driver_.context()->tally();
  std::int64_t run = 0;
  try {
    driver_.check(call);
    const base::Turn turn(&busy_, ring::kOneRunAtATime);
    // The context is made current once, so that each step need not do it.
    const device::ContextScope scope(*driver_.context());
    run = transport_.begin_run();
    queue(call);
  } catch (...) {
    tally.add(base::Count::ring_runs_failed);
    throw;
  }
  tally.add(base::Count::ring_runs);
  tally.add(base::Count::ring_sent_bytes, driver_.sent_bytes());
  return run;
}

std::shared_ptr<const PreparedRank> prepare_rank(const Planner& planner,
                                                 const std::shared_ptr<exchange::Rank>& rank,
                                                 const Problem& problem, const ShardMap& shards,
                                                 const RingOptions& options) {
  const base::Work work(options.work, "planning a ring");
  const base::Span span("plan a rank of a ring", planner.device);
  const jit::KernelsFor wanted([&] {
    return fmt::format("rank {} of a ring of {} over {}", rank->info().rank, rank->info().ranks,
                       shape_log::wanted_by(problem, options));
  });
  const Clock::time_point start = Clock::now();
  const int number = rank->info().rank;
  const RankRequest request = {planner, &problem, &shards, &options};
  const std::vector<std::string> said = say_to_all(*rank, [&] {
    if (planner.context->device() != rank->context()->device() ||
        planner.context->handle() != rank->context()->handle()) {
      base::fail(ErrorCode::kInvalidArgument, "the communicator belongs to {} and the ring to {}",
                 rank->context()->info().name, planner.context->info().name);
    }
    if (shards.ranks() != rank->info().ranks) {
      base::fail(ErrorCode::kInvalidArgument, "shards for {} ranks, and a communicator of {}",
                 shards.ranks(), rank->info().ranks);
    }
    check_problem(request);
    check_options(request, number);
    return text_of(terms_of(request));
  });
  std::vector<ring::Terms> terms;
  for (const std::string& one : said) terms.push_back(terms_of(one));
  ring::require_agreement(terms);

  attention::DeviceLimits limits;
  std::optional<ring::World> planned_world;
  // All ranks use rank 0's configuration, tuned or not.
  const std::vector<std::string> chosen = say_to_all(*rank, [&]() -> std::string {
    limits = limits_for(planner.limits, options);
    const ring::World& world =
        planned_world.emplace(ring::plan_world(problem, shards, options.route));
    if (number != 0) return "";
    const Problem largest = ring::largest_hop(problem, shards);
    const Problem step = ring::tuned_step(problem, shards);
    return candidates_of(
        choose({.problem = largest, .segments = ring::segments_of(world), .step = &step}, limits,
               options, *planner.tuned));
  });
  const ring::World& world = *planned_world;
  const std::vector<Candidate> candidates = read_candidates(chosen[0]);
  const ring::RankDevice device = {planner.context, planner.kernels.get(), planner.limits.arch,
                                   planner.check_operands};
  // NCCL's kernels run at the same time as the kernels of the ring. The number of multiprocessors
  // left for the ring's kernels may differ between ranks, because it changes neither the choice nor
  // any bit of the result.
  attention::DeviceLimits left = limits;
  if (options.max_multiprocessors == 0 && !world.rounds.rounds.empty()) {
    left.multiprocessors = std::max(1, limits.multiprocessors - rank->info().ctas);
  }
  std::shared_ptr<PreparedRank> prepared;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const auto prepare = [&]() -> std::string {
      attention::Choice choice;
      choice.config = *attention::parse_config(candidate.config);
      require_possible(choice.config, problem, limits, options);
      ring::RankPlan plan = ring::plan_rank(world, number, left, choice);
      if (!std::ranges::all_of(plan.launches, [&](const attention::LaunchPlan& launch) {
            return launch.config == choice.config;
          })) {
        base::fail(ErrorCode::kUnsupported, "its tiles do not allow the configuration '{}'",
                   candidate.config);
      }
      require_workspace(plan.workspace.bytes, options);
      RingInfo info = describe(world, choice, plan,
                               {planner.device, planner.context->info(), planner.limits.arch});
      info.tuned = candidate.origin;
      const Clock::time_point planned = Clock::now();
      const int rounds = static_cast<int>(world.rounds.rounds.size());
      prepared = std::make_shared<PreparedRank>(std::move(plan), rounds, device, rank);
      info.ranks.front().device_bytes = prepared->driver().device_bytes();
      info.compile_ms = millis(Clock::now() - planned);
      info.plan_ms = millis(planned - start);
      prepared->info = std::move(info);
      return "";
    };
    // All ranks meet here after compiling, before the first time limit of a run begins.
    try {
      say_to_all(*rank, prepare);
      break;
    } catch (const Error&) {
      if (!rank->usable() || i + 1 == candidates.size()) throw;
    }
  }
  // Otherwise the messages that were exchanged during planning have connected all ranks.
  if (rank->control() != nullptr) {
    exchange::connect(*rank, peers_of(prepared->driver().plan().schedule));
    // Waits until all are connected. Without that, a rank that fails to connect could not be
    // distinguished from a rank that has no peers.
    exchange::all_gather(*rank, "");
  }
  planner.log.write(base::LogLevel::kInfo, "rank {} of a ring of {}, {}, {} ({:.1f} ms)", number,
                    shards.ranks(), prepared->info.config, prepared->info.route_reason,
                    prepared->info.compile_ms);
  planner.context->tally().add(base::Count::ring_plans);
  return prepared;
}

}  // namespace annulus::planner
