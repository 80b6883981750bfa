#ifndef ANNULUS_EXCHANGE_NAMES_H_
#define ANNULUS_EXCHANGE_NAMES_H_

// Ranks in messages.

#include <span>
#include <string>

namespace annulus::exchange {

// "rank 2 of 4", "ranks 1 and 3 of 4"; of more than eight the others are counted.
std::string name_ranks(std::span<const int> which, int ranks);
// "has" or "have"
const char* have(std::span<const int> which);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_NAMES_H_
