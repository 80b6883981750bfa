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

// What decides the kernels of a model's attention.
struct Model {
  enum class Layers { kNone, kSome, kAll };

  std::string name;        // "llama-3-8b"
  std::string repository;  // at huggingface.co, whose config.json the numbers are of
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;
  std::int64_t context = 0;  // tokens: the longest sequence that it was trained for
  std::int64_t window = 0;   // keys that a query sees, with its own, in layers that have a window
  Layers windowed = Layers::kNone;  // which layers have
  double softcap = 0;               // of the scores; 0: none
};

// In the order of the table, which has families together. Both may be called from any thread and
// throw only std::bad_alloc.
ANNULUS_EXPORT std::vector<Model> known_models();
ANNULUS_EXPORT std::optional<Model> find_model(std::string_view name);

// The problems of a model on one device in bfloat16: prefill of 512 tokens and of four times as
// many each up to 32768 or the context, and one new token after as many keys. A tuned result serves
// lengths of half to twice its own (docs/tuning.md), so these serve all between. A model of which
// some layers have a window has both patterns; a window that holds the whole sequence is none.
// Where K and V have other dims than Q, as in latent attention, a new token is computed otherwise,
// and there is prefill alone. Throws what Pattern::parse throws for a window below 1.
ANNULUS_EXPORT std::vector<Problem> problems_of(const Model& model);

}  // namespace annulus::inline v0

#endif  // ANNULUS_MODELS_H_
