// SPDX-License-Identifier: Apache-2.0
/* defaults.h: how text is sampled unless told otherwise: the one place for the library, the commands' help, the fields
 * of requests and what the server says of itself. docs/openapi.json is held against those fields. OpenAI's endpoints
 * have OpenAI's own defaults. */
#ifndef WEFT_SAMPLE_DEFAULTS_H
#define WEFT_SAMPLE_DEFAULTS_H

#define WEFT__SAMPLE_TEMPERATURE 0.8
#define WEFT__SAMPLE_TOP_K 40
#define WEFT__SAMPLE_TOP_P 0.95
#define WEFT__SAMPLE_MIN_P 0.05
#define WEFT__SAMPLE_REPEAT_PENALTY 1
#define WEFT__SAMPLE_PRESENCE_PENALTY 0
#define WEFT__SAMPLE_FREQUENCY_PENALTY 0
#define WEFT__SAMPLE_PENALTY_LAST_N 64

/* One of them as a string literal. */
#define WEFT__SAMPLE_TEXT(name) WEFT__SAMPLE_TEXT_OF(WEFT__SAMPLE_##name)
#define WEFT__SAMPLE_TEXT_OF(value) WEFT__SAMPLE_LITERAL(value)
#define WEFT__SAMPLE_LITERAL(value) #value

#endif
