/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * As much of ARP, IPv4, IPv6, neighbour discovery, ICMP and UDP as it takes to be reached and to
 * answer. No fragments, no options, no extension headers.
 */
#include "bare.h"

#define ETHERNET 14U
#define TYPE_IP4 0x0800
#define TYPE_ARP 0x0806
#define TYPE_IP6 0x86dd
#define IP4 20U
#define IP6 40U
#define UDP 8U
#define PROTOCOL_ICMP 1
#define PROTOCOL_UDP 17
#define PROTOCOL_ICMP6 58
#define ECHO6_REQUEST 128
#define ECHO6_REPLY 129
#define SOLICITATION 135
#define ADVERTISEMENT 136

#define MAX_ADDRESSES 64
#define MAX_NEIGHBOURS 16

static struct {
    nic_t *nic;
    address_t own;
    uint8_t prefix;
    address_t gateway;
} addresses[MAX_ADDRESSES];
static int n_addresses;

static struct {
    address_t address;
    uint8_t mac[6];
    bool known;
    uint64_t asked;
} neighbours[MAX_NEIGHBOURS];
static int n_neighbours;

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t nobody[16];

/* --- texts --- */

static int digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool parse_number(const char **text, uint32_t *number)
{
    const char *start = *text;

    for (*number = 0; **text >= '0' && **text <= '9'; (*text)++) {
        *number = *number * 10 + (uint32_t)(**text - '0');
    }
    return *text != start;
}

static bool parse_mac(const char **text, uint8_t *mac)
{
    for (int i = 0; i < 6; i++, *text += 2) {
        if (i && *(*text)++ != ':') {
            return false;
        }
        if (digit((*text)[0]) < 0 || digit((*text)[1]) < 0) {
            return false;
        }
        mac[i] = (uint8_t)(digit((*text)[0]) << 4 | digit((*text)[1]));
    }
    return true;
}

static bool parse_ip4(const char **text, address_t *address)
{
    for (int i = 0; i < 4; i++) {
        uint32_t number;

        if ((i && *(*text)++ != '.') || !parse_number(text, &number) || number > 255) {
            return false;
        }
        address->bytes[i] = (uint8_t)number;
    }
    address->length = 4;
    return true;
}

static bool parse_ip6(const char **text, address_t *address)
{
    uint8_t groups[16];
    size_t n = 0, gap = 16;

    for (;;) {
        uint32_t number = 0;
        const char *start = *text;

        if ((*text)[0] == ':' && (*text)[1] == ':') {
            if (gap < 16) {
                return false;
            }
            gap = n;
            *text += 2;
        } else if (n && **text == ':') {
            (*text)++;
        } else if (n) {
            break;
        }
        for (start = *text; digit(**text) >= 0; (*text)++) {
            number = number << 4 | (uint32_t)digit(**text);
        }
        if (*text == start) {
            break;
        }
        if (n == 16) {
            return false;
        }
        put16(groups + n, number);
        n += 2;
    }
    if (n < 16 && gap == 16) {
        return false;
    }
    gap = gap < n ? gap : n;
    memset(address->bytes, 0, 16);
    memcpy(address->bytes, groups, gap);
    memcpy(address->bytes + 16 - (n - gap), groups + gap, n - gap);
    address->length = 16;
    return true;
}

bool parse_address(const char **text, address_t *address)
{
    for (const char *c = *text; digit(*c) >= 0 || *c == '.' || *c == ':'; c++) {
        if (*c == ':') {
            return parse_ip6(text, address);
        }
    }
    return parse_ip4(text, address);
}

/* --- what is whose --- */

static bool same(const address_t *one, const uint8_t *bytes)
{
    return memcmp(one->bytes, bytes, one->length) == 0;
}

static bool is_own(const nic_t *nic, const uint8_t *bytes, uint8_t length)
{
    for (int i = 0; i < n_addresses; i++) {
        if (addresses[i].nic == nic && addresses[i].own.length == length &&
            same(&addresses[i].own, bytes)) {
            return true;
        }
    }
    return false;
}

