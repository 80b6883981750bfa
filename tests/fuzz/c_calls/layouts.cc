// Calls on patterns, layouts, their files, formats and caches.

#include <cstring>
#include <vector>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

void Program::call_pattern() {
  annulus_text* text = nullptr;
  switch (bytes_.below(9)) {
    case 0:
      return made(annulus_pattern_normalise(pattern(), nullptr, &text), text, Kind::kText,
                  "annulus_pattern_normalise");
    case 1: {
      Sized<annulus_work_limit> limit(ANNULUS_WORK_LIMIT_INIT, bytes_);
      limit->max_work = small(100);
      returned(annulus_pattern_check(pattern(), nullptr, static_cast<std::int32_t>(small(1)),
                                     limit.get()),
               "annulus_pattern_check");
      return;
    }
    case 2:
      return made(annulus_score_normalise(bytes_.below(2) == 0 ? "softcap(3)" : "alibi([", &text),
                  text, Kind::kText, "annulus_score_normalise");
    case 3: {
      Sized<annulus_pattern_info> info(ANNULUS_PATTERN_INFO_INIT, bytes_);
      returned(annulus_pattern_get_info(pattern(), nullptr, small(8), info.get()),
               "annulus_pattern_get_info");
      return;
    }
    case 4: {
      Sized<annulus_pairs> pairs(ANNULUS_PAIRS_INIT, bytes_);
      pairs->head = small(4);
      pairs->q = bytes_.number(), pairs->k = bytes_.number();
      pairs->q_count = bytes_.between(0, 8), pairs->k_count = bytes_.between(0, 8);
      pairs->total_k = small(40);
      pairs->batch = small(3);
      if (pairs->batch > 0) --pairs->batch;  // most patterns have only batch 0
      std::vector<std::uint8_t> visible(64);
      returned(annulus_pattern_visible(pattern(), nullptr, pairs.get(), visible.data()),
               "annulus_pattern_visible");
      return;
    }
    case 5:
      return made(annulus_pattern_of_batch(pattern(), nullptr, small(3), &text), text, Kind::kText,
                  "annulus_pattern_of_batch");
    case 6: {
      const std::int32_t numbers[] = {static_cast<std::int32_t>(bytes_.number()), 5, -1, 7};
      return made(
          annulus_pattern_from_vertical_slash(
              small(2), numbers, static_cast<std::size_t>(bytes_.below(5)), numbers, 2, &text),
          text, Kind::kText, "annulus_pattern_from_vertical_slash");
    }
    case 7: {
      Sized<annulus_pattern_word> word(ANNULUS_PATTERN_WORD_INIT, bytes_);
      const auto which = static_cast<std::size_t>(small(40));
      if (returned(annulus_pattern_word_get(which, word.get()), "annulus_pattern_word_get") &&
          which >= annulus_pattern_word_count()) {
        wrong("word {} of {}", which, annulus_pattern_word_count());
      }
      Sized<annulus_preset> preset(ANNULUS_PRESET_INIT, bytes_);
      returned(annulus_preset_get(static_cast<std::size_t>(small(20)), preset.get()),
               "annulus_preset_get");
      return;
    }
    default: {
      const char* characters = nullptr;
      std::size_t length = 0;
      if (returned(annulus_text_get(pick<annulus_text>(Kind::kText), &characters, &length),
                   "annulus_text_get") &&
          std::strlen(characters) != length) {
        wrong("a text of {} bytes is said to have {}", std::strlen(characters), length);
      }
    }
  }
}

