/*
 * pager: a text for somebody at a terminal; what is longer than the screen goes through $PAGER
 * (less where that is not set), as other programs do it.
 */
#pragma once

#include "tracer/buf.h"

/*
 * Write text (escaped already, whole lines) to stdout. Through the pager where stdin and stdout are
 * a terminal that knows escape sequences and the text does not fit it; blocks until that ends. A
 * PAGER that is empty or "cat", or can't be run: written as it is. LESS is FRX unless it is set.
 */
void pager_put(const struct buf *text);
