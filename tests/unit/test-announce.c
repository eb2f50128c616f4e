/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <string.h>

#include "announce.h"

static const PfFloating v4 = {.port = (char *)"p",
                              .address = (char *)"198.51.100.11",
                              .mac = (char *)"52:54:00:4c:00:04",
                              .network = 0x0102,
                              .inport = 3};

/* As openflow-switch-v1.5.1 and Open vSwitch's nicira-ext.h have it.  That a switch does with it
 * what is meant is a matter of the lab. */
static void test_encode(void)
{
    static const guint8 wanted[] = {
        6,    13,   0,    122,  0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff, 0,   48, 0,   0,
        0,    1,    0,    12,   0x80, 0,    0,    4,    0xff, 0xff, 0xff, 0xfd, 0,   0,  0,   0,
        0,    25,   0,    16,   0x80, 0,    0x04, 0x08, 0,    0,    0,    0,    0,   0,  1,   2,
        0,    25,   0,    16,   0,    1,    0x1c, 0x04, 0,    0,    0,    3,    0,   0,  0,   0,
        0xff, 0xff, 0,    16,   0,    0,    0x23, 0x20, 0,    14,   0xff, 0xf8, 8,   0,  0,   0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0,    0x4c, 0,    4,    8,   6,  0,   1,
        8,    0,    6,    4,    0,    1,    0x52, 0x54, 0,    0x4c, 0,    4,    198, 51, 100, 11,
        0,    0,    0,    0,    0,    0,    198,  51,   100,  11};
    g_autoptr(GByteArray) message = pf_announcement_encode(&v4);

    g_assert_cmpmem(message->data, message->len, wanted, sizeof wanted);

    /* IPv6 has no ARP; its MAC is learned from a RARP as well. */
    PfFloating v6 = v4;
    v6.address = (char *)"2001:db8::11";
    g_autoptr(GByteArray) rarp = pf_announcement_encode(&v6);
    g_assert_cmpuint(rarp->len, ==, message->len);
    g_assert_cmphex(rarp->data[80 + 12] << 8 | rarp->data[80 + 13], ==, 0x8035);

    PfFloating bad = v4;
    bad.mac = (char *)"router";
    g_assert_null(pf_announcement_encode(&bad));
}

typedef struct {
    GMainLoop *loop;
    char *failure;
    guint received;
} Peer;

static void on_failed(const GError *error, gpointer data)
{
    Peer *peer = data;
    g_assert_null(peer->failure);
    peer->failure = g_strdup(error->message);
    g_main_loop_quit(peer->loop);
}

static gboolean on_timeout(gpointer data)
{
    Peer *peer = data;
    g_main_loop_quit(peer->loop);
    return G_SOURCE_REMOVE;
}

static GPtrArray *one(void)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    g_ptr_array_add(list, (gpointer)&v4);
    return pf_floating_copy(list);
}

static void test_no_switch(void)
{
    Peer peer = {.loop = g_main_loop_new(NULL, FALSE)};
    g_autoptr(GPtrArray) list = one();
    g_autoptr(PfAnnouncement) a = pf_announcement_new("/nowhere/br.mgmt", list, on_failed, &peer);

    g_assert_null(peer.failure); /* only later */
    g_main_loop_run(peer.loop);
    g_assert_nonnull(strstr(peer.failure, "/nowhere/br.mgmt"));
    g_free(peer.failure);
    g_main_loop_unref(peer.loop);
}

/* A switch that takes it, counts what comes, and one that refuses it. */
static void test_switch(gconstpointer refuses)
{
    static const guint8 refusal[] = {6, 1, 0, 12, 0, 0, 0, 0, 0, 2, 0, 7};
    g_autofree char *folder = g_dir_make_tmp("portferry-announce-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "br.mgmt", NULL);
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    g_autoptr(GSocket) listener =
        g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL);
    g_assert_true(g_socket_bind(listener, address, FALSE, NULL));
    g_assert_true(g_socket_listen(listener, NULL));

    Peer peer = {.loop = g_main_loop_new(NULL, FALSE)};
    g_autoptr(GPtrArray) list = one();
    g_autoptr(PfAnnouncement) a = pf_announcement_new(path, list, on_failed, &peer);
    g_autoptr(GSocket) connection = g_socket_accept(listener, NULL, NULL);
    guint8 buffer[4096];
    gssize n = g_socket_receive(connection, (char *)buffer, sizeof buffer, NULL, NULL);
    g_assert_cmpint(n, ==, 8 + 122); /* hello, and the first one at once */
    if (refuses) {
        g_socket_send(connection, (const char *)refusal, sizeof refusal, NULL, NULL);
    }
    g_timeout_add(refuses ? 10000 : 400, on_timeout, &peer);
    g_main_loop_run(peer.loop);
    if (refuses) {
        g_assert_cmpstr(peer.failure, ==, "the switch refuses it: OpenFlow error type 2, code 7");
    } else {
        g_assert_null(peer.failure);
        n = g_socket_receive(connection, (char *)buffer, sizeof buffer, NULL, NULL);
        g_assert_cmpint(n % 122, ==, 0);
        g_assert_cmpint(n / 122, >=, 2);
    }
    g_free(peer.failure);
    g_main_loop_unref(peer.loop);
    g_unlink(path);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    static const int yes = 1;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/announce/encode", test_encode);
    g_test_add_func("/announce/no-switch", test_no_switch);
    g_test_add_data_func("/announce/taken", NULL, test_switch);
    g_test_add_data_func("/announce/refused", &yes, test_switch);
    return g_test_run();
}
