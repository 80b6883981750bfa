// The C interface of layouts as arrays and files. Each function converts its arguments and calls
// annulus/layout.h.
#include "annulus/c_layout.h"

#include <cstring>
#include <initializer_list>

#include "annulus/layout.h"
#include "c_api/functions.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_LAYOUT_OWN == static_cast<int>(LayoutFormat::kLayout));
static_assert(ANNULUS_LAYOUT_NPY == static_cast<int>(LayoutFormat::kNpy));
static_assert(ANNULUS_LAYOUT_MASK == static_cast<int>(LayoutFormat::kRaw));
static_assert(ANNULUS_LAYOUT_CSR == static_cast<int>(LayoutFormat::kCsr));
static_assert(ANNULUS_LAYOUT_COO == static_cast<int>(LayoutFormat::kCoo));
static_assert(ANNULUS_LAYOUT_BITSET == static_cast<int>(LayoutFormat::kBitset));
static_assert(ANNULUS_LAYOUT_TOPK == static_cast<int>(LayoutFormat::kTopK));
static_assert(ANNULUS_LAYOUT_FLEX == static_cast<int>(LayoutFormat::kFlex));
static_assert(ANNULUS_LAYOUT_FLASHINFER == static_cast<int>(LayoutFormat::kFlashInfer));

LayoutFormat format_of(std::int32_t format) {
  if (format < ANNULUS_LAYOUT_OWN || format > ANNULUS_LAYOUT_FLASHINFER) {
    base::fail(ErrorCode::kInvalidArgument, "format is {}; give one of annulus_layout_format",
               format);
  }
  return static_cast<LayoutFormat>(format);
}

[[noreturn]] void fail_file_format(LayoutFormat format) {
  base::fail(
      ErrorCode::kInvalidArgument,
      "the format '{}' exists only as files, without arrays; import or export a file, or take "
      "another format",
      to_string(format));
}

template <typename T>
constexpr annulus_array_type kType = ANNULUS_INT64;
template <>
constexpr annulus_array_type kType<std::uint8_t> = ANNULUS_UINT8;
template <>
constexpr annulus_array_type kType<std::int32_t> = ANNULUS_INT32;
template <>
constexpr annulus_array_type kType<std::uint32_t> = ANNULUS_UINT32;

const char* type_name(std::int32_t type) {
  switch (type) {
    case ANNULUS_UINT8:
      return "uint8";
    case ANNULUS_INT32:
      return "int32";
    case ANNULUS_UINT32:
      return "uint32";
    case ANNULUS_INT64:
      return "int64";
  }
  return "an unknown type";
}

// ---- Arrays of the caller

class Given {
 public:
  // Throws Error{kInvalidArgument} for an array whose name is not in `known`, the arrays of the
  // format.
  Given(const annulus_array* arrays, std::size_t count, std::initializer_list<const char*> known)
      : arrays_(arrays, count) {
    for (const annulus_array& array : arrays_) {
      check_pointer("name of an array", array.name);
      if (array.count > 0) check_pointer(array.name, array.data);
      bool found = false;
      std::string names;
      for (const char* name : known) {
        found |= std::strcmp(name, array.name) == 0;
        names += (names.empty() ? "" : ", ") + std::string(name);
      }
      if (!found) {
        base::fail(ErrorCode::kInvalidArgument, "the format has no array '{}', but {}",
                   std::string_view(array.name).substr(0, 64), names);
      }
    }
  }

  const annulus_array* find(const char* name) const {
    for (const annulus_array& array : arrays_) {
      if (std::strcmp(array.name, name) == 0) return &array;
    }
    return nullptr;
  }

  // The array, or an empty span if the caller left it out.
  template <typename T>
  std::span<const T> optional(const char* name) const {
    const annulus_array* array = find(name);
    if (array == nullptr) return {};
    if (array->type != kType<T>) {
      base::fail(ErrorCode::kInvalidArgument, "{} is {}; give {}", name, type_name(array->type),
                 type_name(kType<T>));
    }
    return {static_cast<const T*>(array->data), array->count};
  }

  template <typename T>
  std::span<const T> needed(const char* name) const {
    if (find(name) == nullptr) {
      base::fail(ErrorCode::kInvalidArgument, "the array '{}' is missing", name);
    }
    return optional<T>(name);
  }

 private:
  std::span<const annulus_array> arrays_;
};

