#ifndef ANNULUS_PARAMS_APPEND_PARAMS_H_
#define ANNULUS_PARAMS_APPEND_PARAMS_H_

// The argument of append_rows: the contract between the host (src/batch) and the template. Plain
// C++, for NVRTC and the host compiler, as batch_params.h. Strides count elements.

#include "params/batch_params.h"

namespace annulus::kernels {

enum : int {
  kAppendThreads = 256,
  kAppendResident = 3,     // CTAs of a multiprocessor that the registers allow
  kMostRotaryPairs = 512,  // elements that are rotated, by two
};

// Which elements of a head are rotated together; a constant of the kernel.
enum class Rotary : int {
  kNone = 0,         // nothing is rotated
  kInterleaved = 1,  // 2 i and 2 i + 1
  kHalves = 2,       // i and i + pairs
};

// A new row of Q, K or V: [rows, heads, dim].
struct RowsParams {
  const void* data;
  long long row, head;
};
// Where rows go: Q again, or the pages of K or of V, whose rows are page x `page` + row x `row`.
struct PlacesParams {
  void* data;
  long long page, row, head;
  int count;  // pages, or without pages rows, that there are
  int padding;
};

// What is wrong with a row. The rules are those of annulus::AppendRule.
enum AppendRule : unsigned {
  kWrongRowCount = 1,
  kWrongRequests = 2,
  kNoSuchSlot = 3,
  kNoSuchKey = 4,
  kNoSuchEntry = 5,
  kNoSuchKeyPage = 6,
  kNoSuchPosition = 7,
};

struct AppendParams {
  RowsParams q;  // data is null: Q is not touched
  RowsParams new_k;
  RowsParams new_v;
  PlacesParams rotated_q;
  PlacesParams k;
  PlacesParams v;

  // By slots: one of the two is given, and `rows` tells how many there are, unless it is null.
  const long long* slots;
  const int* slots_32;
  const int* rows;
  // By requests: as PrepareParams has them.
  const int* q_begin;
  const int* k_length;
  const int* requests;
  const int* k_position;
  KeyPlaces places;

  // Positions of rows: one of the two, or where requests say where rows are none.
  const long long* positions;
  const int* positions_32;
  // Turns for each position, of 2^64 to a whole turn: one for each pair. Or tables [table_rows,
  // pairs] of the cosine and the sine.
  const unsigned long long* turns;
  const void* cosines;
  const void* sines;
  long long table_row;
  int table_rows;

  unsigned* status;  // status_of() of what is wrong; or null
  int most_rows;
  int most_requests;
  int keys_of_one;
  int page_rows;  // 0: no pages
  int heads;
  int kv_heads;
  int chunks_qk;  // pieces of 8 elements in a row of a head of Q and K
  int chunks_v;   // the same of V
  int pairs;      // elements that are rotated, by two
  Interleave interleave;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_APPEND_PARAMS_H_
