#ifndef ANNULUS_ATTENTION_ORACLE_REFERENCE_H_
#define ANNULUS_ATTENTION_ORACLE_REFERENCE_H_

// The reference of annulus/oracle.h on a thread pool that the caller gives.

#include "annulus/oracle.h"
#include "attention/oracle/host_rows.h"

namespace annulus::base {
class ThreadPool;
}

namespace annulus::attention {

// Like annulus::reference(), on the threads of a pool; options.threads is ignored. Requires:
// validate(problem) and check_inputs() pass.
Reference reference(const Problem& problem, const HostInputs& inputs, base::ThreadPool& pool,
                    const ReferenceOptions& options = {});

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_ORACLE_REFERENCE_H_
