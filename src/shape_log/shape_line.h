#ifndef ANNULUS_SHAPE_LOG_SHAPE_LINE_H_
#define ANNULUS_SHAPE_LOG_SHAPE_LINE_H_

// The line of a file of shapes for a planned problem. It is sufficient to compile the problem's
// kernels ahead.

#include <string>

#include "annulus/batch.h"
#include "annulus/device.h"

namespace annulus::shape_log {

// A problem as a line of a file of shapes, which `annulus warm` and `annulus tune` read. It states
// everything that determines the kernels, except given strides. A layout that did not come from a
// file has a text in the pattern that is not allowed in a file of shapes.
std::string shape_line(const Problem& problem, const PlanOptions& options = {});

// A batch of requests as such a line, by its bounds. Limits of memory are left out.
std::string shape_line(const BatchProblem& problem, const BatchOptions& options = {});

// Text such as "`--heads 8 --seq 4096 ...`", with a note of properties that a line cannot state.
std::string wanted_by(const Problem& problem, const PlanOptions& options,
                      const Selection* selection = nullptr);
std::string wanted_by(const BatchProblem& problem, const BatchOptions& options);

}  // namespace annulus::shape_log

#endif  // ANNULUS_SHAPE_LOG_SHAPE_LINE_H_
