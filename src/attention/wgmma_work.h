#ifndef ANNULUS_ATTENTION_WGMMA_WORK_H_
#define ANNULUS_ATTENTION_WGMMA_WORK_H_

// How much a kernel of the wgmma family asks of each pipe; kernel_work.h adds it up.

#include <string>

#include "attention/kernel_work.h"

namespace annulus::attention {

// One tile of the list, by all warps of a CTA; of a step of several tiles its share.
// `mask_instructions` are those of one element of a lane of a partial tile.
KernelWork wgmma_tile_work(const KernelConfig& config, const KernelFeatures& features,
                           double score_instructions, double mask_instructions);

// What a CTA does for a row of tiles besides.
KernelWork wgmma_frame_work(const KernelConfig& config, const KernelFeatures& features);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_WGMMA_WORK_H_
