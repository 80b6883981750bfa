#ifndef ANNULUS_EXCHANGE_LOBBY_H_
#define ANNULUS_EXCHANGE_LOBBY_H_

// Rank 0's part of a meeting: the other ranks connect to it.

#include <optional>

#include "exchange/attendee.h"

namespace annulus::exchange {

// Waits at `listener` for all ranks and sends them the addresses of the others. If a nonce is
// given, a rank that brings another nonce belongs to another meeting and is refused. Throws if the
// options of ranks differ or if ranks do not arrive. The ranks that did arrive receive the reason.
World fill_lobby(const Self& self, Socket listener, std::optional<Nonce> nonce);

// For a moment, sends the refusal to every rank that connects to `listener`. Then throws it.
[[noreturn]] void turn_all_away(const Self& self, Socket listener, std::optional<Nonce> nonce,
                                const Refusal& refusal);

// Waits until every rank is connected to all others, then sends kGo to all of them.
void lead(const Self& self, World* world);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_LOBBY_H_
