#ifndef ANNULUS_PARAMS_APPEND_PARAMS_H_
#define ANNULUS_PARAMS_APPEND_PARAMS_H_

// The argument of append_rows: the contract between the host (src/batch) and the template. Plain
// C++ for NVRTC and the host compiler, like batch_params.h. Strides count elements.

#include "params/batch_params.h"

namespace annulus::kernels {

enum : int {
  kAppendThreads = 256,
  kAppendResident = 3,    // CTAs for which one multiprocessor has registers
  kMaxRotaryPairs = 512,  // the most pairs of elements that are rotated
};

// The elements of a head that are rotated together; a constant of the kernel.
enum class Rotary : int {
  kNone = 0,         // nothing is rotated
  kInterleaved = 1,  // elements 2 i and 2 i + 1
  kHalves = 2,       // elements i and i + pairs
};

// A new row of Q, K or V: [rows, heads, dim].
struct RowsParams {
  const void* data;
  long long row, head;
};
// The destination of rows: Q itself, or the pages of K or of V. `page`, `row` and `head` are
// strides.
struct PlacesParams {
  void* data;
  long long page, row, head;
  int count;  // pages, or, without pages, rows
  int padding;
};

// An error of a row. The rules are the rules of annulus::AppendRule.
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
  RowsParams q;  // data is null: Q is not changed
  RowsParams new_k;
  RowsParams new_v;
  PlacesParams rotated_q;
  PlacesParams k;
  PlacesParams v;

  // Places by slots: one of the two arrays is given. `rows` points to their number, unless it is
  // null.
  const long long* slots;
  const int* slots_32;
  const int* rows;
  // Places by requests: the same fields as in PrepareParams.
  const int* q_begin;
  const int* k_length;
  const int* requests;
  const int* k_position;
  KeyPlaces places;

  // Positions of rows: one of the two arrays, or none if requests determine the positions of rows.
  const long long* positions;
  const int* positions_32;
  // Turns of each pair for each position; a whole turn is 2^64. Or tables [table_rows, pairs] of
  // the cosine and the sine.
  const unsigned long long* turns;
  const void* cosines;
  const void* sines;
  long long table_row;
  int table_rows;

  unsigned* status;  // status_of() of the error; or null
  int max_rows;
  int max_requests;
  int keys_of_one;
  int page_rows;  // 0: there are no pages
  int heads;
  int kv_heads;
  int chunks_qk;  // pieces of 8 elements in a row of a head of Q and K
  int chunks_v;   // pieces of 8 elements in a row of a head of V
  int pairs;      // pairs of elements that are rotated
  Interleave interleave;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_APPEND_PARAMS_H_
