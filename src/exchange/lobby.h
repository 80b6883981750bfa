#ifndef ANNULUS_EXCHANGE_LOBBY_H_
#define ANNULUS_EXCHANGE_LOBBY_H_

// Rank 0 of a meeting, which the others come to.

#include <optional>

#include "exchange/attendee.h"

namespace annulus::exchange {

// Waits at `listener` for all ranks and tells them where the others are. With a nonce, whoever
// brings another one has come to another meeting. Throws where ranks differ or do not come, which
// those that came are told.
World fill_lobby(const Self& self, Socket listener, std::optional<Nonce> nonce);

// Tells the ranks that come to `listener` within a moment why there is no meeting, and throws it.
[[noreturn]] void turn_all_away(const Self& self, Socket listener, std::optional<Nonce> nonce,
                                const Refusal& refusal);

// Waits until all ranks are connected to all, and lets them go.
void lead(const Self& self, World* world);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_LOBBY_H_