void Program::call_layout() {
  const Bounded bounded;
  annulus_layout* layout = nullptr;
  const auto one = [&] { return pick<annulus_layout>(Kind::kLayout); };
  const auto keep = [&](annulus_status status, const char* function) {
    made(status, layout, Kind::kLayout, function);
  };
  switch (bytes_.below(16)) {
    case 0:
    case 1: {
      auto sized = sizes();
      Sized<annulus_layout_options> options(ANNULUS_LAYOUT_OPTIONS_INIT, bytes_);
      options->threads = 1;
      options->max_work = 1'000'000;
      options->layer = small(3);
      return keep(annulus_layout_make(pattern(), nullptr, sized.get(), options.get(), &layout),
                  "annulus_layout_make");
    }
    case 2: {
      const std::int64_t indptr[] = {0, small(2), 3};
      const std::int32_t indices[] = {0, static_cast<std::int32_t>(small(2)), 1};
      Sized<annulus_block_layout> arrays(ANNULUS_BLOCK_LAYOUT_INIT, bytes_);
      arrays->block_rows = small(16), arrays->block_columns = 16;
      arrays->seq_q = 20, arrays->seq_k = 40;
      arrays->indptr = indptr, arrays->indptr_count = 3;
      arrays->indices = indices, arrays->indices_count = 3;
      return keep(annulus_layout_create(arrays.get(), &layout), "annulus_layout_create");
    }
    case 3: {
      Sized<annulus_block_layout> arrays(ANNULUS_BLOCK_LAYOUT_INIT, bytes_);
      returned(annulus_layout_get(one(), arrays.get()), "annulus_layout_get");
      return;
    }
    case 4: {
      Sized<annulus_layout_statistics> statistics(ANNULUS_LAYOUT_STATISTICS_INIT, bytes_);
      returned(annulus_layout_get_statistics(one(), statistics.get()),
               "annulus_layout_get_statistics");
      return;
    }
    case 5: {
      double shares[16];
      const auto layers = static_cast<std::int32_t>(bytes_.between(-1, 16));
      returned(annulus_layout_reachability(one(), layers, shares), "annulus_layout_reachability");
      return;
    }
    case 6: {
      Sized<annulus_picture_options> options(ANNULUS_PICTURE_OPTIONS_INIT, bytes_);
      options->head = small(3), options->max_cells = small(20);
      options->svg = static_cast<std::int32_t>(small(1));
      annulus_text* text = nullptr;
      return made(annulus_layout_picture(one(), options.get(), &text), text, Kind::kText,
                  "annulus_layout_picture");
    }
    case 7: {
      annulus_layout* a = one();
      annulus_layout* b = one();
      return keep(annulus_layout_unite(a, b, &layout), "annulus_layout_unite");
    }
    case 8: {
      annulus_layout* a = one();
      annulus_layout* b = one();
      return keep(bytes_.below(2) == 0 ? annulus_layout_intersect(a, b, &layout)
                                       : annulus_layout_subtract(a, b, &layout),
                  "annulus_layout_intersect");
    }
    case 9:
      return keep(annulus_layout_transpose(one(), &layout), "annulus_layout_transpose");
    case 10: {
      const annulus_segment rows[] = {{small(20), small(20)}, {small(30), small(9)}};
      const annulus_segment columns[] = {{small(20), small(20)},
                                         {bytes_.number(), bytes_.number()}};
      return keep(annulus_layout_slice(one(), rows, static_cast<std::size_t>(bytes_.below(3)),
                                       columns, static_cast<std::size_t>(bytes_.below(3)), &layout),
                  "annulus_layout_slice");
    }
    case 11: {
      const std::int64_t high = small(40), wide = small(40);
      return keep(annulus_layout_reblock(one(), high, wide, &layout), "annulus_layout_reblock");
    }
    case 12: {
      const double density = static_cast<double>(bytes_.below(12)) / 10;
      annulus_layout* from = one();
      const bool good = good_;
      annulus_layout* within = one();
      if (within == nullptr) good_ = good;  // without a bound
      return keep(annulus_layout_with_density(from, density, within, &layout),
                  "annulus_layout_with_density");
    }
    case 13:
      return keep(bytes_.below(2) == 0 ? annulus_layout_share_heads(one(), &layout)
                                       : annulus_layout_part_heads(one(), &layout),
                  "annulus_layout_share_heads");
    case 14: {
      const std::int64_t head = small(4);
      return keep(annulus_layout_head(one(), head, &layout), "annulus_layout_head");
    }
    default: {
      Sized<annulus_layout_difference> difference(ANNULUS_LAYOUT_DIFFERENCE_INIT, bytes_);
      annulus_layout* a = one();
      annulus_layout* b = one();
      annulus_text* text = nullptr;
      return made(annulus_layout_compare(a, b, small(4), difference.get(), &text), text,
                  Kind::kText, "annulus_layout_compare");
    }
  }
}

