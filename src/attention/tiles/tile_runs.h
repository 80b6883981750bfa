#ifndef ANNULUS_ATTENTION_TILES_TILE_RUNS_H_
#define ANNULUS_ATTENTION_TILES_TILE_RUNS_H_

// Tile rows of one or two runs of tiles: conversion from the classifier's runs to a kernel's
// record, and back.

#include <optional>
#include <vector>

#include "annulus/pattern.h"
#include "params/tile_order_params.h"
#include "pattern/classify.h"

namespace annulus::attention {

// Whether rows of the pattern can be expected to have few runs. The result depends only on the
// structure of the expression, not on its numbers. So the numbers do not decide which kernel is
// compiled, unless a row has more runs than expected.
bool has_runs(const Pattern& pattern);

// The record of a row, made from the result of Classifier::row; nullopt if the row needs more than
// two runs.
std::optional<kernels::RowRuns> row_of_runs(const std::vector<pattern::BlockRun>& runs);

std::vector<pattern::BlockRun> runs_of_row(const kernels::RowRuns& row);
std::vector<pattern::BlockRun> runs_of_row(const kernels::RowRun& row);

// Appends a run, or extends the last one if the new run continues it with the same class.
void add_run(const pattern::BlockRun& run, std::vector<pattern::BlockRun>* runs);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_RUNS_H_
