// A problem of attention over [B, S, H, D] tensors, and its answer.
#pragma once
#include "support.h"

namespace proven {

struct Attention {
  int batch, heads, kv_heads, queries, keys, dim;
  bool causal;  // aligned to the bottom right

  double scale() const { return 1 / std::sqrt(double(dim)); }
  // The number of keys that row `i` of the queries sees.
  int visible(int i) const { return causal ? std::clamp(i + 1 + keys - queries, 0, keys) : keys; }
};

// Compares `out`, and the [B, H, Sq] logarithms of sums if they are given, with float64.
template <typename Operand, typename Out>
int compare(const Attention& p, const std::vector<Operand>& q, const std::vector<Operand>& k,
            const std::vector<Operand>& v, const std::vector<Out>& out,
            const std::vector<float>* lse, double bound) {
  Answer answer, logs;
  std::vector<double> row;
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads; ++h) {
      const int kh = h / (p.heads / p.kv_heads);
      auto at = [&](const std::vector<Operand>& data, int j) {
        return &data[((size_t(b) * p.keys + j) * p.kv_heads + kh) * p.dim];
      };
      for (int i = 0; i < p.queries; ++i) {
        const size_t first = ((size_t(b) * p.queries + i) * p.heads + h) * p.dim;
        const double log_sum = attention_row(
            &q[first], p.dim, p.dim, p.visible(i), p.scale(), [&](int j) { return at(k, j); },
            [&](int j) { return at(v, j); }, row);
        for (int d = 0; d < p.dim; ++d) answer.add(float(out[first + d]), row[d]);
        if (lse) logs.add((*lse)[(size_t(b) * p.heads + h) * p.queries + i], log_sum);
      }
    }
  if (lse && logs.finish(1e-3) != 0) return 1;
  return answer.finish(bound);
}

}  // namespace proven
