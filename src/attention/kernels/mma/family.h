#ifndef ANNULUS_ATTENTION_KERNELS_MMA_FAMILY_H_
#define ANNULUS_ATTENTION_KERNELS_MMA_FAMILY_H_

// The functions of mma's record (family.cc), listed by the file that defines them.

#include "attention/kernels/family.h"

namespace annulus::attention {

// config.cc
std::optional<std::string> mma_why_illegal(const KernelConfig& config, const Dims& dims,
                                           jit::Arch arch);
std::optional<std::string> mma_why_spills(const KernelConfig& config, const Dims& dims,
                                          jit::Arch arch);
std::optional<std::string> mma_why_unsuited(const KernelConfig& config,
                                            const SuitQuestion& question);
void mma_enumerate(const AddCandidates& add);
CtaShape mma_cta(const KernelConfig& config);
Footprint mma_footprint(const KernelConfig& config, const Dims& dims);

// work.cc
KernelWork mma_tile_work(const KernelConfig& config, const KernelFeatures& features,
                         const TileContext& context);
KernelWork mma_row_work(const KernelConfig& config, const KernelFeatures& features);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_MMA_FAMILY_H_
