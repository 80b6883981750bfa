// The C interface of the cache of layouts. Each function converts its arguments and calls
// annulus/layout.h.
#include "annulus/layout.h"

#include "annulus/c_layout.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

struct CacheObject {
  explicit CacheObject(const LayoutCacheLimits& limits) : cache(limits) {}
  LayoutCache cache;
};
HandleTable<CacheObject>& caches() {
  static auto* table = new HandleTable<CacheObject>("layout cache", 0x5d);
  return *table;
}
using CachePin = HandleTable<CacheObject>::Pin;

struct QueryObject {
  LayoutQuery query;
};
HandleTable<QueryObject>& queries() {
  static auto* table = new HandleTable<QueryObject>("layout query", 0x4f);
  return *table;
}
using QueryPin = HandleTable<QueryObject>::Pin;

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_layout_cache_create(const annulus_cache_limits* limits,
                                           annulus_layout_cache** cache) {
  return guarded([&] {
    check_pointer("cache (where the handle goes)", cache);
    give(cache, caches(), std::make_unique<CacheObject>(limits_of(limits)));
  });
}

annulus_status annulus_layout_cache_destroy(annulus_layout_cache* cache) {
  return guarded([&] { caches().erase(number(cache)); });
}

annulus_status annulus_layout_cache_clear(annulus_layout_cache* cache) {
  return guarded([&] { CachePin(caches(), number(cache))->cache.clear(); });
}

annulus_status annulus_layout_cache_get_counters(annulus_layout_cache* cache,
                                                 annulus_cache_counters* to) {
  return guarded([&] {
    const CachePin pin(caches(), number(cache));
    write_counters(to, pin->cache.counters());
  });
}

annulus_status annulus_layout_query_create(const char* pattern, const annulus_block_layout* blocks,
                                           int64_t block_rows, int64_t block_columns, int64_t heads,
                                           int64_t layer, annulus_layout_query** query) {
  return guarded([&] {
    check_pointer("query (where the handle goes)", query);
    give(query, queries(),
         std::make_unique<QueryObject>(QueryObject{
             LayoutQuery(pattern_of(pattern, blocks), block_rows, block_columns, heads, layer)}));
  });
}

annulus_status annulus_layout_query_destroy(annulus_layout_query* query) {
  return guarded([&] { queries().erase(number(query)); });
}

annulus_status annulus_layout_query_key(annulus_layout_query* query, int64_t seq_q, int64_t seq_k,
                                        annulus_text** key) {
  return guarded([&] {
    const QueryPin pin(queries(), number(query));
    check_pointer("key (where the handle goes)", key);
    give_text(key, pin->query.key(seq_q, seq_k));
  });
}

annulus_status annulus_layout_cache_get(annulus_layout_cache* cache, annulus_layout_query* query,
                                        int64_t seq_q, int64_t seq_k,
                                        const annulus_work_limit* limit, annulus_layout** layout,
                                        int64_t* q_position) {
  return guarded([&] {
    const CachePin from(caches(), number(cache));
    const QueryPin asked(queries(), number(query));
    check_pointer("layout (where the handle goes)", layout);
    check_pointer("q_position (where the number goes)", q_position);
    std::shared_ptr<const GridLayout> found =
        from->cache.get(asked->query, seq_q, seq_k, work_limit_of(limit));
    *q_position = found->q_position;
    give_layout(layout, std::move(found));
  });
}

}  // extern "C"
