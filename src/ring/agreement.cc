#include "ring/agreement.h"

#include <algorithm>
#include <map>

#include "annulus/version.h"
#include "base/fail.h"
#include "base/shortened.h"
#include "pattern/layout_file.h"
#include "pattern/node.h"

namespace annulus::ring {
namespace {

std::string text_of(const std::vector<std::vector<Segment>>& shards) {
  std::string text;
  for (const auto& shard : shards) {
    text += text.empty() ? "" : " ";
    for (const Segment& segment : shard) {
      text += fmt::format("[{}+{}]", segment.start, segment.length);
    }
    if (shard.empty()) text += "[]";
  }
  return text;
}

std::string join(const std::vector<int>& ranks) {
  constexpr std::size_t kMax = 8;
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < kMax; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  return ranks.size() <= kMax ? text : text + ", ...";
}

}  // namespace

Terms terms_of(const Problem& problem, const ShardMap& shards, Route route,
               const std::string& device, const std::string& config) {
  Terms terms;
  const auto add = [&](const char* name, const auto& value) {
    terms.push_back({name, fmt::format("{}", value)});
  };
  add("library version", ANNULUS_VERSION);
  add("number of ranks", shards.ranks());
  add("batch (B)", problem.batch);
  add("heads (H)", problem.heads);
  add("kv_heads (Hkv)", problem.kv_heads);
  add("seq_q (Sq)", problem.seq_q);
  add("seq_k (Sk)", problem.seq_k);
  add("head dim of Q and K", problem.dim_qk);
  add("head dim of V", problem.dim_v);
  add("dtype", to_string(problem.dtype));
  add("pattern", problem.pattern.to_string());
  std::string layouts;
  pattern::add_layout_digests(problem.pattern.node(), &layouts);
  add("contents of block layouts", layouts);
  add("scale", problem.effective_scale());
  add("score", problem.score.to_string());
  add("q0", problem.q_position());
  add("k0", problem.k_position());
  add("total_k", problem.context().seq_k);
  add("layer", problem.layer);
  add("want_lse", problem.want_lse);
  add("lse_base", to_string(problem.lse_base));
  add("shards of Q", text_of(shards.q));
  add("shards of K", text_of(shards.k));
  add("route", to_string(route));
  add("architecture and driver", device);
  add("configuration", config.empty() ? "(none requested)" : config);
  return terms;
}

base::Digest digest_of(const Terms& terms) {
  std::string text;
  for (const Term& term : terms) {
    text += fmt::format("{}:{}={}:{};", term.name.size(), term.name, term.value.size(), term.value);
  }
  return base::digest(text);
}

void require_agreement(std::span<const Terms> ranks) {
  if (ranks.empty()) return;
  const base::Digest first = digest_of(ranks[0]);
  const bool agree = std::all_of(ranks.begin(), ranks.end(),
                                 [&](const Terms& terms) { return digest_of(terms) == first; });
  if (agree) return;
  for (std::size_t term = 0; term < ranks[0].size(); ++term) {
    std::map<std::string, std::vector<int>> brought;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      brought[ranks[rank][term].value].push_back(static_cast<int>(rank));
    }
    if (brought.size() == 1) continue;
    // The value of most ranks is taken as right. Of two equally large groups, the group with the
    // lowest rank is taken as right.
    const auto most = std::max_element(brought.begin(), brought.end(), [](auto& a, auto& b) {
      return a.second.size() != b.second.size() ? a.second.size() < b.second.size()
                                                : a.second.front() > b.second.front();
    });
    std::string others;
    for (const auto& [value, who] : brought) {
      if (value == most->first) continue;
      others += fmt::format("{}rank {} brought {}", others.empty() ? "" : ", ", join(who),
                            base::shortened(value));
    }
    base::fail(ErrorCode::kInvalidArgument,
               "the ranks do not agree on {}: {}, rank {} {}; give all ranks the same value",
               ranks[0][term].name, others, join(most->second), base::shortened(most->first));
  }
}

}  // namespace annulus::ring
