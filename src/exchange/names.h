#ifndef ANNULUS_EXCHANGE_NAMES_H_
#define ANNULUS_EXCHANGE_NAMES_H_

// Names of ranks for messages.

#include <span>
#include <string>

namespace annulus::exchange {

// "rank 2 of 4", "ranks 1 and 3 of 4". Of more than eight ranks the first are named and the others
// counted.
std::string name_ranks(std::span<const int> which, int ranks);
// Returns "has" for one rank, else "have".
const char* have(std::span<const int> which);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_NAMES_H_