static void add_address(nic_t *nic, const address_t *own, uint32_t prefix, const address_t *gateway)
{
    if (n_addresses == MAX_ADDRESSES) {
        panic("too many addresses");
    }
    addresses[n_addresses].nic = nic;
    addresses[n_addresses].own = *own;
    addresses[n_addresses].prefix = (uint8_t)prefix;
    addresses[n_addresses].gateway = *gateway;
    n_addresses++;
}

/* The address that every device has of itself (RFC 4291, appendix A). */
static void add_link_local(nic_t *nic)
{
    const uint8_t *mac = nic_mac(nic);
    address_t own = {
        .bytes = {0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]},
        .length = 16};
    address_t none = {.length = 0};

    if (!is_own(nic, own.bytes, 16)) {
        add_address(nic, &own, 64, &none);
    }
}

void net_configure(const char *text)
{
    uint8_t mac[6];
    address_t own, gateway = {.length = 0};
    uint32_t prefix;

    if (!parse_mac(&text, mac) || *text++ != ',' || !parse_address(&text, &own) || *text++ != '/' ||
        !parse_number(&text, &prefix) || prefix > own.length * 8U ||
        (*text == ',' && (text++, !parse_address(&text, &gateway)))) {
        panic("pf.nic takes MAC,ADDRESS/LENGTH[,GATEWAY]");
    }
    for (int i = 0; nic_get(i); i++) {
        if (memcmp(nic_mac(nic_get(i)), mac, 6) == 0) {
            add_address(nic_get(i), &own, prefix, &gateway);
            add_link_local(nic_get(i));
            return;
        }
    }
    say("bare: no device has the MAC address of a pf.nic\r\n");
}

/* --- checksums --- */

static uint32_t sum(uint32_t start, const uint8_t *data, size_t length)
{
    for (; length > 1; data += 2, length -= 2) {
        start += get16(data);
    }
    return length ? start + ((uint32_t)*data << 8) : start;
}

static uint16_t fold(uint32_t sum)
{
    sum = (sum >> 16) + (sum & 0xffff);
    sum += sum >> 16;
    return (uint16_t)~sum;
}

/* What a checksum becomes when one 16-bit word gets smaller by 'by' (RFC 1624). */
static uint16_t adjust(uint16_t checksum, uint16_t before, uint16_t after)
{
    return fold((uint32_t)(uint16_t)~checksum + (uint16_t)~before + after);
}

/* Of what ICMPv6 and UDP send: with addresses, protocol and length. */
static uint16_t pseudo_checksum(const uint8_t *addresses_start, size_t addresses_length,
                                uint8_t protocol, const uint8_t *data, size_t length)
{
    uint32_t start = protocol + (uint32_t)length;

    return fold(sum(sum(start, addresses_start, addresses_length), data, length));
}

/* --- neighbours --- */

static void learn(const uint8_t *bytes, uint8_t length, const uint8_t *mac)
{
    for (int i = 0; i < n_neighbours; i++) {
        if (neighbours[i].address.length == length && same(&neighbours[i].address, bytes)) {
            memcpy(neighbours[i].mac, mac, 6);
            neighbours[i].known = true;
        }
    }
}

static void ethernet(uint8_t *frame, const uint8_t *to, const nic_t *from, uint16_t type)
{
    memcpy(frame, to, 6);
    memcpy(frame + 6, nic_mac(from), 6);
    put16(frame + 12, type);
}

static void send_arp(nic_t *nic, uint16_t operation, const uint8_t *own, const uint8_t *mac,
                     const uint8_t *peer)
{
    static const uint8_t start[6] = {0, 1, TYPE_IP4 >> 8, TYPE_IP4 & 0xff, 6, 4};
    uint8_t *frame = nic_frame(nic);
    uint8_t *arp = frame + ETHERNET;

    if (!frame) {
        return;
    }
    ethernet(frame, operation == 1 ? broadcast : mac, nic, TYPE_ARP);
    memcpy(arp, start, sizeof start);
    put16(arp + 6, operation);
    memcpy(arp + 8, nic_mac(nic), 6);
    memcpy(arp + 14, own, 4);
    memcpy(arp + 18, mac, 6);
    memcpy(arp + 24, peer, 4);
    nic_send(nic, ETHERNET + 28);
}

