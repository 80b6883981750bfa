#ifndef ANNULUS_SHAPE_LOG_SHAPE_LINE_H_
#define ANNULUS_SHAPE_LOG_SHAPE_LINE_H_

// What a call plans, in the words in which kernels for it can be compiled ahead.

#include <string>

#include "annulus/batch.h"
#include "annulus/device.h"

namespace annulus::shape_log {

// A problem as a line of a file of shapes, which `annulus warm` and `annulus tune` read. It states
// all that the kernels follow from, but for strides that were given, and for a layout that came
// from no file: its place in the pattern has a text that no file of shapes may have.
std::string shape_line(const Problem& problem, const PlanOptions& options = {});

// A batch of requests by its bounds, likewise; limits of memory are left out.
std::string shape_line(const BatchProblem& problem, const BatchOptions& options = {});

// "`--heads 8 --seq 4096 ...`", with what such a line cannot say.
std::string wanted_by(const Problem& problem, const PlanOptions& options,
                      const Selection* selection = nullptr);
std::string wanted_by(const BatchProblem& problem, const BatchOptions& options);

}  // namespace annulus::shape_log

#endif  // ANNULUS_SHAPE_LOG_SHAPE_LINE_H_
