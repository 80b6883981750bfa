#ifndef ANNULUS_C_API_PROBLEMS_H_
#define ANNULUS_C_API_PROBLEMS_H_

// Input structs of batches and selections, for the files of the C interface that read them. They
// throw as read_struct and Pattern::parse do.

#include "annulus/batch.h"
#include "annulus/c.h"
#include "annulus/c_batch.h"
#include "annulus/selection.h"

namespace annulus::c_api {

BatchProblem batch_problem_of(const annulus_batch_problem* given);
BatchOptions batch_options_of(const annulus_batch_options* given);  // null: the defaults
Selection selection_of(const annulus_selection* given);
SelectionBuffers selection_buffers_of(const annulus_selection_buffers* given);

}  // namespace annulus::c_api

#endif  // ANNULUS_C_API_PROBLEMS_H_