static void receive_arp(nic_t *nic, const uint8_t *arp, size_t length)
{
    if (length < 28 || get16(arp + 2) != TYPE_IP4) {
        return;
    }
    learn(arp + 14, 4, arp + 8);
    if (get16(arp + 6) == 1 && is_own(nic, arp + 24, 4)) {
        send_arp(nic, 2, arp + 24, arp + 8, arp + 14);
    }
}

static void ip6_header(uint8_t *ip, uint8_t protocol, size_t length, uint8_t hops,
                       const uint8_t *from, const uint8_t *to)
{
    put32(ip, 6U << 28);
    put16(ip + 4, (uint32_t)length);
    ip[6] = protocol;
    ip[7] = hops;
    memcpy(ip + 8, from, 16);
    memcpy(ip + 24, to, 16);
}

/* Asks for 'target', or tells that it is here; both with the link-layer address as an option. */
static void send_discovery(nic_t *nic, uint8_t type, uint8_t flags, const uint8_t *target,
                           const uint8_t *from, const uint8_t *to, const uint8_t *to_mac)
{
    uint8_t *frame = nic_frame(nic);
    uint8_t *ip = frame + ETHERNET, *message = ip + IP6;

    if (!frame) {
        return;
    }
    ethernet(frame, to_mac, nic, TYPE_IP6);
    ip6_header(ip, PROTOCOL_ICMP6, 32, 255, from, to);
    memset(message, 0, 32);
    message[0] = type;
    message[4] = flags;
    memcpy(message + 8, target, 16);
    message[24] = type == SOLICITATION ? 1 : 2;
    message[25] = 1;
    memcpy(message + 26, nic_mac(nic), 6);
    put16(message + 2, pseudo_checksum(ip + 8, 32, PROTOCOL_ICMP6, message, 32));
    nic_send(nic, ETHERNET + IP6 + 32);
}

static void receive_solicitation(nic_t *nic, const uint8_t *frame, const uint8_t *target)
{
    static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
    static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
    const uint8_t *from = frame + ETHERNET + 8;

    if (!is_own(nic, target, 16)) {
        return;
    }
    /* Somebody without an address wants to know whether this one is free. */
    if (memcmp(from, nobody, 16) == 0) {
        send_discovery(nic, ADVERTISEMENT, 0x20, target, target, all_nodes, all_nodes_mac);
    } else {
        send_discovery(nic, ADVERTISEMENT, 0x60, target, target, from, frame + 6);
    }
}

/* --- datagrams --- */

/* Sends 'frame' back to where it came from; 'header' is the length of its IP header. Addresses
 * and ports change places, which no checksum notices. */
static uint8_t *turn_round(nic_t *nic, const uint8_t *frame, size_t length)
{
    uint8_t *answer = length <= MAX_FRAME ? nic_frame(nic) : NULL;

    if (answer) {
        memcpy(answer, frame, length);
        ethernet(answer, frame + 6, nic, get16(frame + 12));
    }
    return answer;
}

static void receive_udp(nic_t *nic, const uint8_t *frame, size_t ip_length, size_t length)
{
    const uint8_t *ip = frame + ETHERNET, *udp = ip + ip_length;
    size_t size;
    path_t path;

    if (length < ETHERNET + ip_length + UDP) {
        return;
    }
    size = get16(udp + 4);
    if (size < UDP || size > length - ETHERNET - ip_length) {
        return;
    }
    size -= UDP;
    path.nic = nic;
    memcpy(path.mac, frame + 6, 6);
    path.own.length = path.peer.length = ip_length == IP4 ? 4 : 16;
    memcpy(path.peer.bytes, ip + (ip_length == IP4 ? 12 : 8), path.peer.length);
    memcpy(path.own.bytes, ip + (ip_length == IP4 ? 16 : 24), path.own.length);
    path.peer_port = get16(udp);
    path.own_port = get16(udp + 2);
    switch (path.own_port) {
    case PORT_ECHO:
        /* Not to another such port, for ever. */
        if (path.peer_port != PORT_ECHO) {
            net_send_udp(&path, udp + UDP, size);
        }
        break;
    case PORT_SINK:
        stream_sink(udp + UDP, size);
        break;
    case PORT_REPORT:
        stream_report(&path, udp + UDP, size);
        break;
    case PORT_STREAM:
        stream_command(&path, udp + UDP, size);
        break;
    }
}

