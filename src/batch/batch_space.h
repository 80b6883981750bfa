#ifndef ANNULUS_BATCH_BATCH_SPACE_H_
#define ANNULUS_BATCH_BATCH_SPACE_H_

// The space of configurations of each kernel that computes requests: the functions of the records
// in batch_config.cc, and the code that they share. Whether a configuration is legal depends only
// on head dims and architecture: a legal one computes every batch, whatever its pages are.

#include <cstdint>
#include <optional>
#include <string>

#include "attention/kernels/config_family.h"

namespace annulus::batch {

// The fields of the configurations of all these kernels, as batch_config() reads them.
inline constexpr attention::ConfigField kBatchFields[] = {
    {"warps", 'w', attention::ConfigField::Form::kNumber, 32},
    {"stages", 's', attention::ConfigField::Form::kNumber, 16, 1},
    {"query_in_registers", 'q', attention::ConfigField::Form::kFlag, 1, 1},
    {"resident", 'x', attention::ConfigField::Form::kOption, 32},
};

// Why the resident CTAs of a configuration do not fit in the shared memory of a multiprocessor, or
// nullopt if they do. `shared_limit` is the most bytes of one CTA on that multiprocessor.
std::optional<std::string> why_no_room(const attention::KernelConfig& config,
                                       const attention::Dims& dims, std::int64_t shared_limit);

// Functions of decode_forward.
std::optional<std::string> decode_why_illegal(const attention::KernelConfig& config,
                                              const attention::Dims& dims, jit::Arch arch);
std::optional<std::string> decode_why_spills(const attention::KernelConfig& config,
                                             const attention::Dims& dims, jit::Arch arch);
void decode_enumerate(const attention::AddCandidates& add);
attention::Footprint decode_footprint(const attention::KernelConfig& config,
                                      const attention::Dims& dims);

// Functions of chunk_wgmma_forward.
std::optional<std::string> chunk_wgmma_why_illegal(const attention::KernelConfig& config,
                                                   const attention::Dims& dims, jit::Arch arch);
std::optional<std::string> chunk_wgmma_why_spills(const attention::KernelConfig& config,
                                                  const attention::Dims& dims, jit::Arch arch);
void chunk_wgmma_enumerate(const attention::AddCandidates& add);
attention::Footprint chunk_wgmma_footprint(const attention::KernelConfig& config,
                                           const attention::Dims& dims);

// Functions of chunk_forward.
std::optional<std::string> chunk_why_illegal(const attention::KernelConfig& config,
                                             const attention::Dims& dims, jit::Arch arch);
std::optional<std::string> chunk_why_spills(const attention::KernelConfig& config,
                                            const attention::Dims& dims, jit::Arch arch);
void chunk_enumerate(const attention::AddCandidates& add);
attention::Footprint chunk_footprint(const attention::KernelConfig& config,
                                     const attention::Dims& dims);

// The shape of a CTA, for all kernels. A kernel that copies by tensor maps has four warps in
// addition to the warps that compute.
attention::CtaShape batch_cta(const attention::KernelConfig& config);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_SPACE_H_
