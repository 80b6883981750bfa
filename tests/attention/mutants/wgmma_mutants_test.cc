// Mutants of the wgmma kernel, with one mistake each. They run on few CTAs, so that each takes
// several tiles, and with more steps than two turns of the stages, because mistakes between tiles
// and between turns show nowhere else.

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "support/mutant.h"
#include "support/nvrtc.h"

namespace {

using namespace annulus;

using test::Mutant;

// The kernel from which a mutant is made.
enum Kind : int {
  kPlain,         // O and Q have separate shared memory
  kWide,          // head dim 256: O is rescaled first and written through Q's shared memory
  kBlocks,        // two tiles of the list to a step
  kListed,        // two tiles of a list in memory to a step
  kBytes,         // 8-bit elements: V is transposed, and there are scales
  kHeadScales,    // 8-bit elements with one scale for a head
  kQuery,         // Q in registers
  kTwos,          // clusters of two CTAs, each of which copies half of K and V
  kInParts,       // 8-bit elements whose products with V are made in parts
  kDrawn,         // works are drawn from a counter
  kDrawnShort,    // works are drawn, and have no more steps than stages
  kDrawnByTwos,   // clusters draw works
  kDrawnOfBytes,  // short works are drawn, and warps transpose V
};

constexpr char kKernel[] = "kernels/wgmma/wgmma_forward.cu";
constexpr char kProducer[] = "kernels/wgmma/producer.cuh";
constexpr char kConsumer[] = "kernels/wgmma/consumer.cuh";
constexpr char kFinish[] = "kernels/wgmma/finish_block.cuh";
constexpr char kStore[] = "kernels/wgmma/store_output.cuh";
constexpr char kWork[] = "kernels/wgmma/work.cuh";
constexpr char kScheduler[] = "kernels/wgmma/tile_scheduler.cuh";
constexpr char kTransposer[] = "kernels/wgmma/transposer.cuh";
constexpr char kTranspose[] = "tile/transpose.cuh";
constexpr char kSoftmax[] = "tile/softmax.cuh";
constexpr char kParts[] = "kernels/wgmma/parts.cuh";
constexpr char kPromoted[] = "kernels/wgmma/promoted_accumulator.cuh";
constexpr char kScales[] = "kernels/wgmma/scales.cuh";
constexpr char kFirstScores[] =
    "ptx::fence_products(); start_scores(scores[0], place_); ptx::wait_products<0>();";
constexpr char kLaterScores[] = "else { ptx::fence_products(); start_scores(scores[0], place_);";
constexpr char kLaterValues[] =
    "ptx::hold(output[0]); ptx::fence_products(); start_values(output[0], probabilities, before);";

constexpr char kOneSpeaks[] = "one warp speaks for all four";

const std::set<std::string> kRaces = {"shared memory race", "access to bytes in flight"};
const std::set<std::string> kDeadlock = {"deadlock"};
const std::set<std::string> kRegisters = {"access to a register in flight"};
const std::set<std::string> kWrong = {"wrong answer"};

std::vector<Mutant> mutants() {
  std::set<std::string> unordered = kRaces;
  unordered.insert("uninitialised read");
  std::set<std::string> miscounted = kRaces;
  miscounted.insert({"barrier misuse", "deadlock"});
  const std::set<std::string> twice = {"global memory race", "unordered writes",
                                       "access to bytes in flight"};
  std::set<std::string> unannounced = unordered;
  unannounced.insert({"barrier misuse", "deadlock"});
  return {
      // Mistakes with fences.
      {"no fence before the first scores",
       {{kConsumer, kFirstScores, "start_scores(scores[0], place_); ptx::wait_products<0>();"}},
       {"missing fence"}},
      {"no fence before later scores",
       {{kConsumer, kLaterScores, "else { start_scores(scores[0], place_);"}},
       {"missing fence"}},
      {"no fence before values, where the output was rescaled after that of the scores",
       {{kConsumer, kLaterValues,
         "ptx::hold(output[0]); start_values(output[0], probabilities, before);"}},
       {"missing fence"},
       {},
       kWide},
      {"no proxy fence before O leaves",
       {{kStore, "  ptx::fence_shared_writes();\n", ""}},
       {"missing fence"}},
      // Mistakes in waits for products.
      {"scores are read before they are there",
       {{kConsumer, "ptx::wait_products<1>();", "ptx::wait_products<2>();"}},
       kRegisters},
      {"the output is rescaled under its product",
       {{kConsumer, "shared_ + Layout::kUnused); ptx::wait_products<0>();",
         "shared_ + Layout::kUnused); ptx::wait_products<1>();"}},
       kRegisters},
      {"probabilities are converted before the product that reads the old ones is over",
       {{kConsumer, "ptx::pin(state.sum[0][0] + state.sum[0][1], shared_ + Layout::kUnused);",
         "tile::convert_probabilities<Element>(scores[0], probabilities);"},
        {kConsumer,
         "rescale_moved(output, correction); } tile::convert_probabilities<Element>(scores[0], "
         "probabilities);",
         "rescale_moved(output, correction); }"}},
       kRegisters},
      {"the first scores are read at once",
       {{kConsumer, kFirstScores, "ptx::fence_products(); start_scores(scores[0], place_);"}},
       kRegisters},
      {"scores are never committed",
       {{kConsumer, "place.stage * Layout::Keys::kBytes);\n    ptx::commit_products();",
         "place.stage * Layout::Keys::kBytes);"}},
       {"access to a register in flight", "unwaited asynchronous effect"}},
      // Mistakes in waits for copies.
      {"nobody waits for Q",
       {{kConsumer,
         "      ptx::wait(shared_ + Layout::kQueriesFull, queries_parity_);\n      queries_parity_ "
         "^= 1;\n",
         ""}},
       unordered},
      {"nobody waits for later keys",
       {{kConsumer, "ptx::wait(barrier(place_, 0), place_.parity);\n      turns_.take();",
         "turns_.take();"}},
       unordered},
      {"nobody waits for values",
       {{kConsumer, "ptx::wait(barrier(before, Layout::kOperandFull), before.parity);", ""}},
       unordered},
      {"the parity of the keys never changes",
       {{kConsumer, "ptx::wait(barrier(place_, 0), place_.parity);\n      turns_.take();",
         "ptx::wait(barrier(place_, 0), 0);\n      turns_.take();"}},
       miscounted},
      {"the producer expects half of the keys",
       {{kProducer, "ptx::arrive_expecting(barriers, Layout::Keys::kBytes);",
         "ptx::arrive_expecting(barriers, Layout::Keys::kBytes / 2);"}},
       miscounted},
      {"the producer expects more of the values than come",
       {{kProducer,
         "ptx::arrive_expecting(barriers + 2 * ptx::kBarrierBytes, Layout::Values::kBytes);",
         "ptx::arrive_expecting(barriers + 2 * ptx::kBarrierBytes, Layout::Values::kBytes + 16);"}},
       kDeadlock},
      {"the producer expects Q of one consumer alone",
       {{kProducer, "Shape::kConsumers * Layout::Queries::kBytes);", "Layout::Queries::kBytes);"}},
       miscounted},
      {"the parity of Q never changes",
       {{kConsumer, "      queries_parity_ ^= 1;\n", ""}},
       miscounted},
      {"the producer takes full keys for free ones",
       {{kProducer, "ptx::wait(barriers + ptx::kBarrierBytes, place.parity ^ 1);",
         "ptx::wait(barriers + ptx::kBarrierBytes, place.parity);"}},
       kDeadlock},
      {"values are counted by the barrier of the keys",
       {{kProducer, "maps.v, barriers + 2 * ptx::kBarrierBytes,", "maps.v, barriers,"}},
       miscounted},
      // Mistakes in the release of buffers.
      {"the producer does not wait for free keys",
       {{kProducer, "      ptx::wait(barriers + ptx::kBarrierBytes, place.parity ^ 1);\n", ""}},
       miscounted},
      {"the producer does not wait for free values",
       {{kProducer, "      ptx::wait(barriers + 3 * ptx::kBarrierBytes, place.parity ^ 1);\n", ""}},
       miscounted},
      {"values are given back before the product has read them",
       {{kConsumer, "turns_.hand_on();\n        ptx::wait_products<1>();",
         "turns_.hand_on(); release_values(before); ptx::wait_products<1>();"},
        {kConsumer, "      release_values(before);\n      if constexpr (!kRescaleFirst)",
         "      if constexpr (!kRescaleFirst)"}},
       kRaces},
      {"keys are never given back",
       {{kConsumer,
         "release_keys(place_);\n      finish(scores[0], row, entries, step, batch, head);",
         "finish(scores[0], row, entries, step, batch, head);"}},
       kDeadlock},
      {kOneSpeaks,
       {{kConsumer, "arrive_everywhere<Shape>(barrier(place, 1), lane_);",
         "if (lane_ == 0 && warp_ == 0) { for (int i = 0; i < 4; ++i) ptx::arrive(barrier(place, "
         "1)); }"}},
       kRaces},
      {"Q is given back before the last scores are there",
       {{kConsumer,
         "    if constexpr (Shape::kOutputApart && !kQueryInRegisters) {\n      release(shared_ + "
         "Layout::kQueriesFree);\n    }\n",
         ""},
        {kConsumer, "#pragma unroll 1\n    for (int step = 1; step < steps; ++step) {",
         "    release(shared_ + Layout::kQueriesFree);\n#pragma unroll 1\n    for (int step = 1; "
         "step < steps; ++step) {"}},
       unordered},
      {"the next Q comes while O leaves through it",
       {{kStore, "    if constexpr (!Shape::kOutputApart) ptx::wait_stores_read();\n", ""}},
       kRaces,
       {},
       kWide},
      {"O is staged while the previous one leaves",
       {{kStore, "if (Shape::kOutputApart && warp == 0 && ptx::elect()) ptx::wait_stores_read();",
         ""}},
       kRaces},
      {"O leaves before all warps have staged it",
       {{kStore, "ptx::fence_shared_writes();\n  ptx::sync_threads(barrier, 128);",
         "ptx::fence_shared_writes();\n  __syncwarp();"}},
       {"shared memory race", "access to bytes in flight", "uninitialised read", "missing fence"}},
      {"nobody waits for the last O",
       {{kConsumer, "    if (warp_ == 0 && ptx::elect()) ptx::wait_stores_read();\n  }", "  }"}},
       {"unwaited asynchronous effect"}},
      // Mistakes with turns and with registers.
      {"nobody begins the turns", {{kConsumer, "turns_.begin();", ""}}, kDeadlock},
      {"a turn is not handed on",
       {{kConsumer, "turns_.hand_on();\n        ptx::wait_products<1>();",
         "ptx::wait_products<1>();"}},
       kDeadlock},
      {"more registers than there are",
       {{kKernel, "(Layout::kTransposes ? 232 : 240)", "(Layout::kTransposes ? 232 : 248)"}},
       kDeadlock},
      {"barriers that nobody has made",
       {{kKernel, "    ptx::init_barrier(shared + Layout::kQueriesFree, 4 * Shape::kConsumers);\n",
         ""}},
       {"barrier misuse", "uninitialised read"}},
      {"barriers that the copies cannot see yet",
       {{kKernel, "    ptx::publish_barriers();\n", ""}},
       {"missing fence"}},
      {"barriers that the other warps cannot see yet",
       {{kKernel, "  sync_all<Shape>();\n  const unsigned warpgroup",
         "  const unsigned warpgroup"}},
       {"shared memory race", "barrier misuse"}},
      {"registers that one warp of the producer's four gives",
       {{kKernel, "    ptx::give_registers<kProducerRegisters>();",
         "    if (threadIdx.x < 32) ptx::give_registers<kProducerRegisters>();"}},
       kDeadlock},
      // Mistakes in descriptors, and mistakes that only the answer shows.
      {"a tile that starts between two panels",
       {{kConsumer, "output, probabilities, shared_ + Layout::kOperands + place.stage",
         "output, probabilities, shared_ + Layout::kOperands + 512 + place.stage"}},
       unordered},
      {"the groups of eight rows are too far apart",
       {{"tile/panel.cuh", "16, kGroupBytes);", "16, 2 * kGroupBytes);"}},
       unordered},
      {"values that are not transposed",
       {{"tile/warpgroup_multiply.cuh", "ptx::Wgmma<kColumns>::template bf16<1>(arguments...);",
         "ptx::Wgmma<kColumns>::template bf16<0>(arguments...);"}},
       unordered},
      {"halves of a power in the wrong order",
       {{"tile/warpgroup_multiply.cuh", "probabilities[c / 2][c % 2 * 2 + half]",
         "probabilities[c / 2][half * 2 + c % 2]"}},
       kWrong},
      {"O is staged without the swizzle",
       {{"tile/panel.cuh", "((chunk % kChunks ^ row / kRowsOfExchange % kChunks) << 4)",
         "(chunk % kChunks << 4)"}},
       {"wrong answer", "bank conflicts"}},
      {"entries of a list are given back before all lanes have read them",
       {{kConsumer, "      __syncwarp();\n    }\n    return entries;",
         "    }\n    return entries;"}},
       kRaces,
       {},
       kListed},
      // The values of the previous step are released later, and the producer waits for that too.
      {"entries of a list are read when the keys are given back",
       {{kConsumer,
         "      const Entries entries = read_entries(place_);\n      release_keys(place_);\n      "
         "finish(scores[0], row, entries, step",
         "      release_keys(place_);\n      const Entries entries = read_entries(place_);\n      "
         "finish(scores[0], row, entries, step"}},
       {"nothing"},
       {},
       kListed},
      {"the missing half of a last step is seen",
       {{kFinish, "const int keys_left = exists ? columns.end - columns.first : 0;",
         "const int keys_left = columns.end - columns.first;"}},
       kWrong,
       {},
       kBlocks},
      {"keys beyond the end are seen",
       {{kFinish, "if (partial || keys_left < kBlockColumns)", "if (partial || keys_left < 1)"}},
       kWrong},
      {"the output is not rescaled",
       {{kConsumer,
         "release_values(before);\n        if constexpr (!kRescaleFirst) "
         "tile::rescale_moved(output, correction);",
         "release_values(before);"}},
       kWrong},
      {"a warp asks half of its rows whether a maximum has moved",
       {{kSoftmax, "correction[r][0] != 1.0f || correction[r][1] != 1.0f",
         "correction[r][0] != 1.0f"}},
       kWrong},
      {"a lane asks for itself whether a maximum has moved, and its warp follows lane 0",
       {{kSoftmax, "if (__any_sync(0xffffffffu, moved))",
         "if (__shfl_sync(0xffffffffu, moved, 0))"}},
       kWrong},
      // 8-bit elements.
      {"no proxy fence between the transposed values and their product",
       {{kTransposer, "ptx::fence_shared_writes();\n", ""}},
       {"missing fence"},
       {},
       kBytes},
      {"a warp that transposes is not counted",
       {{kKernel, "Layout::kOperandFull * ptx::kBarrierBytes, kTransposers);",
         "Layout::kOperandFull * ptx::kBarrierBytes, kTransposers - 1);"}},
       kRaces,
       {},
       kBytes},
      {"a warp too many is waited for",
       {{kKernel, "Layout::kOperandFull * ptx::kBarrierBytes, kTransposers);",
         "Layout::kOperandFull * ptx::kBarrierBytes, kTransposers + 1);"}},
       kDeadlock,
       {},
       kBytes},
      {"values are transposed before they are there",
       {{kTransposer, "      ptx::wait(barriers + 2 * ptx::kBarrierBytes, place.parity);\n", ""}},
       unordered,
       {},
       kBytes},
      {"values are transposed over those that a product reads",
       {{kTransposer,
         "      ptx::wait(barriers + Layout::kOperandFree * ptx::kBarrierBytes, place.parity ^ "
         "1);\n",
         ""}},
       miscounted,
       {},
       kBytes},
      {"the lanes of a warp are not waited for",
       {{kTransposer, "      __syncwarp();\n", ""}},
       {"shared memory race", "missing fence"},
       {},
       kBytes},
      {"V is given back before it has been read",
       {{kTransposer, "      tile::transpose_bytes<",
         "      if (lane == 0) ptx::arrive(barriers + 3 * ptx::kBarrierBytes);\n      "
         "tile::transpose_bytes<"},
        {kTransposer, "      arrive_everywhere<Shape>(barriers + 3 * ptx::kBarrierBytes, lane);\n",
         ""}},
       kRaces,
       {},
       kBytes},
      {"keys stay in their own order",
       {{kTranspose, "kEven = 0x6420", "kEven = 0x6240"}},
       kWrong,
       {},
       kBytes},
      {"probabilities stay in the order of their products",
       {{"tile/warpgroup_multiply.cuh", "Element::pack(low[0], low[1], high[0], high[1]);",
         "Element::pack(low[0], high[0], low[1], high[1]);"}},
       kWrong,
       {},
       kBytes},
      {"even and odd columns change places",
       {{kTranspose, "((lane % 8 / 4) ^ (lane / 8 % 2))", "((lane % 8 / 4) ^ 1 ^ (lane / 8 % 2))"}},
       kWrong,
       {},
       kBytes},
      {"all eight rows of a matrix are even columns",
       {{kTranspose, "lane < 16 ? kEven : kOdd;", "kEven;"},
        {kTranspose, "lane < 16 ? kOdd : kEven;", "kOdd;"},
        {kTranspose, "((lane % 8 / 4) ^ (lane / 8 % 2))", "lane / 8 % 2"}},
       {"bank conflicts"},
       {},
       kBytes},
      {"the scale of the next block of keys",
       {{kScales, "(key >> scales.k_shift)", "((key >> scales.k_shift) + 1) % scales.k_blocks"}},
       kWrong,
       {},
       kBytes},
      {"the output is not brought to the unit of V",
       {{kScales, "    correction[0][0] *= unit_correction_;\n", ""}},
       kWrong,
       {},
       kBytes},
      {"promoted sums keep their row max",
       {{kPromoted, "ptx::exp2(load(relative_to(row(half))) - base)", "1.0f"}},
       kWrong,
       {},
       kBytes},
      {"a promoted sum is written over O before its copy has read it",
       {{kPromoted,
         "if (threadIdx.x / 32 % 4 == 0 && ptx::elect()) ptx::wait_stores_read(); "
         "ptx::sync_threads(barrier_, 128);",
         ""}},
       kRaces,
       {},
       kBytes},
      {"promoted sums are never added back",
       {{kConsumer, "    promoted_.end(steps, state, scales_.unit(), output);\n", ""}},
       kWrong,
       {},
       kBytes},
      {"consumers promote their output in one place",
       {{kPromoted, "consumer_ * Layout::kPromotedBytes + threadIdx", "threadIdx"}},
       kRaces,
       {},
       kBytes},
      {"the scale of a head of V is not used",
       {{kScales, "leave_scaled(state, output, of_values * (1 / powers_of_one()));",
         "leave_scaled(state, output, 1 / powers_of_one());"}},
       kWrong,
       {},
       kHeadScales},
      {"a head of K has the scale of the head of Q with its number",
       {{kScales, "scales.k ? checked_scale(scales.k[key_head_of(params, batch, head)]) : 1;",
         "scales.k ? checked_scale(scales.q[key_head_of(params, batch, head)]) : 1;"}},
       kWrong,
       {},
       kHeadScales},
      {"the sum is that of weighted probabilities",
       {{"tile/scaled_softmax.cuh", "sum += of_group * weights.inverse[g];", "sum += of_group;"}},
       kWrong,
       {},
       kBytes},
      // Mistakes with Q in registers.
      {"Q is given back before it is read",
       {{kConsumer, "    query_.read(",
         "    release(shared_ + Layout::kQueriesFree);\n    query_.read("},
        {kConsumer,
         "      ptx::fence_shared_writes();\n      __syncwarp();\n      release(shared_ + "
         "Layout::kQueriesFree);\n",
         ""}},
       kRaces,
       {},
       kQuery},
      {"the halves of a chunk of Q change places",
       {{"tile/warpgroup_multiply.cuh", "2 * step) + lane / 16));",
         "2 * step) + (lane / 16 ^ 1)));"}},
       kWrong,
       {},
       kQuery},
      // Mistakes with clusters.
      {"the other CTA's barriers may not be made yet",
       {{kKernel, "    ptx::sync_cluster();\n  } else {", "    __syncthreads();\n  } else {"}},
       kRaces,
       {},
       kTwos},
      {"a CTA leaves while the other one still gives buffers back",
       {{kKernel, "  if constexpr (Shape::kCluster > 1) ptx::sync_cluster();\n", ""}},
       {"shared memory race", "out of bounds", "unwaited asynchronous effect"},
       {},
       kTwos},
      {"the other CTA is not asked whether its buffers are free",
       {{kWork, "if (lane < Shape::kCluster) ptx::arrive_at(barrier, lane);",
         "if (lane < Shape::kCluster) ptx::arrive_at(barrier, ptx::cluster_rank());"}},
       {"shared memory race", "access to bytes in flight", "barrier misuse"},
       {},
       kTwos},
      {"buffers are given back by arrivals that order nothing",
       {{"ptx/mbarrier.cuh", "mbarrier.arrive.shared::cluster.b64 _, [place]",
         "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [place]"}},
       kRaces,
       {},
       kTwos},
      {"buffers are given back to the first CTA alone",
       {{kWork, "if (lane < Shape::kCluster)", "if (lane < Shape::kCluster - 1)"}},
       kDeadlock,
       {},
       kTwos},
      {"what is given back is counted as without a cluster",
       {{kKernel, "kReaders = 4 * Shape::kConsumers * Shape::kCluster;",
         "kReaders = 4 * Shape::kConsumers;"}},
       {"shared memory race", "access to bytes in flight", "barrier misuse"},
       {},
       kTwos},
      {"each CTA expects what it copies itself",
       {{kProducer, "ptx::arrive_expecting(barriers, Layout::Keys::kBytes);",
         "ptx::arrive_expecting(barriers, Layout::Keys::kBytes / 2);"}},
       {"shared memory race", "access to bytes in flight", "barrier misuse", "deadlock",
        "uninitialised read"},
       {},
       kTwos},
      {"copies reach one CTA",
       {{kProducer, "(1 << Shape::kCluster) - 1", "1"}},
       {"deadlock", "barrier misuse"},
       {},
       kTwos},
      {"both CTAs copy the same half",
       {{kProducer,
         "const int number = box * kCluster + rank_in_cluster<Shape>();\n          load_shared",
         "const int number = box * kCluster;\n          load_shared"}},
       {"shared memory race", "access to bytes in flight", "uninitialised read", "wrong answer"},
       {},
       kTwos},
      {"both CTAs compute the same row",
       {{kWork, "if (rows_apart) row.row += rank;", ""}},
       {"global memory race", "unordered writes", "uninitialised read", "wrong answer"},
       {},
       kTwos},
      // Mistakes in products with V that are made in parts.
      {"a part is added before its product is over",
       {{kParts, "ptx::wait_products<1>();", "ptx::wait_products<2>();"}},
       kRegisters,
       {},
       kInParts},
      {"the last part is added before its product is over",
       {{kParts, "ptx::wait_products<kNext>();", "ptx::wait_products<kNext + 1>();"}},
       kRegisters,
       {},
       kInParts},
      {"no fence before a part whose registers were read",
       {{kParts, "    ptx::fence_products();\n", ""}},
       {"missing fence"},
       {},
       kInParts},
      {"nobody waits for values that come in parts",
       {{kConsumer, "ptx::wait(barrier(place, Layout::kOperandFull), place.parity);", ""}},
       unordered,
       {},
       kInParts},
      {"values are given back before their parts were read",
       {{kConsumer, "        start_next);\n    release_values(place);", "        start_next);"},
        {kConsumer, "    add_values_in_parts<",
         "    release_values(place);\n    add_values_in_parts<"}},
       {"shared memory race", "access to bytes in flight"},
       {},
       kInParts},
      {"parts are added to an output of another row_max",
       {{kParts, "fmaf(piece[i], correction[i / 2], part[c][i])", "piece[i] + part[c][i]"}},
       kWrong,
       {},
       kInParts},
      {"a part begins with the one before it",
       {{"tile/warpgroup_multiply.cuh",
         "Panels<kDim, kColumns, 1>::columns(first, step);\n    const int accumulate = step != 0;",
         "Panels<kDim, kColumns, 1>::columns(first, step);\n    const int accumulate = 1;"}},
       {"uninitialised read", "wrong answer"},
       {},
       kInParts},
      // Mistakes with works that are drawn.
      {"the counter is read and written, not added to",
       {{kScheduler,
         "const int index = in_order(work_, static_cast<int>(atomicAdd(work_.next, 1u)));",
         "const int index = static_cast<int>(*work_.next); *work_.next = index + 1;"}},
       {"global memory race"},
       {},
       kDrawn},
      {"two numbers are drawn for one work",
       {{kScheduler,
         "const int index = in_order(work_, static_cast<int>(atomicAdd(work_.next, 1u)));",
         "atomicAdd(work_.next, 1u); "
         "const int index = static_cast<int>(atomicAdd(work_.next, 1u));"}},
       kWrong,
       {},
       kDrawn},
      {"a number is announced that the counter has already given away",
       {{kScheduler,
         "const int index = in_order(work_, static_cast<int>(atomicAdd(work_.next, 1u)));",
         "const int index = static_cast<int>(atomicAdd(work_.next, 1u)) - 1;"}},
       twice,
       {},
       kDrawn},
      {"a number replaces the last one before all have read it",
       {{kScheduler, "    ptx::wait(shared_ + Layout::kWorkFree, parity_);\n", ""}},
       miscounted,
       {},
       kDrawnShort},
      {"nobody waits for the number",
       {{kScheduler, "  ptx::wait(shared + Layout::kWorkFull, parity);\n", ""}},
       unordered,
       {},
       kDrawn},
      {"the number is announced before it is stored",
       {{kScheduler,
         "      ptx::store_shared(shared_ + Layout::kWorkDrawn, static_cast<unsigned>(index));\n   "
         "   "
         "ptx::arrive(shared_ + Layout::kWorkFull);\n",
         "      ptx::arrive(shared_ + Layout::kWorkFull);\n      "
         "ptx::store_shared(shared_ + Layout::kWorkDrawn, static_cast<unsigned>(index));\n"}},
       unordered,
       {},
       kDrawn},
      {"the number is stored without a barrier's phase",
       {{kScheduler, "      ptx::arrive(shared_ + Layout::kWorkFull);\n", ""}},
       kDeadlock,
       {},
       kDrawn},
      {"the number is never released",
       {{kScheduler, "    if (threadIdx.x % 32 == 0) release_drawn<Shape>(shared_);\n", ""}},
       kDeadlock,
       {},
       kDrawn},
      {"the number is released before all lanes have read it",
       {{kScheduler, "    __syncwarp();\n    if (threadIdx.x % 32 == 0) release_drawn",
         "    if (threadIdx.x % 32 == 0) release_drawn"}},
       kRaces,
       {},
       kDrawnShort},
      {"one warp of each consumer releases the number for all four",
       {{kScheduler, "    if (threadIdx.x % 32 == 0) release_drawn<Shape>(shared_);\n",
         "    if (threadIdx.x % 128 == 0) { for (int i = 0; i < 4; ++i) "
         "release_drawn<Shape>(shared_); }\n"}},
       kRaces,
       {},
       kDrawnShort},
      {"a reader of the number is not counted",
       {{kScheduler, "Shape::kCluster - 1;\n}", "Shape::kCluster - 2;\n}"}},
       miscounted,
       {},
       kDrawnShort},
      {"a reader too many of the number is waited for",
       {{kScheduler, "Shape::kCluster - 1;\n}", "Shape::kCluster;\n}"}},
       kDeadlock,
       {},
       kDrawn},
      {"readers wait for the same phase again and again",
       {{kScheduler, "drawn_work<Shape>(shared_, parity_);\n    parity_ ^= 1;",
         "drawn_work<Shape>(shared_, parity_);"}},
       miscounted,
       {},
       kDrawn},
      {"the producer waits for the same phase again and again",
       {{kScheduler, "    parity_ ^= 1;\n    [[maybe_unused]] constexpr",
         "    [[maybe_unused]] constexpr"}},
       miscounted,
       {},
       kDrawn},
      {"the end is not announced",
       {{kScheduler,
         "const int index = in_order(work_, static_cast<int>(atomicAdd(work_.next, 1u)));",
         "const int index = static_cast<int>(atomicAdd(work_.next, 1u)); "
         "if (index >= work_.count) return index;"}},
       kDeadlock,
       {},
       kDrawn},
      {"consumers count off what the producer draws",
       {{kScheduler, "    if constexpr (Shape::kDrawsWork) return take();\n", ""}},
       {"deadlock", "wrong answer", "uninitialised read", "global memory race", "unordered writes",
        "unwaited asynchronous effect"},
       {},
       kDrawn},
      {"the first work is that of the CTA, not of the cluster",
       {{kScheduler, "return static_cast<int>(blockIdx.x) / Shape::kCluster;",
         "return static_cast<int>(blockIdx.x);"}},
       {"deadlock", "wrong answer", "uninitialised read", "global memory race", "unordered writes",
        "shared memory race", "access to bytes in flight", "barrier misuse"},
       {},
       kDrawnByTwos},
      {"each CTA of a cluster draws",
       {{kScheduler, "if (rank_in_cluster<Shape>() != 0) {", "if (false) {"}},
       miscounted,
       {},
       kDrawnByTwos},
      {"the number goes to the first CTA alone",
       {{kScheduler, "shared_ + Layout::kWorkFull, rank,", "shared_ + Layout::kWorkFull, 0,"}},
       miscounted,
       {},
       kDrawnByTwos},
      {"the number is released to the CTA itself",
       {{kScheduler, "ptx::arrive_at(shared + Layout::kWorkFree, 0);",
         "ptx::arrive_at(shared + Layout::kWorkFree, ptx::cluster_rank());"}},
       miscounted,
       {},
       kDrawnByTwos},
      {"the other CTA's producer does not release the number",
       {{kScheduler, "parity_ ^ 1);\n        release_drawn<Shape>(shared_);", "parity_ ^ 1);"}},
       kDeadlock,
       {},
       kDrawnByTwos},
      {"the other CTA expects no number",
       {{kScheduler,
         "        ptx::arrive_expecting(shared_ + Layout::kWorkFull, kWordBytes);\n        const",
         "        ptx::arrive(shared_ + Layout::kWorkFull);\n        const"}},
       unannounced,
       {},
       kDrawnByTwos},
      {"twice the bytes of the number are expected",
       {{kScheduler, "constexpr int kWordBytes = 4;", "constexpr int kWordBytes = 8;"}},
       {"deadlock", "barrier misuse"},
       {},
       kDrawnByTwos},
      {"warps that transpose are not counted as readers of the number",
       {{kScheduler, "(WgmmaLayout<Shape>::kTransposes ? kTransposers : 0)", "0"}},
       miscounted,
       {},
       kDrawnOfBytes},
      // Redundant changes, which must not be reported as mistakes.
      {"values need no fence of their own where nothing touched the output",
       {{kConsumer, kLaterValues,
         "ptx::hold(output[0]); start_values(output[0], probabilities, before);"}},
       {"nothing"}},
      {"scores behind the parts need no fence of their own, as the parts had theirs",
       {{kConsumer, "[&] { ptx::fence_products(); start_scores(", "[&] { start_scores("}},
       {"nothing"},
       {},
       kInParts},
      {"a fence and a barrier more",
       {{kConsumer, kLaterScores,
         "else { ptx::fence_products(); ptx::fence_products(); start_scores(scores[0], place_);"},
        {kStore, "  ptx::fence_shared_writes();\n",
         "  ptx::fence_shared_writes();\n  __syncwarp();\n"}},
       {"nothing"}},
      {"nothing keeps the sums in front of the wait",
       {{kConsumer, "ptx::pin(state.sum[0][0] + state.sum[0][1], shared_ + Layout::kUnused);", ""}},
       {"nothing"}},
      {"O is staged by each warp over its own rows of Q",
       {{kStore, "ptx::wait_stores_read();\n  ptx::sync_threads(barrier, 128);",
         "ptx::wait_stores_read();"}},
       {"nothing"},
       {},
       kWide},
      {"unchanged", {}, {"nothing"}},
      {"unchanged, head dim 256", {}, {"nothing"}, {}, kWide},
      {"unchanged, two tiles to a step", {}, {"nothing"}, {}, kBlocks},
      {"unchanged, two tiles of a list to a step", {}, {"nothing"}, {}, kListed},
      {"unchanged, 8-bit elements", {}, {"nothing"}, {}, kBytes},
      {"unchanged, Q in registers", {}, {"nothing"}, {}, kQuery},
      {"unchanged, clusters", {}, {"nothing"}, {}, kTwos},
      {"unchanged, in parts", {}, {"nothing"}, {}, kInParts},
      {"unchanged, drawn", {}, {"nothing"}, {}, kDrawn},
      {"unchanged, drawn, short works", {}, {"nothing"}, {}, kDrawnShort},
      {"unchanged, drawn by clusters", {}, {"nothing"}, {}, kDrawnByTwos},
      {"unchanged, drawn with transposers", {}, {"nothing"}, {}, kDrawnOfBytes},
      {"warps wait once more before they take the number",
       {{kScheduler, "    parity_ ^= 1;\n    __syncwarp();",
         "    parity_ ^= 1;\n    __syncwarp();\n    __syncwarp();"}},
       {"nothing"},
       {},
       kDrawn},
  };
}

// Each CTA takes several tiles of more than two turns of its stages, with tails on both sides.
test::MutantRun run_of(const Mutant& mutant) {
  Problem problem;
  problem.heads = 2;
  problem.want_lse = true;
  problem.dim_qk = problem.dim_v = mutant.variant == kWide      ? 256
                                   : mutant.variant == kInParts ? 192
                                                                : 64;
  test::MutantRun run{.device = "sim:sm_90a", .options = {}, .problem = problem};
  switch (mutant.variant) {
    case kPlain:
      run.options.config = "wgmma m128 n64 w8 s2";
      break;
    case kWide:
      run.options.config = "wgmma m128 n64 w8 s2";
      break;
    case kBlocks:
      run.options.config = "wgmma m128 n32 w8 s2 b2";
      break;
    case kListed:
      run.options.config = "wgmma m128 n32 w8 s2 b2";
      run.problem.pattern = causal() & ~strided(3, 1, 32);
      break;
    case kQuery:
      run.options.config = "wgmma m128 n64 w8 s2 q";
      break;
    case kTwos:
      run.options.config = "wgmma m128 n64 w8 s2 c2";
      run.problem.kv_heads = 2;  // lets heads share tile rows
      break;
    case kDrawn:
    case kDrawnShort:
      run.options.config = "wgmma m128 n64 w8 s2";
      break;
    case kDrawnByTwos:
      run.options.config = "wgmma m128 n64 w8 s2 c2";
      run.problem.heads = 4;
      run.problem.kv_heads = 2;
      break;
    case kBytes:
    case kInParts:
    case kDrawnOfBytes:
    case kHeadScales:
      run.options.config = "wgmma8 m128 n64 w8 s2";
      run.problem.dtype = Dtype::kFloat8E4M3;
      if (mutant.variant != kHeadScales) run.problem.scale_blocks = {64, 32, 64};
      break;
  }
  // If a wait covers the products of the whole warpgroup, one warp may release for all. This mutant
  // runs with waits that cover one warp.
  if (mutant.name == kOneSpeaks) run.products = 2;
  run.drawn = mutant.variant == kDrawn || mutant.variant == kDrawnShort ||
              mutant.variant == kDrawnByTwos || mutant.variant == kDrawnOfBytes;
  // Two clusters, so that each may draw what the other one should have.
  run.options.max_multiprocessors = mutant.variant == kDrawnByTwos ? 4 : 2;
  run.problem.seq_q = 2 * 128 + 5;
  // With 8-bit elements there are more keys than tensor cores may add up before a promotion.
  run.problem.seq_k = 64 * (mutant.variant == kBytes ? 18 : 6) + 3;
  const bool short_works = mutant.variant == kDrawnShort || mutant.variant == kDrawnOfBytes;
  if (run.drawn && !short_works) run.problem.pattern = causal();
  // There are no more steps than stages. Otherwise the wait for freed keys would also order the
  // reads of Q, or the reads of a work's number.
  if (mutant.variant == kQuery || short_works) run.problem.seq_k = 64 + 3;
  return run;
}

// Counts the mistakes that the checked mode named in every order in which they were tried.
struct Tally {
  std::size_t tried = 0;
  int named = 0;
  int named_bytes = 0;  // named mistakes in the kernels for 8-bit elements
};
Tally tally;

TEST_CASE("every mistake in the wgmma kernel is noticed, and redundancy is not") {
  if (test::nvrtc() == nullptr) return;
  base::ThreadPool pool;
  for (const Mutant& mutant : test::to_try(mutants())) {
    SUBCASE(mutant.name.c_str()) {
      const bool named = test::try_mutant(mutant, run_of(mutant), pool);
      ++tally.tried;
      tally.named += named ? 1 : 0;
      const bool bytes = mutant.variant == kBytes || mutant.variant == kInParts;
      tally.named_bytes += named && bytes ? 1 : 0;
    }
  }
}

// Most mistakes must be found without the oracle, which users do not have.
TEST_CASE("the checked mode alone names most kinds of mistakes in the wgmma kernel") {
  if (tally.tried < mutants().size()) return;  // the options select only some mutants
  MESSAGE(tally.named, " kinds are named, ", tally.named_bytes, " of them of 8-bit elements");
  CHECK(tally.named >= 84);
  CHECK(tally.named_bytes >= 12);
}

}  // namespace
