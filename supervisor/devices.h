/*
 * devices: does a ruleset let a device be opened and not be controlled?
 *
 * Landlock keeps with a device's descriptor whether ioctl was allowed when it was opened. Where
 * every device that can be opened natively can be controlled as well, nobody has to look at ioctls.
 */
#pragma once

#include "landlock/llruleset.h"

#include <stdbool.h>
#include <sys/stat.h>

/* By the rules on devices themselves, and on the directories that /dev lies in or that lie in it.
 */
bool devices_lack_ioctl(const struct llruleset *rs);
/* Is this device a terminal? By what sysfs says of its kind, and devpts by its numbers. */
bool devices_is_terminal(const struct stat *st);
