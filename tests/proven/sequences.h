// Attention of several sequences that are consecutive, or whose keys are in pages.
#pragma once
#include "attention.h"

namespace proven {

struct Sequences {
  std::vector<int> queries, keys;  // one number for each sequence
  int heads, kv_heads, dim;
  bool causal;   // aligned to the bottom right
  int page = 0;  // rows of a page of K and V; 0: sequences are consecutive

  int count() const { return int(queries.size()); }
  // The begin of each sequence, followed by the sum of all lengths.
  static std::vector<int> starts(const std::vector<int>& lengths) {
    std::vector<int> sums{0};
    for (int length : lengths) sums.push_back(sums.back() + length);
    return sums;
  }
  std::vector<int> query_starts() const { return starts(queries); }
  std::vector<int> key_starts() const { return starts(keys); }
  int query_rows() const { return query_starts().back(); }

  // The number of pages of each sequence, and the begin of its pages in table().
  std::vector<int> page_counts() const {
    std::vector<int> counts;
    for (int length : keys) counts.push_back((length + page - 1) / page);
    return counts;
  }
  std::vector<int> page_starts() const { return starts(page_counts()); }
  // The place in memory of each page. 7 is coprime to most counts, so few pages stay in place.
  std::vector<int> table() const {
    const int count = page_starts().back();
    std::vector<int> places;
    for (int i = 0; i < count; ++i) places.push_back(count % 7 ? i * 7 % count : count - 1 - i);
    return places;
  }
  int key_rows() const { return page ? page_starts().back() * page : key_starts().back(); }
};

// Compares `out`, which has rows of all heads in the order of the sequences, with float64.
template <typename Query, typename Key, typename Out>
int compare(const Sequences& p, const std::vector<Query>& q, const std::vector<Key>& k,
            const std::vector<Key>& v, const std::vector<Out>& out, double bound) {
  const std::vector<int> query_starts = p.query_starts(), key_starts = p.key_starts();
  const std::vector<int> page_starts = p.page ? p.page_starts() : std::vector<int>();
  const std::vector<int> table = p.page ? p.table() : std::vector<int>();
  Answer answer;
  std::vector<double> row;
  for (int s = 0; s < p.count(); ++s)
    for (int h = 0; h < p.heads; ++h) {
      const Attention one{1, p.heads, p.kv_heads, p.queries[s], p.keys[s], p.dim, p.causal};
      auto at = [&](const std::vector<Key>& data, int j) {
        const int place =
            p.page ? table[page_starts[s] + j / p.page] * p.page + j % p.page : key_starts[s] + j;
        return &data[(size_t(place) * p.kv_heads + h / (p.heads / p.kv_heads)) * p.dim];
      };
      for (int i = 0; i < one.queries; ++i) {
        const size_t first = (size_t(query_starts[s] + i) * p.heads + h) * p.dim;
        attention_row(
            &q[first], p.dim, p.dim, one.visible(i), one.scale(), [&](int j) { return at(k, j); },
            [&](int j) { return at(v, j); }, row);
        for (int d = 0; d < p.dim; ++d) answer.add(float(out[first + d]), row[d]);
      }
    }
  return answer.finish(bound);
}

}  // namespace proven
