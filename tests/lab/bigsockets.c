/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For ovs-vswitchd: packet sockets with room for more than 250 packets.
 *
 * OVS's userspace datapath reads a guest's tap through such a socket, which the kernel's does not.
 * A guest that resumes answers all that has waited for it within a millisecond, and most of that
 * would be lost there, which is the lab's fault and not the network's. The default is a setting of
 * the whole machine, so it is left alone.
 */
#include <dlfcn.h>
#include <sys/socket.h>

#define ROOM (32 * 1024 * 1024)

int socket(int domain, int type, int protocol)
{
    static int (*original)(int, int, int);
    int fd, room = ROOM;

    if (!original) {
        *(void **)&original = dlsym(RTLD_NEXT, "socket");
    }
    fd = original(domain, type, protocol);
    if (fd >= 0 && domain == AF_PACKET) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    }
    return fd;
}
