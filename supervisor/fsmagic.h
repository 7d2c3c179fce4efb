/*
 * fsmagic: what statfs(2) calls the file systems, and what older headers lack of it.
 */
#pragma once

#include <linux/magic.h>

#ifndef XFS_SUPER_MAGIC /* 6.12 */
#define XFS_SUPER_MAGIC 0x58465342
#endif