BlockLayout from_given_csr(const LayoutSizes& sizes, const Given& given) {
  const auto indices = given.needed<std::int32_t>("indices");
  const auto partial = given.optional<std::uint8_t>("partial");
  if (const annulus_array* indptr = given.find("indptr"); indptr && indptr->type == ANNULUS_INT32) {
    return from_csr(sizes, given.needed<std::int32_t>("indptr"), indices, partial);
  }
  return from_csr(sizes, given.needed<std::int64_t>("indptr"), indices, partial);
}

// k follows from the number of indices. from_topk checks that there is no remainder.
BlockLayout from_given_topk(const LayoutSizes& sizes, const Given& given) {
  const auto indices = given.needed<std::int32_t>("indices");
  LayoutView of;
  of.block_rows = sizes.block_rows, of.block_columns = sizes.block_columns;
  of.seq_q = sizes.seq_q, of.seq_k = sizes.seq_k, of.heads = sizes.heads;
  of.validate_sizes();
  const std::int64_t lists = sizes.heads * of.rows();
  const std::int64_t k = lists == 0 ? 0 : static_cast<std::int64_t>(indices.size()) / lists;
  return from_topk(sizes, k, indices, given.optional<std::uint8_t>("partial"));
}

// Each format names the arrays it has, so a misspelt name of an optional array is an error.
BlockLayout from_given(LayoutFormat format, const LayoutSizes& sizes, const annulus_array* arrays,
                       std::size_t count) {
  const auto given = [&](std::initializer_list<const char*> known) {
    return Given(arrays, count, known);
  };
  switch (format) {
    case LayoutFormat::kRaw:
      return from_mask(sizes, given({"mask"}).needed<std::uint8_t>("mask"));
    case LayoutFormat::kCsr:
      return from_given_csr(sizes, given({"indptr", "indices", "partial"}));
    case LayoutFormat::kCoo: {
      const Given coo = given({"heads", "rows", "columns", "partial"});
      return from_coo(sizes, coo.optional<std::int32_t>("heads"), coo.needed<std::int32_t>("rows"),
                      coo.needed<std::int32_t>("columns"), coo.optional<std::uint8_t>("partial"));
    }
    case LayoutFormat::kBitset: {
      const Given bits = given({"kept", "partial"});
      return from_bitset(sizes, bits.needed<std::uint32_t>("kept"),
                         bits.optional<std::uint32_t>("partial"));
    }
    case LayoutFormat::kTopK:
      return from_given_topk(sizes, given({"indices", "partial"}));
    case LayoutFormat::kFlex: {
      const Given flex =
          given({"kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"});
      return from_flex(sizes, flex.needed<std::int32_t>("kv_num_blocks"),
                       flex.needed<std::int32_t>("kv_indices"),
                       flex.optional<std::int32_t>("full_kv_num_blocks"),
                       flex.optional<std::int32_t>("full_kv_indices"));
    }
    case LayoutFormat::kFlashInfer: {
      const Given pages = given({"indptr", "indices", "mask"});
      const auto mask = pages.optional<std::uint8_t>("mask");
      const MaskedBlocks read = from_flashinfer(sizes, pages.needed<std::int32_t>("indptr"),
                                                pages.needed<std::int32_t>("indices"), mask);
      return mask.empty() ? read.layout : exact_layout(read.layout, read.mask);
    }
    case LayoutFormat::kLayout:
    case LayoutFormat::kNpy:
      break;
  }
  fail_file_format(format);
}

// ---- Arrays for the caller

template <typename T>
void add(ArraysObject* to, const char* name, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  to->arrays.push_back({name, kType<T>, values.size(), {bytes.begin(), bytes.end()}});
}

// Flags that a format may leave out are given as empty arrays, so that every name of the format
// exists.
ArraysObject arrays_of(LayoutFormat format, const LayoutView& view) {
  ArraysObject made;
  switch (format) {
    case LayoutFormat::kRaw:
      add(&made, "mask", to_mask(view));
      return made;
    case LayoutFormat::kCsr: {
      const CsrArrays csr = to_csr(view);
      add(&made, "indptr", csr.indptr), add(&made, "indices", csr.indices);
      add(&made, "partial", csr.partial);
      return made;
    }
    case LayoutFormat::kCoo: {
      const CooArrays coo = to_coo(view);
      add(&made, "heads", coo.heads), add(&made, "rows", coo.rows);
      add(&made, "columns", coo.columns), add(&made, "partial", coo.partial);
      return made;
    }
    case LayoutFormat::kBitset: {
      const BitsetArrays bits = to_bitset(view);
      add(&made, "kept", bits.kept), add(&made, "partial", bits.partial);
      return made;
    }
    case LayoutFormat::kTopK: {
      const TopKArrays topk = to_topk(view);
      add(&made, "indices", topk.indices), add(&made, "partial", topk.partial);
      return made;
    }
    case LayoutFormat::kFlex: {
      const FlexArrays flex = to_flex(view);
      add(&made, "kv_num_blocks", flex.kv_num_blocks), add(&made, "kv_indices", flex.kv_indices);
      add(&made, "full_kv_num_blocks", flex.full_kv_num_blocks);
      add(&made, "full_kv_indices", flex.full_kv_indices);
      return made;
    }
    // There is no mask in the result. A mask of the caller has become smaller blocks, all of them
    // full (from_given), and to_flashinfer refuses a layout with partial blocks and no mask.
    case LayoutFormat::kFlashInfer: {
      const FlashInferArrays pages = to_flashinfer(view);
      add(&made, "indptr", pages.indptr), add(&made, "indices", pages.indices);
      return made;
    }
    case LayoutFormat::kLayout:
    case LayoutFormat::kNpy:
      break;
  }
  fail_file_format(format);
}

}  // namespace