void Program::call_formats() {
  const Bounded bounded;
  switch (bytes_.below(7)) {
    case 0: {
      annulus_arrays* arrays = nullptr;
      annulus_layout* layout = pick<annulus_layout>(Kind::kLayout);
      return made(annulus_layout_to_arrays(layout, static_cast<std::int32_t>(small(8)), &arrays),
                  arrays, Kind::kArrays, "annulus_layout_to_arrays");
    }
    case 1: {
      annulus_array array = {};
      static constexpr const char* kNames[] = {"indptr", "indices", "mask", "", "kept", "rows"};
      annulus_arrays* arrays = pick<annulus_arrays>(Kind::kArrays);
      returned(annulus_arrays_get(arrays, kNames[bytes_.below(6)], &array), "annulus_arrays_get");
      return;
    }
    case 2: {
      auto sized = sizes();
      const std::uint8_t mask[64] = {1, 2, 0, 1};
      const annulus_array array = {"mask", mask, static_cast<std::size_t>(bytes_.below(65)),
                                   static_cast<std::int32_t>(small(4))};
      annulus_layout* layout = nullptr;
      return made(
          annulus_layout_from_arrays(static_cast<std::int32_t>(small(8)), sized.get(), &array,
                                     static_cast<std::size_t>(bytes_.below(2)), &layout),
          layout, Kind::kLayout, "annulus_layout_from_arrays");
    }
    case 3: {
      Sized<annulus_cache_limits> limits(ANNULUS_CACHE_LIMITS_INIT, bytes_);
      limits->bytes = bytes_.below(8) == 0 ? bytes_.number() : bytes_.byte() * 1000;
      limits->entries = small(4);
      annulus_layout_cache* cache = nullptr;
      return made(annulus_layout_cache_create(limits.get(), &cache), cache, Kind::kCache,
                  "annulus_layout_cache_create");
    }
    case 4: {
      annulus_layout_query* query = nullptr;
      const char* text = pattern();
      return made(annulus_layout_query_create(text, nullptr, small(32), small(32), small(3),
                                              small(2), &query),
                  query, Kind::kQuery, "annulus_layout_query_create");
    }
    case 5: {
      annulus_text* key = nullptr;
      annulus_layout_query* query = pick<annulus_layout_query>(Kind::kQuery);
      return made(annulus_layout_query_key(query, small(90), small(90), &key), key, Kind::kText,
                  "annulus_layout_query_key");
    }
    default: {
      annulus_layout* layout = nullptr;
      std::int64_t position = 0;
      annulus_layout_cache* cache = pick<annulus_layout_cache>(Kind::kCache);
      annulus_layout_query* query = pick<annulus_layout_query>(Kind::kQuery);
      Sized<annulus_work_limit> limit(ANNULUS_WORK_LIMIT_INIT, bytes_);
      limit->max_work = small(100);
      return made(annulus_layout_cache_get(cache, query, small(90), small(90), limit.get(), &layout,
                                           &position),
                  layout, Kind::kLayout, "annulus_layout_cache_get");
    }
  }
}

void Program::call_files() {
  annulus_layout* layout = nullptr;
  switch (bytes_.below(6)) {
    case 0: {
      layout = pick<annulus_layout>(Kind::kLayout);
      const char* const to = path();
      if (!returned(annulus_layout_save(layout, to), "annulus_layout_save")) return;
      annulus_layout* again = nullptr;
      annulus_layout_difference difference = ANNULUS_LAYOUT_DIFFERENCE_INIT;
      if (annulus_layout_load(to, &again) != ANNULUS_OK ||
          annulus_layout_compare(layout, again, 0, &difference, nullptr) != ANNULUS_OK) {
        wrong("a layout that was saved: {}", annulus_last_error());
      }
      if (difference.only_first + difference.only_second + difference.flags != 0 ||
          difference.same_sizes != 1) {
        wrong("another layout came back from its file");
      }
      annulus_layout_destroy(again);
      return;
    }
    case 1:
      return made(annulus_layout_load(path(), &layout), layout, Kind::kLayout,
                  "annulus_layout_load");
    case 2:
      return made(annulus_layout_map(path(), &layout), layout, Kind::kLayout, "annulus_layout_map");
    case 3: {
      layout = pick<annulus_layout>(Kind::kLayout);
      const char* const to = path();
      returned(annulus_layout_export(layout, to, tiny(8)), "annulus_layout_export");
      return;
    }
    case 4: {
      auto sized = sizes();
      const char* const from = path();
      const std::int32_t format = tiny(8);
      return made(annulus_layout_import(from, format, bytes_.below(2) == 0 ? nullptr : sized.get(),
                                        &layout),
                  layout, Kind::kLayout, "annulus_layout_import");
    }
    default: {
      annulus_arrays* arrays = nullptr;
      const char* const text = pattern();
      return made(annulus_pattern_to_vertical_slash(text, small(3), &arrays), arrays, Kind::kArrays,
                  "annulus_pattern_to_vertical_slash");
    }
  }
}

}  // namespace annulus::fuzz
