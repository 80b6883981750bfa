// The public scope of work. It is not a part of base, because programs link base in addition to the
// library, and a thread would then have another Work object than the library's calls use.

#include "annulus/types.h"
#include "base/work.h"

namespace annulus::inline v0 {

struct WorkScope::Impl {
  base::Work work;
};

WorkScope::WorkScope(const WorkLimit& limit)
    : impl_(new Impl{base::Work(limit, "the calls of a scope")}) {}
WorkScope::~WorkScope() = default;
std::int64_t WorkScope::steps() const { return impl_->work.steps(); }

}  // namespace annulus::inline v0
