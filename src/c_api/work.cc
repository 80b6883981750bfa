// The C interface of scopes of work. The scope of a thread is stored here.

#include <optional>

#include "annulus/types.h"
#include "base/of_thread.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

std::optional<WorkScope>& scope_of_thread() { return base::of_thread<std::optional<WorkScope>>(); }

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_work_scope_begin(const annulus_work_limit* limit) {
  return guarded([&] {
    std::optional<WorkScope>& scope = scope_of_thread();
    if (scope) {
      base::fail(ErrorCode::kInvalidArgument,
                 "this thread is already in a scope of work, of {} steps so far; end it "
                 "with annulus_work_scope_end first",
                 scope->steps());
    }
    scope.emplace(work_limit_of(limit));
  });
}

annulus_status annulus_work_scope_end(int64_t* steps) {
  return guarded([&] {
    std::optional<WorkScope>& scope = scope_of_thread();
    if (!scope) {
      base::fail(ErrorCode::kInvalidArgument,
                 "this thread is not in a scope of work; begin one with "
                 "annulus_work_scope_begin");
    }
    if (steps != nullptr) *steps = scope->steps();
    scope.reset();
  });
}

}  // extern "C"
