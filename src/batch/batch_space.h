#ifndef ANNULUS_BATCH_BATCH_SPACE_H_
#define ANNULUS_BATCH_BATCH_SPACE_H_

// The space of configurations of each kernel that computes requests: the functions of the records
// in batch_config.cc, and what they have in common. Whether a configuration is legal depends on
// nothing but head dims and architecture: a legal one serves every batch, whatever its pages.

#include <cstdint>
#include <optional>
#include <string>

#include "attention/kernels/config_family.h"

namespace annulus::batch {

// The numbers of all these kernels, as batch_config() reads them.
inline constexpr attention::ConfigField kBatchFields[] = {
    {"warps", 'w', attention::ConfigField::Form::kNumber, 32},
    {"stages", 's', attention::ConfigField::Form::kNumber, 16, 1},
    {"query_in_registers", 'q', attention::ConfigField::Form::kFlag, 1, 1},
    {"resident", 'x', attention::ConfigField::Form::kOption, 32},
};

// Why so many CTAs of a configuration as it asks for have no room in the shared memory of a
// multiprocessor that gives one CTA at most `shared_limit` bytes, or nothing.
std::optional<std::string> why_no_room(const attention::KernelConfig& config,
                                       const attention::Dims& dims, std::int64_t shared_limit);

// decode_forward
std::optional<std::string> decode_why_illegal(const attention::KernelConfig& config,
                                              const attention::Dims& dims, jit::Arch arch);
std::optional<std::string> decode_why_spills(const attention::KernelConfig& config,
                                             const attention::Dims& dims, jit::Arch arch);
void decode_enumerate(const attention::AddCandidates& add);
attention::Footprint decode_footprint(const attention::KernelConfig& config,
                                      const attention::Dims& dims);

// chunk_wgmma_forward
std::optional<std::string> chunk_wgmma_why_illegal(const attention::KernelConfig& config,
                                                   const attention::Dims& dims, jit::Arch arch);
std::optional<std::string> chunk_wgmma_why_spills(const attention::KernelConfig& config,
                                                  const attention::Dims& dims, jit::Arch arch);
void chunk_wgmma_enumerate(const attention::AddCandidates& add);
attention::Footprint chunk_wgmma_footprint(const attention::KernelConfig& config,
                                           const attention::Dims& dims);

// chunk_forward
std::optional<std::string> chunk_why_illegal(const attention::KernelConfig& config,
                                             const attention::Dims& dims, jit::Arch arch);
std::optional<std::string> chunk_why_spills(const attention::KernelConfig& config,
                                            const attention::Dims& dims, jit::Arch arch);
void chunk_enumerate(const attention::AddCandidates& add);
attention::Footprint chunk_footprint(const attention::KernelConfig& config,
                                     const attention::Dims& dims);

// All of them: one that copies by tensor maps has four warps beside those that compute.
attention::CtaShape batch_cta(const attention::KernelConfig& config);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_SPACE_H_
