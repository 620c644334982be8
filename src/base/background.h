/* background.h: work that others are not to notice: it has a thread of its own, which gives way to every other one.
 *
 * A thread of the pool that loses its core for a moment holds up all the others, and with them every request that is served. A thread
 * may give up its own precedence, but not take it back: so the work gets a thread that ends with it. What runs there must hold no
 * lock that others wait for: while cores are scarce, it may stand still for long. Thread-safe. */
#ifndef WEFT_BASE_BACKGROUND_H
#define WEFT_BASE_BACKGROUND_H

/* Its nice value over the caller's: with a core that others want, too, it gets about a tenth of that. Not less, since a request waits for
 * the end. */
enum { WEFT__BACKGROUND_NICE = 10 };

/* Calls fn(arg) and returns after it: on a thread of low precedence, or, where the system refuses one, here. */
void weft__background_run(void (*fn)(void *arg), void *arg);

#endif
