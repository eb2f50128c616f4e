/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "announce.h"

#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <net/ethernet.h>
#include <netinet/ether.h>
#include <netinet/if_ether.h>
#include <string.h>

#include "error.h"

/* OpenFlow 1.5, which every ovn-controller speaks with its switch (openflow-switch-v1.5.1). */
#define OFP_VERSION 6
#define OFPT_HELLO 0
#define OFPT_ERROR 1
#define OFPT_PACKET_OUT 13
#define OFP_NO_BUFFER 0xffffffff
#define OFPP_CONTROLLER 0xfffffffd
#define OFPMT_OXM 1
#define OFPAT_SET_FIELD 25
#define OFPAT_EXPERIMENTER 0xffff
/* Class, field, length in bytes. */
#define OXM_IN_PORT 0x80000004
#define OXM_METADATA 0x80000408
#define NXM_REG14 0x00011c04
/* Of Open vSwitch (openvswitch/nicira-ext.h). */
#define NX_VENDOR 0x00002320
#define NXAST_RESUBMIT_TABLE 14
#define OFPP10_IN_PORT 0xfff8
/* Of OVN (controller/lflow.h, include/ovn/logical-fields.h): where a logical switch's pipeline
 * begins; it finds the datapath in the metadata and the port in register 14. */
#define OFTABLE_LOG_INGRESS_PIPELINE 8

/* The first one may come before the flows, or be lost. */
static const guint pauses_ms[] = {10, 40, 150, 600};

struct PfAnnouncement {
    GPtrArray *floating;
    GSocket *socket;
    GSource *input;
    guint timer;
    guint sent;
    GError *early_failure; /* to be told */
    PfAnnounceFailed failed;
    gpointer data;
};

static void put_16(GByteArray *to, guint16 value)
{
    const guint16 wire = GUINT16_TO_BE(value);
    g_byte_array_append(to, (const guint8 *)&wire, sizeof wire);
}

static void put_32(GByteArray *to, guint32 value)
{
    const guint32 wire = GUINT32_TO_BE(value);
    g_byte_array_append(to, (const guint8 *)&wire, sizeof wire);
}

static void put_zeros(GByteArray *to, guint n)
{
    static const guint8 zeros[16];
    g_byte_array_append(to, zeros, n);
}

static void put_header(GByteArray *to, guint8 type, guint16 length)
{
    const guint8 head[] = {OFP_VERSION, type};
    g_byte_array_append(to, head, sizeof head);
    put_16(to, length);
    put_32(to, 0); /* the transaction: nothing is answered */
}

static void put_frame(GByteArray *to, const struct ether_addr *mac, const char *address)
{
    static const guint8 broadcast[ETH_ALEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    g_autoptr(GInetAddress) inet = g_inet_address_new_from_string(address);
    gboolean v4 = inet && g_inet_address_get_family(inet) == G_SOCKET_FAMILY_IPV4;
    struct ether_arp arp = {
        .ea_hdr = {.ar_hrd = GUINT16_TO_BE(ARPHRD_ETHER),
                   .ar_pro = GUINT16_TO_BE(ETHERTYPE_IP),
                   .ar_hln = ETH_ALEN,
                   .ar_pln = 4,
                   .ar_op = GUINT16_TO_BE(v4 ? ARPOP_REQUEST : ARPOP_RREQUEST)},
    };

    memcpy(arp.arp_sha, mac, ETH_ALEN);
    if (v4) {
        memcpy(arp.arp_spa, g_inet_address_to_bytes(inet), 4);
        memcpy(arp.arp_tpa, g_inet_address_to_bytes(inet), 4);
    } else {
        memcpy(arp.arp_tha, mac, ETH_ALEN);
    }
    g_byte_array_append(to, broadcast, ETH_ALEN);
    g_byte_array_append(to, (const guint8 *)mac, ETH_ALEN);
    put_16(to, v4 ? ETHERTYPE_ARP : ETHERTYPE_REVARP);
    g_byte_array_append(to, (const guint8 *)&arp, sizeof arp);
}

GByteArray *pf_announcement_encode(const PfFloating *floating)
{
    struct ether_addr mac;
    g_autoptr(GByteArray) actions = g_byte_array_new();
    g_autoptr(GByteArray) frame = g_byte_array_new();

    if (!ether_aton_r(floating->mac, &mac)) {
        return NULL;
    }
    put_16(actions, OFPAT_SET_FIELD);
    put_16(actions, 16);
    put_32(actions, OXM_METADATA);
    put_32(actions, 0);
    put_32(actions, floating->network);

    put_16(actions, OFPAT_SET_FIELD);
    put_16(actions, 16);
    put_32(actions, NXM_REG14);
    put_32(actions, floating->inport);
    put_zeros(actions, 4);

    put_16(actions, OFPAT_EXPERIMENTER);
    put_16(actions, 16);
    put_32(actions, NX_VENDOR);
    put_16(actions, NXAST_RESUBMIT_TABLE);
    put_16(actions, OFPP10_IN_PORT);
    const guint8 table[] = {OFTABLE_LOG_INGRESS_PIPELINE, 0, 0, 0};
    g_byte_array_append(actions, table, sizeof table);

    put_frame(frame, &mac, floating->address);

    GByteArray *message = g_byte_array_new();
    put_header(message, OFPT_PACKET_OUT, (guint16)(32 + actions->len + frame->len));
    put_32(message, OFP_NO_BUFFER);
    put_16(message, (guint16)actions->len);
    put_16(message, 0);
    put_16(message, OFPMT_OXM);
    put_16(message, 12);
    put_32(message, OXM_IN_PORT);
    put_32(message, OFPP_CONTROLLER);
    put_zeros(message, 4);
    g_byte_array_append(message, actions->data, actions->len);
    g_byte_array_append(message, frame->data, frame->len);
    return message;
}

static void stop(PfAnnouncement *a)
{
    g_clear_handle_id(&a->timer, g_source_remove);
    if (a->input) {
        g_source_destroy(a->input);
        g_clear_pointer(&a->input, g_source_unref);
    }
    g_clear_object(&a->socket);
}

static void fail(PfAnnouncement *a, const GError *error)
{
    stop(a);
    a->failed(error, a->data);
}

/* The switch says hello, and otherwise only what went wrong. */
static gboolean on_input(GSocket *socket, GIOCondition condition G_GNUC_UNUSED, gpointer data)
{
    PfAnnouncement *a = data;
    guint8 buffer[1024];
    g_autoptr(GError) error = NULL;
    gssize n = g_socket_receive(socket, (char *)buffer, sizeof buffer, NULL, &error);

    if (n < 0 && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK)) {
        return G_SOURCE_CONTINUE;
    }
    if (n == 0) {
        g_set_error(&error, PF_ERROR, PF_ERROR_UNREACHABLE, "the switch has hung up");
    }
    for (gssize at = 0; !error && n - at >= 12;) {
        guint length = (guint)buffer[at + 2] << 8 | buffer[at + 3];
        if (buffer[at + 1] == OFPT_ERROR) {
            g_set_error(&error, PF_ERROR, PF_ERROR_FAILED,
                        "the switch refuses it: OpenFlow error type %u, code %u",
                        (guint)buffer[at + 8] << 8 | buffer[at + 9],
                        (guint)buffer[at + 10] << 8 | buffer[at + 11]);
        }
        at += MAX(length, 8);
    }
    if (error) {
        fail(a, error);
        return G_SOURCE_REMOVE;
    }
    return G_SOURCE_CONTINUE;
}

