#include "exchange/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "base/turn.h"
#include "base/work.h"
#include "exchange/inside_nccl.h"

namespace annulus::exchange {
namespace {

constexpr const char* kOneCallAtATime =
    "another thread is inside a call of this communicator; take turns";

void require_peer(int peer, const CommunicatorInfo& info, const void* memory, std::size_t bytes) {
  if (peer < 0 || peer >= info.ranks || peer == info.rank) {
    base::fail(ErrorCode::kInvalidArgument,
               "a message between rank {} and rank {}; peers are the other ranks in [0, {})",
               info.rank, peer, info.ranks);
  }
  if (memory == nullptr && bytes > 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "a message of {} bytes between rank {} and rank {} is null", bytes, info.rank, peer);
  }
}

}  // namespace

void check_options(const CommunicatorOptions& options) {
  for (const std::chrono::milliseconds given : {options.deadline, options.planning}) {
    if (given.count() >= 0) continue;
    base::fail(ErrorCode::kInvalidArgument, "a deadline of {} ms; give 0 for none", given.count());
  }
  constexpr int kMaxCtas = 32;
  if (options.ctas < 1 || options.ctas > kMaxCtas) {
    base::fail(ErrorCode::kInvalidArgument, "{} CTAs for NCCL's kernels; give 1 to {}",
               options.ctas, kMaxCtas);
  }
}

Rank::Rank(device::ContextPointer context, NcclPointer nccl, const CommunicatorOptions& options,
           ControlPointer control)
    : context_(std::move(context)),
      nccl_(std::move(nccl)),
      deadline_(options.deadline),
      planning_(options.planning),
      control_(std::move(control)),
      channel_(control_, bell_),
      track_(context_) {
  check_options(options);
  if (deadline_.count() > 0) beat_ = std::min(beat_, deadline_ / 8);
  info_.ctas = options.ctas;
  info_.blocking = options.blocking;
  info_.simulated = nccl_->report.simulated;
  info_.nccl_version = nccl_->report.version;
  info_.nccl = fmt::format("{} at {}", nccl_->report.version_text, nccl_->report.path);
  if (!control_) return;
  info_.generation = control_->generation();
  info_.members_digest = control_->members_digest();
}

void Rank::begin_watch(const CommunicatorOptions& options) {
  note(CommunicatorEventKind::kOpened, {}, fmt::format("{} is there", name()));
  if (control_) control_->post(channel_, {info_.generation, posted_.run, posted_.round});
  info_.watched = options.watched;
  if (!options.watched) return;
  watch_.emplace(bell_, [this] {
    try {
      return look();
    } catch (const std::bad_alloc&) {
      return true;  // the check is repeated
    }
  });
}

std::unique_ptr<Rank> Rank::open(device::ContextPointer context, NcclPointer nccl,
                                 const CommunicatorId& id, int ranks, int rank,
                                 const CommunicatorOptions& options, ControlPointer control) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    base::fail(ErrorCode::kInvalidArgument, "rank {} of {}; ranks count from 0", rank, ranks);
  }
  std::unique_ptr<Rank> made(
      new Rank(std::move(context), std::move(nccl), options, std::move(control)));
  made->info_.rank = rank;
  made->info_.ranks = ranks;
  abi::NcclUniqueId unique;
  static_assert(sizeof(unique) == sizeof(id.bytes));
  std::memcpy(&unique, id.bytes, sizeof(unique));
  Settings settings;
  settings.blocking = options.blocking ? 1 : 0;
  settings.max_ctas = options.ctas;
  const device::ContextScope scope(*made->context_);
  // A peer may open its communicator and end it before NCCL reports on this rank that all have met.
  const Place meeting = {Place::kMeeting, Place::kBefore};
  made->posted_ = meeting;
  made->beat();
  const abi::NcclResult code =
      made->table().comm_init_rank_config(&made->comm_, ranks, unique, rank, settings.config());
  made->finish(code, "ncclCommInitRankConfig",
               {"the other ranks to meet it", meeting, made->planning_});
  made->posted_ = {};
  made->begin_watch(options);
  return made;
}