static void ip4_header(uint8_t *ip, uint8_t protocol, size_t length, const uint8_t *from,
                       const uint8_t *to)
{
    memset(ip, 0, IP4);
    ip[0] = 0x45;
    put16(ip + 2, (uint32_t)(IP4 + length));
    ip[6] = 0x40; /* not to be fragmented */
    ip[8] = 64;
    ip[9] = protocol;
    memcpy(ip + 12, from, 4);
    memcpy(ip + 16, to, 4);
    put16(ip + 10, fold(sum(0, ip, IP4)));
}

static void receive_ip4(nic_t *nic, const uint8_t *frame, size_t length)
{
    const uint8_t *ip = frame + ETHERNET;
    size_t size;
    uint8_t *answer;

    if (length < ETHERNET + IP4 || ip[0] != 0x45 || (get16(ip + 6) & 0x3fff) ||
        !is_own(nic, ip + 16, 4)) {
        return;
    }
    size = get16(ip + 2);
    if (size < IP4 || size > length - ETHERNET) {
        return;
    }
    if (ip[9] == PROTOCOL_UDP) {
        receive_udp(nic, frame, IP4, ETHERNET + size);
    } else if (ip[9] == PROTOCOL_ICMP && size >= IP4 + 8 && ip[IP4] == 8) {
        answer = turn_round(nic, frame, ETHERNET + size);
        if (answer) {
            uint8_t *echo = answer + ETHERNET + IP4;

            ip4_header(answer + ETHERNET, PROTOCOL_ICMP, size - IP4, ip + 16, ip + 12);
            put16(echo + 2, adjust(get16(echo + 2), 0x0800, 0));
            echo[0] = 0;
            nic_send(nic, ETHERNET + size);
        }
    }
}

static void receive_ip6(nic_t *nic, const uint8_t *frame, size_t length)
{
    const uint8_t *ip = frame + ETHERNET, *message = ip + IP6;
    size_t size;
    uint8_t *answer;

    if (length < ETHERNET + IP6 || ip[0] >> 4 != 6) {
        return;
    }
    size = get16(ip + 4);
    if (size > length - ETHERNET - IP6) {
        return;
    }
    length = ETHERNET + IP6 + size;
    if (ip[6] == PROTOCOL_UDP && is_own(nic, ip + 24, 16)) {
        receive_udp(nic, frame, IP6, length);
    } else if (ip[6] == PROTOCOL_ICMP6 && size >= 8) {
        if (message[0] == SOLICITATION && size >= 24) {
            receive_solicitation(nic, frame, message + 8);
        } else if (message[0] == ADVERTISEMENT && size >= 24) {
            learn(message + 8, 16, size >= 32 && message[24] == 2 ? message + 26 : frame + 6);
        } else if (message[0] == ECHO6_REQUEST && is_own(nic, ip + 24, 16)) {
            answer = turn_round(nic, frame, length);
            if (answer) {
                uint8_t *echo = answer + ETHERNET + IP6;

                ip6_header(answer + ETHERNET, PROTOCOL_ICMP6, size, 64, ip + 24, ip + 8);
                put16(echo + 2, adjust(get16(echo + 2), ECHO6_REQUEST << 8, ECHO6_REPLY << 8));
                echo[0] = ECHO6_REPLY;
                nic_send(nic, length);
            }
        }
    }
}

void net_receive(nic_t *nic, const uint8_t *frame, size_t length)
{
    if (length < ETHERNET || (memcmp(frame, nic_mac(nic), 6) != 0 &&
                              memcmp(frame, broadcast, 6) != 0 && get16(frame) != 0x3333)) {
        return;
    }
    switch (get16(frame + 12)) {
    case TYPE_ARP:
        receive_arp(nic, frame + ETHERNET, length - ETHERNET);
        break;
    case TYPE_IP4:
        receive_ip4(nic, frame, length);
        break;
    case TYPE_IP6:
        receive_ip6(nic, frame, length);
        break;
    }
}

