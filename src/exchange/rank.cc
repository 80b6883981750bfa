#include "exchange/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "base/turn.h"

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

Rank::Rank(device::ContextPointer context, NcclPointer nccl, const CommunicatorOptions& options)
    : context_(std::move(context)),
      nccl_(std::move(nccl)),
      deadline_(options.deadline),
      planning_(options.planning) {
  for (const std::chrono::milliseconds given : {deadline_, planning_}) {
    if (given.count() >= 0) continue;
    base::fail(ErrorCode::kInvalidArgument, "a deadline of {} ms; give 0 for none", given.count());
  }
  info_.blocking = options.blocking;
  info_.simulated = nccl_->report.simulated;
  info_.nccl_version = nccl_->report.version;
  info_.nccl = fmt::format("{} at {}", nccl_->report.version_text, nccl_->report.path);
}

std::unique_ptr<Rank> Rank::open(device::ContextPointer context, NcclPointer nccl,
                                 const CommunicatorId& id, int ranks, int rank,
                                 const CommunicatorOptions& options) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    base::fail(ErrorCode::kInvalidArgument, "rank {} of {}; ranks count from 0", rank, ranks);
  }
  std::unique_ptr<Rank> made(new Rank(std::move(context), std::move(nccl), options));
  made->info_.rank = rank;
  made->info_.ranks = ranks;
  abi::NcclUniqueId unique;
  static_assert(sizeof(unique) == sizeof(id.bytes));
  std::memcpy(&unique, id.bytes, sizeof(unique));
  Settings settings;
  settings.blocking = options.blocking ? 1 : 0;
  const device::ContextScope scope(*made->context_);
  const abi::NcclResult code =
      made->table().comm_init_rank_config(&made->comm_, ranks, unique, rank, settings.config());
  made->finish(code, "ncclCommInitRankConfig", "the other ranks to meet it", made->planning_);
  return made;
}

std::unique_ptr<Rank> Rank::borrow(device::ContextPointer context, NcclPointer nccl,
                                   abi::NcclComm comm, const CommunicatorOptions& options) {
  if (comm == nullptr) base::fail(ErrorCode::kInvalidArgument, "the ncclComm_t is null");
  std::unique_ptr<Rank> made(new Rank(std::move(context), std::move(nccl), options));
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
  made->comm_ = comm;
  return made;
}

Rank::~Rank() {
  if (comm_ == nullptr || info_.borrowed || given_up_) return;
  const device::QuietScope scope(*context_);
  if (!scope.active()) return;
  // An error of the caller's is on its way: the others are not waited for.
  if (std::uncaught_exceptions() > exceptions_) {
    end_now();
    return;
  }
  // Both wait for the ranks of the host, of which one may have died.
  if (!info_.blocking) {
    const abi::NcclResult code = table().comm_finalize(comm_);
    const bool going = code == abi::kNcclSuccess || code == abi::kNcclInProgress;
    if (!going || poll(end_of(deadline_)) != abi::kNcclSuccess) {
      end_now();
      return;
    }
  }
  table().comm_destroy(comm_);
}

std::string Rank::name() const { return fmt::format("rank {} of {}", info_.rank, info_.ranks); }

Rank::Clock::time_point Rank::end_of(std::chrono::milliseconds within) {
  return within.count() == 0 ? Clock::time_point::max() : Clock::now() + within;
}

