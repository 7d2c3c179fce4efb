/*
 * libcurl: the library, opened when it is first needed. It brings some thirty others with it, and
 * to bind them takes longer than all of `warder run`, which makes no request. The one includer of
 * curl.h; agent/http.c is the one user.
 */
#pragma once

#include <curl/curl.h>

/* curl_easy_init() is easy_init here, with the same type. */
struct libcurl {
#define LIBCURL_FUNCTION(name) __typeof__(curl_##name) *name;
#include "agent/libcurl.def"
#undef LIBCURL_FUNCTION
};

/*
 * The same for the whole process, already initialised; any thread may ask. The first call loads the
 * library (it reads files, some milliseconds). NULL: it is not there, or too old:
 * libcurl_missing().
 */
const struct libcurl *libcurl_get(void);

/* What stands in the way: one line, static; NULL: nothing, it is loaded. */
const char *libcurl_missing(void);