/* --- sending of one's own accord --- */

static bool in_prefix(const uint8_t *one, const uint8_t *other, uint32_t prefix)
{
    uint8_t mask = (uint8_t)(0xff00 >> (prefix % 8));

    return memcmp(one, other, prefix / 8) == 0 &&
           (prefix % 8 == 0 || ((one[prefix / 8] ^ other[prefix / 8]) & mask) == 0);
}

/* The address of ours that leads to 'peer', or -1. */
static int find_route(const address_t *peer)
{
    for (int i = 0; i < n_addresses; i++) {
        if (addresses[i].own.length == peer->length &&
            in_prefix(addresses[i].own.bytes, peer->bytes, addresses[i].prefix)) {
            return i;
        }
    }
    for (int i = 0; i < n_addresses; i++) {
        if (addresses[i].gateway.length == peer->length) {
            return i;
        }
    }
    return -1;
}

bool net_route(path_t *path)
{
    int route = find_route(&path->peer);

    if (route < 0) {
        return false;
    }
    path->nic = addresses[route].nic;
    path->own = addresses[route].own;
    return true;
}

bool net_resolve(path_t *path)
{
    int route = find_route(&path->peer);
    const address_t *next = &path->peer;
    uint64_t now = clock_now();
    int i;

    if (!in_prefix(addresses[route].own.bytes, next->bytes, addresses[route].prefix)) {
        next = &addresses[route].gateway;
    }
    for (i = 0; i < n_neighbours; i++) {
        if (neighbours[i].address.length == next->length &&
            same(&neighbours[i].address, next->bytes)) {
            break;
        }
    }
    if (i == MAX_NEIGHBOURS) {
        panic("too many neighbours");
    }
    if (i == n_neighbours) {
        n_neighbours++;
        neighbours[i].address = *next;
    } else if (neighbours[i].known) {
        memcpy(path->mac, neighbours[i].mac, 6);
        return true;
    } else if (now - neighbours[i].asked < CLOCK_HZ) {
        return false;
    }
    neighbours[i].asked = now;
    if (next->length == 4) {
        send_arp(path->nic, 1, path->own.bytes, nobody, next->bytes);
    } else {
        uint8_t group[16] = {0xff, 0x02, [11] = 1, 0xff};
        uint8_t mac[6] = {0x33, 0x33};

        memcpy(group + 13, next->bytes + 13, 3);
        memcpy(mac + 2, group + 12, 4);
        send_discovery(path->nic, SOLICITATION, 0, next->bytes, path->own.bytes, group, mac);
    }
    return false;
}

bool net_send_udp(const path_t *path, const void *payload, size_t size)
{
    bool old = path->own.length == 4;
    size_t ip_length = old ? IP4 : IP6;
    uint8_t *frame = nic_frame(path->nic);
    uint8_t *ip = frame + ETHERNET, *udp = ip + ip_length;
    uint16_t checksum;

    if (!frame || size > MAX_FRAME - ETHERNET - ip_length - UDP) {
        return false;
    }
    ethernet(frame, path->mac, path->nic, old ? TYPE_IP4 : TYPE_IP6);
    if (old) {
        ip4_header(ip, PROTOCOL_UDP, UDP + size, path->own.bytes, path->peer.bytes);
    } else {
        ip6_header(ip, PROTOCOL_UDP, UDP + size, 64, path->own.bytes, path->peer.bytes);
    }
    put16(udp, path->own_port);
    put16(udp + 2, path->peer_port);
    put16(udp + 4, (uint32_t)(UDP + size));
    put16(udp + 6, 0);
    memcpy(udp + UDP, payload, size);
    checksum = pseudo_checksum(old ? ip + 12 : ip + 8, old ? 8 : 32, PROTOCOL_UDP, udp, UDP + size);
    put16(udp + 6, checksum ? checksum : 0xffff);
    nic_send(path->nic, ETHERNET + ip_length + UDP + size);
    return true;
}
