/*
 * rmtree: a directory removed with all that is in it, whatever a hostile command made of it: any
 * depth (names far longer than PATH_MAX), any width, modes of 0, symlinks, mount points.
 *
 * A directory inside another is moved up beside the first ones before it is emptied, so that there
 * is never more than one level to be in: a few descriptors, no memory that grows, no way up by
 * "..". No symlink is followed and no mount point entered.
 */
#pragma once

/*
 * An absolute path, its last component a directory. All that can be removed is: 0, or the first
 * -errno (of what is another's, immutable or mounted). Blocks as long as the file system does.
 */
int rmtree_remove(const char *dir);