std::unique_ptr<Rank> Rank::borrow(device::ContextPointer context, NcclPointer nccl,
                                   abi::NcclComm comm, const CommunicatorOptions& options,
                                   ControlPointer control) {
  if (comm == nullptr) base::fail(ErrorCode::kInvalidArgument, "the ncclComm_t is null");
  std::unique_ptr<Rank> made(
      new Rank(std::move(context), std::move(nccl), options, std::move(control)));
  const abi::NcclTable& table = made->table();
  made->info_.borrowed = true;
  int device = -1;
  const auto ask = [&](abi::NcclResult code, const char* call) {
    if (code == abi::kNcclSuccess) return;
    base::fail(ErrorCode::kInvalidArgument,
               "the ncclComm_t is not ready, or was revoked or aborted: {}",
               text_of(table, code, call));
  };
  ask(table.comm_count(comm, &made->info_.ranks), "ncclCommCount");
  ask(table.comm_user_rank(comm, &made->info_.rank), "ncclCommUserRank");
  ask(table.comm_cu_device(comm, &device), "ncclCommCuDevice");
  if (device != made->context_->device()) {
    base::fail(ErrorCode::kInvalidArgument,
               "the ncclComm_t is of device {} and the call names {}, which is device {}", device,
               made->context_->info().name, made->context_->device());
  }
  if (const Control* const ranks = made->control(); ranks != nullptr) {
    if (ranks->rank() != made->info_.rank || ranks->ranks() != made->info_.ranks) {
      base::fail(ErrorCode::kInvalidArgument,
                 "the ncclComm_t is of rank {} of {} and the rendezvous of rank {} of {}",
                 made->info_.rank, made->info_.ranks, ranks->rank(), ranks->ranks());
    }
  }
  made->comm_ = comm;
  made->begin_watch(options);
  return made;
}

Rank::~Rank() {
  watch_.reset();
  // The progress of the device is still sent, so that other ranks do not take this rank for dead.
  if (usable()) wait_for_queued();
  channel_.leave();
  if (comm_ == nullptr || info_.borrowed) return;
  if (usable()) {
    finalize();
    return;
  }
  // The communicator may have been given up while a thread was inside NCCL.
  const device::QuietScope scope(*context_);
  if (scope.active()) end_now();
}