HandleTable<ArraysObject>& array_sets() {
  static auto* table = new HandleTable<ArraysObject>("set of arrays", 0x6b);
  return *table;
}

}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_layout_from_arrays(int32_t format, const annulus_layout_sizes* sizes,
                                          const annulus_array* arrays, size_t count,
                                          annulus_layout** layout) {
  return guarded([&] {
    if (count > 0) check_pointer("arrays", arrays);
    give_layout(layout, from_given(format_of(format), c_api::sizes_of(sizes), arrays, count));
  });
}

annulus_status annulus_layout_to_arrays(annulus_layout* layout, int32_t format,
                                        annulus_arrays** arrays) {
  return guarded([&] {
    const LayoutPin pin(layouts(), number(layout));
    check_pointer("arrays (where the handle goes)", arrays);
    give(arrays, array_sets(),
         std::make_unique<ArraysObject>(arrays_of(format_of(format), pin->view())));
  });
}

annulus_status annulus_pattern_to_vertical_slash(const char* pattern, int64_t heads,
                                                 annulus_arrays** arrays) {
  return guarded([&] {
    check_pointer("arrays (where the handle goes)", arrays);
    const VerticalSlashArrays lists = to_vertical_slash(pattern_of(pattern, nullptr), heads);
    auto made = std::make_unique<ArraysObject>();
    add(made.get(), "verticals", lists.verticals), add(made.get(), "slashes", lists.slashes);
    give(arrays, array_sets(), std::move(made));
  });
}

annulus_status annulus_arrays_get(annulus_arrays* arrays, const char* name, annulus_array* array) {
  return guarded([&] {
    const ArraysPin pin(array_sets(), number(arrays));
    check_pointer("name", name);
    check_pointer("array (where it goes)", array);
    std::string names;
    for (const ArraysObject::Array& each : pin->arrays) {
      if (std::strcmp(each.name, name) == 0) {
        *array = {each.name, each.bytes.data(), each.count, each.type};
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    }
    base::fail(ErrorCode::kInvalidArgument, "there is no array '{}', but {}",
               std::string_view(name).substr(0, 64), names);
  });
}

annulus_status annulus_arrays_destroy(annulus_arrays* arrays) {
  return guarded([&] { array_sets().erase(number(arrays)); });
}

annulus_status annulus_layout_load(const char* path, annulus_layout** layout) {
  return guarded([&] {
    check_pointer("path", path);
    give_layout(layout, load_layout(path));
  });
}

annulus_status annulus_layout_map(const char* path, annulus_layout** layout) {
  return guarded([&] {
    check_pointer("path", path);
    give_layout(layout, MappedLayout(path));
  });
}

annulus_status annulus_layout_save(annulus_layout* layout, const char* path) {
  return guarded([&] {
    const LayoutPin pin(layouts(), number(layout));
    check_pointer("path", path);
    save_layout(pin->view(), path);
  });
}

annulus_status annulus_layout_import(const char* path, int32_t format,
                                     const annulus_layout_sizes* sizes, annulus_layout** layout) {
  return guarded([&] {
    check_pointer("path", path);
    const LayoutSizes of = sizes == nullptr ? LayoutSizes{0, 0, 0, 0, 0} : c_api::sizes_of(sizes);
    give_layout(layout, import_layout(path, format_of(format), of));
  });
}

annulus_status annulus_layout_export(annulus_layout* layout, const char* path, int32_t format) {
  return guarded([&] {
    const LayoutPin pin(layouts(), number(layout));
    check_pointer("path", path);
    export_layout(pin->view(), path, format_of(format));
  });
}

}  // extern "C"
