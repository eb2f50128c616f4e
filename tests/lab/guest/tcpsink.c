/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes any number of TCP connections, one after the other, and all that comes.
 *
 *   tcpsink PORT
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    static char buffer[65536];
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 8) < 0) {
        perror("tcpsink");
        return 1;
    }
    for (;;) {
        int connection = accept(fd, NULL, NULL);

        while (read(connection, buffer, sizeof buffer) > 0) {
        }
        close(connection);
    }
}
