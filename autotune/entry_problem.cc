#include "autotune/entry_problem.h"

#include "annulus/error.h"
#include "base/fail.h"

namespace annulus::autotune {
namespace {

bool can_be_stated(const Problem& problem) {
  const ScaleBlocks& blocks = problem.scale_blocks;
  const std::int64_t keys = problem.k_position() + problem.seq_k;
  return blocks.q == blocks.k && blocks.k == blocks.v && problem.total_k.value_or(keys) == keys;
}

Problem stated_problem(const Entry& entry) {
  const Entry::Origin& origin = entry.origin;
  Problem problem;
  problem.batch = origin.batch;
  problem.heads = origin.heads;
  problem.kv_heads = origin.kv_heads;
  problem.seq_q = origin.seq_q;
  problem.seq_k = origin.seq_k;
  problem.dim_qk = entry.shape.dim_qk;
  problem.dim_v = entry.shape.dim_v;
  problem.dtype = entry.shape.dtype;
  problem.carry_in = entry.shape.carry_in;
  problem.carry_out = entry.shape.carry_out;
  problem.q0 = origin.q0;
  problem.k0 = origin.k0;
  problem.layer = origin.layer;
  problem.scale_blocks = {origin.scale_block, origin.scale_block, origin.scale_block};
  problem.pattern = Pattern::parse(origin.pattern, {.allow_files = false});
  problem.score = Score::parse(origin.score);
  validate(problem);
  return problem;
}

}  // namespace

void state_problem(const Problem& problem, Entry::Origin* origin) {
  origin->batch = problem.batch;
  origin->heads = problem.heads;
  origin->kv_heads = problem.kv_heads;
  origin->seq_q = problem.seq_q;
  origin->seq_k = problem.seq_k;
  origin->q0 = problem.q_position();
  origin->k0 = problem.k_position();
  origin->layer = problem.layer;
  origin->scale_block = problem.scale_blocks.q;
  if (!can_be_stated(problem)) return;
  const std::string pattern = problem.pattern.to_string(), score = problem.score.to_string();
  const bool named = pattern.find('"') != std::string::npos;
  if (named || pattern.size() > kMaxEntryText || score.size() > kMaxEntryText) return;
  origin->pattern = pattern;
  origin->score = score;
}

Problem problem_of(const Entry& entry) {
  if (entry.origin.pattern.empty()) {
    base::fail(ErrorCode::kUnsupported,
               "the entry does not hold the problem that it was found with: its pattern is of a "
               "file, of memory or long");
  }
  Problem problem;
  try {
    problem = stated_problem(entry);
  } catch (const Error& error) {
    base::fail(ErrorCode::kInvalidFile, "the entry's problem is none: {}", error.what());
  }
  if (problem.batch == 0 || problem.seq_q == 0 || shape_key(problem) != entry.shape) {
    base::fail(ErrorCode::kInvalidFile, "the entry's problem is not of its shape");
  }
  return problem;
}

}  // namespace annulus::autotune