// Waits for the queued messages as ncclCommFinalize would, but before the others are informed that
// this rank sends nothing more.
void Rank::wait_for_queued() {
  const Clock::time_point end = end_of(deadline_);
  while (look() && std::uncaught_exceptions() <= exceptions_ && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void Rank::finalize() {
  const device::QuietScope scope(*context_);
  if (!scope.active()) return;
  // An exception of the caller is in flight, so this rank does not wait for the others.
  if (std::uncaught_exceptions() > exceptions_) {
    end_now();
    return;
  }
  // ncclCommFinalize and ncclCommDestroy both wait for the ranks' hosts, of which one may have
  // died.
  if (!info_.blocking) {
    const auto in_vain = [&] {
      if (!control_) return false;
      if (control_->ended()) return true;
      return std::ranges::any_of(control_->known(channel_), [](const Control::Known& one) {
        return one.dead || one.notice.has_value();
      });
    };
    const abi::NcclResult code = table().comm_finalize(comm_);
    const bool going = code == abi::kNcclSuccess || code == abi::kNcclInProgress;
    if (!going || poll(end_of(deadline_), in_vain) != abi::kNcclSuccess) {
      end_now();
      return;
    }
  }
  table().comm_destroy(comm_);
}

std::string Rank::name() const { return fmt::format("rank {} of {}", info_.rank, info_.ranks); }

Rank::Clock::time_point Rank::end_of(std::chrono::milliseconds within) {
  constexpr std::chrono::milliseconds kForEver = std::chrono::years(100);
  const bool endless = within.count() == 0 || within >= kForEver;
  return endless ? Clock::time_point::max() : Clock::now() + within;
}

// Polls without pauses at first, because most operations take microseconds.
template <typename InVain>
abi::NcclResult Rank::poll(Clock::time_point deadline, const InVain& in_vain) const {
  constexpr int kAtOnce = 200, kBetweenNews = 20;
  for (int polls = 0;; ++polls) {
    abi::NcclResult code = abi::kNcclSuccess;
    const abi::NcclResult asked = table().comm_get_async_error(comm_, &code);
    if (asked != abi::kNcclSuccess && asked != abi::kNcclInProgress) return asked;
    if (code != abi::kNcclInProgress || Clock::now() >= deadline) return code;
    if (polls < kAtOnce) {
      std::this_thread::yield();
      continue;
    }
    if (polls % kBetweenNews == 0 && in_vain()) return code;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Rank::finish(abi::NcclResult code, const char* call, const Waiting& waiting) {
  if (code == abi::kNcclInProgress) {
    code = poll(end_of(waiting.within), [&] {
      beat();
      return bad_news(waiting.place).has_value();
    });
  }
  if (code == abi::kNcclSuccess) return;
  if (code == abi::kNcclInProgress) fail_waiting(waiting);
  fail_for(question_of(code, call), waiting);
}

Rank::Question Rank::question_of(abi::NcclResult code, const char* call) const {
  Question question;
  question.code = error_of(code);
  question.error = fmt::format("{}: {}", name(), text_of(table(), code, call));
  question.since = Clock::now();
  if (control_) question.number = control_->ask();
  return question;
}

void Rank::fail_for(const Question& question, const Waiting& waiting) {
  const Clock::time_point end = std::min(end_of(deadline_), end_of(waiting.within));
  while (true) {
    const bool late = Clock::now() >= end;
    if (const std::optional<News> news = verdict_on(question, waiting.place, late)) {
      fail(question.code, news->text, news->notice);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::optional<Rank::Question> Rank::asynchronous_error() {
  if (info_.borrowed) return std::nullopt;
  const InsideNccl inside(&in_nccl_, std::try_to_lock);
  // If another thread is inside NCCL, that thread receives the error itself.
  if (!inside.entered() || !usable()) return std::nullopt;
  abi::NcclResult found = abi::kNcclSuccess;
  const abi::NcclResult code = table().comm_get_async_error(comm_, &found);
  if (code != abi::kNcclSuccess && code != abi::kNcclInProgress) found = code;
  if (found == abi::kNcclSuccess || found == abi::kNcclInProgress) return std::nullopt;
  return question_of(found, "ncclCommGetAsyncError");
}

void Rank::wait(const device::Stream& stream, const char* what, std::chrono::milliseconds within) {
  const Waiting waiting = {what, planning_place(), within};
  const Clock::time_point end = end_of(within);
  constexpr int kBetweenNews = 50, kBetweenQuestions = 500;
  for (int polls = 1; !stream.done(); ++polls) {
    if (Clock::now() >= end) fail_waiting(waiting);
    if (polls % kBetweenNews == 0) {
      beat();
      if (bad_news(waiting.place)) fail_waiting(waiting);
    }
    if (polls % kBetweenQuestions == 0) {
      if (const std::optional<Question> question = asynchronous_error()) {
        fail_for(*question, waiting);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  // If the communicator was given up meanwhile, the work has ended without its messages.
  require_usable();
}

void Rank::fail_waiting(const Waiting& waiting) {
  if (const std::optional<News> news = bad_news(waiting.place)) {
    fail(ErrorCode::kCommunication,
         fmt::format("{} no longer waits for {}: {}", name(), waiting.what, news->text),
         news->notice);
  }
  const Notice late = blame_late(waiting);
  const std::string text =
      fmt::format("{} waited {} ms for {}: {}", name(), waiting.within.count(), waiting.what,
                  late.ranks.empty() ? "a rank is late or has died" : late.text);
  fail(ErrorCode::kCommunication, text, {late.ranks, late.ranks.empty() ? text : late.text});
}

std::vector<std::vector<std::byte>> Rank::all_gather(std::span<const std::byte> own) {
  require_usable();
  const bool endless = planning_.count() == 0 || planning_ > kLongestDeadline;
  const std::chrono::milliseconds within = endless ? kLongestDeadline : planning_;
  std::optional<News> news;
  std::optional<Error> ended;
  const auto in_vain = [&](std::span<const int> awaited) {
    beat();
    try {
      base::settle();
    } catch (const Error& error) {
      ended = error;
    }
    news = bad_news(planning_place(), awaited);
    return ended || news;
  };
  Gathered gathered = control_->gather(own, within, in_vain);
  // Some of the late ranks may only wait for another rank. The silent ones are the cause.
  const std::vector<int> silent = silent_ones(within);
  std::vector<int> late;
  std::ranges::set_intersection(gathered.late, silent, std::back_inserter(late));
  if (!late.empty()) gathered.late = late;
  const std::optional<Notice> missing = control_->missing_in(gathered, within);
  if (!missing) return std::move(gathered.bytes);
  const InsideNccl inside(&in_nccl_);
  if (ended) {
    const std::string text = fmt::format("{}: {}", name(), ended->what());
    fail(ended->code(), text, {{info_.rank}, text});
  }
  if (!news) fail(ErrorCode::kCommunication, missing->text, *missing);
  fail(ErrorCode::kCommunication,
       fmt::format("{} no longer waits for the other ranks to plan: {}", name(), news->text),
       news->notice);
}

void Rank::fail(ErrorCode code, const std::string& text, const Notice& notice) {
  drop(text, notice, true, true);
  throw Error(code, text);
}

// NCCL's guide allows an abort only if no other thread is inside a call ("Fault Tolerance").
void Rank::give_up(const std::string& reason) {
  const base::Turn turn(&busy_, kOneCallAtATime);
  const InsideNccl inside(&in_nccl_);
  drop(reason, {{info_.rank}, fmt::format("{} gives up: {}", name(), reason)}, true, true);
}

void Rank::note(CommunicatorEventKind kind, std::vector<int> ranks, const std::string& text) {
  CommunicatorEvent event;
  event.kind = kind;
  event.generation = info_.generation;
  event.run = std::max<std::int64_t>(runs() - 1, 0);
  event.ranks = std::move(ranks);
  event.text = text;
  history_.add(std::move(event));
}

void Rank::drop(const std::string& reason, const Notice& notice, bool tell, bool end) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (!given_up_) {
      reason_ = reason;
      blamed_ = notice.ranks;
      given_up_ = first = true;
    }
  }
  try {
    if (first) note(CommunicatorEventKind::kGivenUp, notice.ranks, reason);
    if (first && control_ && tell) control_->tell(channel_, notice);
  } catch (const std::bad_alloc&) {
    // The work on the streams must end in any case.
  }
  if (comm_ == nullptr || info_.borrowed || !end) return;
  const device::QuietScope scope(*context_);
  end_now();
}

// Retries if a call fails, because nothing else frees a stream that waits for a rank that has died.
void Rank::end_now() {
  if (aborted_.exchange(true)) return;
  constexpr int kTimes = 3;
  for (int time = 0; time < kTimes; ++time) {
    if (table().comm_abort(comm_) == abi::kNcclSuccess) return;
  }
}

std::string Rank::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void Rank::check(std::span<const SentBytes> sends, std::span<const ReceivedBytes> receives) const {
  for (const SentBytes& one : sends) require_peer(one.to, info_, one.from, one.bytes);
  for (const ReceivedBytes& one : receives) require_peer(one.from, info_, one.to, one.bytes);
}

std::vector<int> Rank::blamed() const {
  const std::lock_guard lock(mutex_);
  return blamed_;
}

bool Rank::capturing(abi::CUstream stream) const {
  int status = 0;
  const auto ask = context_->table().stream_is_capturing;
  if (ask == nullptr || ask(stream, &status) != abi::kCudaSuccess || status == 0) return false;
  if (info_.blocking) return true;
  base::fail(ErrorCode::kUnsupported,
             "the stream is being captured and the communicator is non-blocking, whose groups no "
             "graph can hold; open one with CommunicatorOptions::blocking");
}

void Rank::require_usable() const {
  if (usable()) return;
  base::fail(ErrorCode::kCommunication, "the communicator of {} was given up: {}", name(),
             reason());
}

std::int64_t Rank::exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                            std::span<const ReceivedBytes> receives) {
  const base::Turn turn(&busy_, kOneCallAtATime);
  check(sends, receives);
  require_usable();
  const device::ContextScope scope(*context_);
  const bool tracked = !capturing(stream);
  const std::int64_t run = begin_run();
  try {
    queue_round(stream, sends, receives, {run, 0}, tracked);
    close_run(stream, run, tracked);
  } catch (const std::exception& error) {
    abandon_run(run, error.what());
    throw;
  }
  return run;
}

void Rank::exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                    std::span<const ReceivedBytes> receives, const Place& place) {
  const base::Turn turn(&busy_, kOneCallAtATime);
  check(sends, receives);
  require_usable();
  const device::ContextScope scope(*context_);
  queue_round(stream, sends, receives, place, !capturing(stream));
  bell_->ring();
}

void Rank::end_run(abi::CUstream stream, std::int64_t run) {
  const device::ContextScope scope(*context_);
  close_run(stream, run, !capturing(stream));
}

void Rank::close_run(abi::CUstream stream, std::int64_t run, bool tracked) {
  if (!tracked) {
    captured_ = run;
    return;
  }
  track_.end_run(stream, run);
  queued_ = run + 1;
  bell_->ring();
}

void Rank::abandon_run(std::int64_t run, const char* why) noexcept {
  try {
    if (!usable()) return;
    const InsideNccl inside(&in_nccl_);
    const std::string text = fmt::format("{} could not queue run {}: {}", name(), run, why);
    drop(text, {{info_.rank}, text}, true, true);
  } catch (const std::exception&) {
    given_up_ = true;
  }
}

void Rank::exchange_within(abi::CUstream stream, std::span<const SentBytes> sends,
                           std::span<const ReceivedBytes> receives,
                           std::chrono::milliseconds within) {
  const base::Turn turn(&busy_, kOneCallAtATime);
  check(sends, receives);
  require_usable();
  const device::ContextScope scope(*context_);
  queue(stream, sends, receives, {"a group of messages to be queued", planning_place(), within});
}

void Rank::queue_round(abi::CUstream stream, std::span<const SentBytes> sends,
                       std::span<const ReceivedBytes> receives, const Place& place, bool tracked) {
  if (sends.empty() && receives.empty()) return;
  if (tracked) track_.begin(stream);
  queue(stream, sends, receives, {"a group of messages to be queued", place, deadline_});
  if (tracked) track_.end(stream, place);
}

void Rank::queue(abi::CUstream stream, std::span<const SentBytes> sends,
                 std::span<const ReceivedBytes> receives, const Waiting& waiting) {
  const InsideNccl inside(&in_nccl_);
  require_usable();
  abi::NcclResult code = table().group_start();
  if (code != abi::kNcclSuccess) fail_for(question_of(code, "ncclGroupStart"), waiting);
  // An error inside a group is kept until the end of the group, where NCCL drops all of the group.
  abi::NcclResult inner = abi::kNcclSuccess;
  const char* inner_call = nullptr;
  const auto note_error = [&](abi::NcclResult one, const char* of) {
    if (one == abi::kNcclSuccess || one == abi::kNcclInProgress || inner_call != nullptr) return;
    inner = one;
    inner_call = of;
  };
  for (const SentBytes& one : sends) {
    note_error(table().send(one.from, one.bytes, abi::kNcclUint8, one.to, comm_, stream),
               "ncclSend");
  }
  for (const ReceivedBytes& one : receives) {
    note_error(table().recv(one.to, one.bytes, abi::kNcclUint8, one.from, comm_, stream),
               "ncclRecv");
  }
  code = table().group_end();
  if (inner_call != nullptr) {
    fail_for(question_of(inner, inner_call), waiting);
  }
  // NCCL may return success for a group of a non-blocking communicator before the group is queued.
  if (code == abi::kNcclSuccess && !info_.blocking) code = abi::kNcclInProgress;
  finish(code, "ncclGroupEnd", waiting);
}

// The communicator of an engine may end before the memory is freed, but NCCL requires that handles
// are returned before the communicator ends.
void* Rank::register_memory(void* data, std::size_t bytes) {
  const base::Turn turn(&busy_, kOneCallAtATime);
  const InsideNccl inside(&in_nccl_);
  if (!usable() || info_.borrowed || table().comm_register == nullptr) return nullptr;
  void* handle = nullptr;
  const abi::NcclResult code = table().comm_register(comm_, data, bytes, &handle);
  return code == abi::kNcclSuccess ? handle : nullptr;
}

void Rank::deregister_memory(void* handle) {
  const InsideNccl inside(&in_nccl_);
  if (usable() && table().comm_deregister != nullptr) table().comm_deregister(comm_, handle);
}

}  // namespace annulus::exchange
