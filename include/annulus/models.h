#ifndef ANNULUS_MODELS_H_
#define ANNULUS_MODELS_H_

// Published language models, so that kernels can be tuned or compiled ahead for one by its name:
//
//   for (const Problem& problem : problems_of(*find_model("llama-3-8b"))) tune(device, problem);

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/attention.h"

namespace annulus::inline v0 {

// A model, as far as it decides the kernels of its attention.
struct Model {
  enum class Layers { kNone, kSome, kAll };

  std::string name;        // "llama-3-8b"
  std::string repository;  // at huggingface.co, whose config.json the numbers are of
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;
  std::int64_t context = 0;  // tokens of the longest sequence: max_position_embeddings
  std::int64_t window = 0;   // keys that a query sees, with its own, in layers that have a window
  Layers windowed = Layers::kNone;  // which layers have
  double softcap = 0;               // of the scores; 0: none
  bool sinks = false;               // each head has a learnt logit of an attention sink
};

// In the order of the table, which has families together. Both may be called from any thread and
// throw only std::bad_alloc.
ANNULUS_EXPORT std::vector<Model> known_models();
ANNULUS_EXPORT std::optional<Model> find_model(std::string_view name);

// The problems of a model on one device in bfloat16: prefill of some lengths, and one new token
// after as many keys. A result serves problems of its kind of half to twice its length, and the
// share of the keys that a query sees is part of the kind (docs/tuning.md), so lengths are close
// together where a window makes the share fall. The results of these problems serve every length
// from 256 to 32768 or the context, also where some layers have a window and some have none. A
// window that holds the whole sequence is none. Where K and V have other dims than Q, as in latent
// attention, a new token is computed otherwise, and there is prefill alone. Of a model with sinks
// the logits are 0, since no kernel depends on them. Throws as validate() where numbers make no
// problem, and what Pattern::parse throws for a window below 1.
ANNULUS_EXPORT std::vector<Problem> problems_of(const Model& model);

}  // namespace annulus::inline v0

#endif  // ANNULUS_MODELS_H_