// Polls often at first, since most operations take microseconds.
abi::NcclResult Rank::poll(Clock::time_point deadline) const {
  constexpr int kAtOnce = 200;
  for (int polls = 0;; ++polls) {
    abi::NcclResult code = abi::kNcclSuccess;
    const abi::NcclResult asked = table().comm_get_async_error(comm_, &code);
    if (asked != abi::kNcclSuccess && asked != abi::kNcclInProgress) return asked;
    if (code != abi::kNcclInProgress || Clock::now() >= deadline) return code;
    if (polls < kAtOnce) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void Rank::finish(abi::NcclResult code, const char* call, const char* what,
                  std::chrono::milliseconds within) {
  const Clock::time_point end = end_of(within);
  if (code == abi::kNcclInProgress) code = poll(end);
  if (code == abi::kNcclSuccess) return;
  if (code == abi::kNcclInProgress) {
    fail(ErrorCode::kCommunication,
         fmt::format("{} waited {} ms for {}: a rank is late or has died", name(), within.count(),
                     what));
  }
  fail(error_of(code), fmt::format("{}: {}", name(), text_of(table(), code, call)));
}

void Rank::wait(const device::Stream& stream, const char* what, std::chrono::milliseconds within) {
  const Clock::time_point end = end_of(within);
  while (!stream.done()) {
    if (Clock::now() >= end) {
      fail(ErrorCode::kCommunication,
           fmt::format("{} waited {} ms for {}: a rank is late or has died", name(), within.count(),
                       what));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void Rank::fail(ErrorCode code, const std::string& text) {
  drop(text);
  throw Error(code, text);
}

// NCCL's guide allows an abort only while no other thread is inside a call ("Fault Tolerance").
void Rank::give_up(const std::string& reason) {
  const base::Turn turn(&busy_, kOneCallAtATime);
  drop(reason);
}

void Rank::drop(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (given_up_) return;
    reason_ = reason;
    given_up_ = true;
  }
  if (comm_ == nullptr || info_.borrowed) return;
  const device::QuietScope scope(*context_);
  end_now();
}

// Nothing else frees a stream that waits for a rank that has died, so what fails is tried again.
void Rank::end_now() {
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

void Rank::refuse_capture(abi::CUstream stream) const {
  int capturing = 0;
  const auto ask = context_->table().stream_is_capturing;
  if (info_.blocking || ask == nullptr || ask(stream, &capturing) != abi::kCudaSuccess) return;
  if (capturing == 0) return;
  base::fail(ErrorCode::kUnsupported,
             "the stream is being captured and the communicator is non-blocking, whose groups no "
             "graph can hold; open one with CommunicatorOptions::blocking");
}

void Rank::exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                    std::span<const ReceivedBytes> receives, std::chrono::milliseconds within) {
  const base::Turn turn(&busy_, kOneCallAtATime);
  check(sends, receives);
  if (!usable()) {
    base::fail(ErrorCode::kCommunication, "the communicator of {} was given up: {}", name(),
               reason());
  }
  if (sends.empty() && receives.empty()) return;
  const device::ContextScope scope(*context_);
  refuse_capture(stream);
  abi::NcclResult code = table().group_start();
  const char* call = "ncclGroupStart";
  if (code != abi::kNcclSuccess) fail(error_of(code), text_of(table(), code, call));
  // An error inside a group is kept to its end, which drops all of it.
  abi::NcclResult inner = abi::kNcclSuccess;
  const char* inner_call = nullptr;
  const auto note = [&](abi::NcclResult one, const char* of) {
    if (one == abi::kNcclSuccess || one == abi::kNcclInProgress || inner_call != nullptr) return;
    inner = one;
    inner_call = of;
  };
  for (const SentBytes& one : sends) {
    note(table().send(one.from, one.bytes, abi::kNcclUint8, one.to, comm_, stream), "ncclSend");
  }
  for (const ReceivedBytes& one : receives) {
    note(table().recv(one.to, one.bytes, abi::kNcclUint8, one.from, comm_, stream), "ncclRecv");
  }
  code = table().group_end();
  if (inner_call != nullptr) {
    fail(error_of(inner), fmt::format("{}: {}", name(), text_of(table(), inner, inner_call)));
  }
  // A group of a non-blocking communicator may say success before it is queued.
  if (code == abi::kNcclSuccess && !info_.blocking) code = abi::kNcclInProgress;
  finish(code, "ncclGroupEnd", "a group of messages to be queued", within);
}

}  // namespace annulus::exchange