static gboolean send_all(PfAnnouncement *a, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    if (a->sent == 0) {
        put_header(bytes, OFPT_HELLO, 8);
    }
    for (guint i = 0; i < a->floating->len; i++) {
        g_autoptr(GByteArray) message = pf_announcement_encode(a->floating->pdata[i]);
        if (message) {
            g_byte_array_append(bytes, message->data, message->len);
        }
    }
    gssize n = g_socket_send(a->socket, (const char *)bytes->data, bytes->len, NULL, error);
    if (n >= 0 && n < (gssize)bytes->len) {
        g_set_error(error, PF_ERROR, PF_ERROR_FAILED, "the switch does not read");
    }
    return n == (gssize)bytes->len;
}

static gboolean on_timer(gpointer data)
{
    PfAnnouncement *a = data;
    g_autoptr(GError) error = NULL;

    a->timer = 0;
    if (a->sent == G_N_ELEMENTS(pauses_ms) + 1) {
        stop(a); /* the last one had its time to be read */
    } else if (send_all(a, &error)) {
        guint pause = a->sent < G_N_ELEMENTS(pauses_ms) ? pauses_ms[a->sent] : 1000;
        a->sent++;
        a->timer = g_timeout_add(pause, on_timer, a);
    } else {
        fail(a, error);
    }
    return G_SOURCE_REMOVE;
}

/* Only later, so that nobody is called back by what he calls. */
static gboolean on_early_failure(gpointer data)
{
    PfAnnouncement *a = data;
    g_autoptr(GError) error = g_steal_pointer(&a->early_failure);

    a->timer = 0;
    fail(a, error);
    return G_SOURCE_REMOVE;
}

PfAnnouncement *pf_announcement_new(const char *socket, const GPtrArray *floating,
                                    PfAnnounceFailed failed, gpointer data)
{
    PfAnnouncement *a = g_new0(PfAnnouncement, 1);
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(socket);

    a->floating = pf_floating_copy(floating);
    a->failed = failed;
    a->data = data;
    a->socket = g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT,
                             &a->early_failure);
    if (a->socket) {
        g_socket_set_blocking(a->socket, FALSE);
    }
    if (!a->socket || !g_socket_connect(a->socket, address, NULL, &a->early_failure) ||
        !send_all(a, &a->early_failure)) {
        g_prefix_error(&a->early_failure, "%s: ", socket);
        a->timer = g_idle_add_full(G_PRIORITY_DEFAULT, on_early_failure, a, NULL);
        return a;
    }
    a->timer = g_timeout_add(pauses_ms[a->sent++], on_timer, a);
    a->input = g_socket_create_source(a->socket, G_IO_IN, NULL);
    g_source_set_callback(a->input, G_SOURCE_FUNC(on_input), a, NULL);
    g_source_attach(a->input, g_main_context_get_thread_default());
    return a;
}

void pf_announcement_free(PfAnnouncement *a)
{
    if (a) {
        stop(a);
        g_ptr_array_unref(a->floating);
        g_clear_error(&a->early_failure);
        g_free(a);
    }
}
