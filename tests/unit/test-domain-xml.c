/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>
#include <time.h>

#include "domain-xml.h"
#include "error.h"

/* The XML below is easier to read in the lines it was written in. */
/* clang-format off */

#define UUID "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
#define IFACE "11111111-2222-3333-4444-555555555555"
#define IFACE2 "66666666-7777-8888-9999-aaaaaaaaaaaa"

#define HEAD "<domain type='kvm' id='7'><name>web</name><uuid>" UUID "</uuid>"
#define DOMAIN(devices) HEAD "<devices>" devices "</devices></domain>"
#define VIRTUALPORT(id) \
    "<virtualport type='openvswitch'><parameters interfaceid='" id "'/></virtualport>"
#define PORT(id) \
    "<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='br-int'/>" \
    VIRTUALPORT(id) "</interface>"

/* Parses a string, from a buffer of exactly its size so that reading beyond it shows. */
static PfDomain *parse(const char *xml, GError **error)
{
    gsize size = strlen(xml);
    g_autofree char *exact = g_memdup2(xml, size);

    return pf_domain_parse(exact, size, error);
}

static PfDomain *parse_good(const char *xml)
{
    g_autoptr(GError) error = NULL;
    PfDomain *domain = parse(xml, &error);

    g_assert_no_error(error);
    g_assert_nonnull(domain);
    g_assert_true(pf_uuid_is_canonical(domain->uuid));
    return domain;
}

static const PfDomainPort *port(const PfDomain *domain, guint i)
{
    g_assert_cmpuint(i, <, domain->ports->len);
    return g_ptr_array_index(domain->ports, i);
}

static void assert_bad_bytes(const void *xml, gsize size, const char *wanted)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *exact = g_memdup2(xml, size);

    g_assert_null(pf_domain_parse(exact, size, &error));
    g_assert_error(error, PF_ERROR, PF_ERROR_BAD_XML);
    if (!strstr(error->message, wanted)) {
        g_test_message("'%s' is not in '%s'", wanted, error->message);
        g_test_fail();
    }
    g_assert_true(pf_text_is_clean(error->message, 4096));
    g_assert_null(pf_domain_parse(exact, size, NULL));
}

static void assert_bad(const char *xml, const char *wanted)
{
    assert_bad_bytes(xml, strlen(xml), wanted);
}

/* What libvirt 9 gives the hook "started", shortened. */
static void test_live(void)
{
    g_autoptr(PfDomain) domain = parse_good(
        "<domain type='kvm' id='3' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
        "  <name>web</name>\n"
        "  <uuid>" UUID "</uuid>\n"
        "  <metadata>\n"
        "    <nova:instance xmlns:nova='http://openstack.org/xmlns/libvirt/nova/1.1'>\n"
        "      <nova:name>not this</nova:name>\n"
        "      <nova:ports><nova:port uuid='" IFACE2 "'/></nova:ports>\n"
        "    </nova:instance>\n"
        "    <other:x xmlns:other='urn:x'><uuid>nor this</uuid><name>nor that</name></other:x>\n"
        "  </metadata>\n"
        "  <devices>\n"
        "    <emulator>/usr/bin/qemu-system-x86_64</emulator>\n"
        "    <disk type='file'><source file='/x'/><target dev='vda'/><alias name='virtio-disk0'/>"
        "</disk>\n"
        "    <interface type='bridge'>\n"
        "      <mac address='52:54:00:AB:cd:Ef'/>\n"
        "      <source bridge='br-int'/>\n"
        "      <vlan trunk='yes'><tag id='42'/><tag id='123' nativeMode='untagged'/></vlan>\n"
        "      <virtualport type='openvswitch'>\n"
        "        <parameters interfaceid='" IFACE "' profileid='menial'/>\n"
        "      </virtualport>\n"
        "      <target dev='vnet4'/>\n"
        "      <model type='virtio'/>\n"
        "      <driver name='vhost' queues='4'><host csum='off'/></driver>\n"
        "      <bandwidth><inbound average='1000'/></bandwidth>\n"
        "      <alias name='net0'/>\n"
        "      <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>\n"
        "    </interface>\n"
        "  </devices>\n"
        "  <qemu:commandline><qemu:arg value='-S'/></qemu:commandline>\n"
        "</domain>\n");

    g_assert_cmpstr(domain->name, ==, "web");
    g_assert_cmpstr(domain->uuid, ==, UUID);
    g_assert_cmpuint(domain->ports->len, ==, 1);
    g_assert_cmpstr(port(domain, 0)->iface_id, ==, IFACE);
    g_assert_cmpstr(port(domain, 0)->mac, ==, "52:54:00:ab:cd:ef");
    g_assert_cmpstr(port(domain, 0)->type, ==, "bridge");
    g_assert_cmpstr(port(domain, 0)->bridge, ==, "br-int");
    g_assert_null(port(domain, 0)->network);
    g_assert_cmpstr(port(domain, 0)->target, ==, "vnet4");
    g_assert_cmpstr(port(domain, 0)->alias, ==, "net0");
}

static void test_types(void)
{
    g_autoptr(PfDomain) domain = parse_good(DOMAIN(
        /* 0: a network, unresolved, that will know the virtualport's type */
        "<interface type='network'><source network='ovn' portgroup='pg'/>"
        "<virtualport><parameters interfaceid='" IFACE "'/></virtualport></interface>"
        /* a network whose interfaceid libvirt will make up */
        "<interface type='network'><source network='ovn'/></interface>"
        "<interface type='network'><source network='ovn'/><virtualport/></interface>"
        "<interface type='network'><source network='ovn'/><virtualport type='openvswitch'/>"
        "</interface>"
        "<interface type='network'><source network='ovn'/><virtualport type='openvswitch'>"
        "<parameters profileid='p'/></virtualport></interface>"
        /* not Open vSwitch's */
        "<interface type='ethernet'><target dev='tap0' managed='no'/></interface>"
        "<interface type='user'/>"
        "<interface type='bridge'><source bridge='virbr0'/></interface>"
        "<interface type='vhostuser'><source type='unix' path='/s' mode='server'/></interface>"
        "<interface type='bridge'><virtualport type='midonet'><parameters interfaceid='" IFACE2
        "'/></virtualport></interface>"
        "<interface type='direct'><virtualport type='802.1Qbg'><parameters managerid='11' "
        "typeid='1193047' typeidversion='2' instanceid='not-a-uuid'/></virtualport></interface>"
        "<interface type='bridge'><virtualport type='OpenVSwitch'><parameters interfaceid='" IFACE2
        "'/></virtualport></interface>"
        /* 1: a network, resolved */
        "<interface type='network'><source network='ovn' portid='" UUID "' bridge='br-int'/>"
        VIRTUALPORT(IFACE2) "</interface>"
        /* not an interface of the domain */
        "<hostdev><interface type='bridge'>" VIRTUALPORT(UUID) "</interface></hostdev>"));

    g_assert_cmpuint(domain->ports->len, ==, 2);
    g_assert_cmpstr(port(domain, 0)->iface_id, ==, IFACE);
    g_assert_cmpstr(port(domain, 0)->type, ==, "network");
    g_assert_cmpstr(port(domain, 0)->network, ==, "ovn");
    g_assert_null(port(domain, 0)->bridge);
    g_assert_null(port(domain, 0)->mac);
    g_assert_null(port(domain, 0)->target);
    g_assert_null(port(domain, 0)->alias);
    g_assert_cmpstr(port(domain, 1)->iface_id, ==, IFACE2);
    g_assert_cmpstr(port(domain, 1)->network, ==, "ovn");
    g_assert_cmpstr(port(domain, 1)->bridge, ==, "br-int");
}

static void test_no_ports(void)
{
    static const char *const documents[] = {
        HEAD "</domain>",
        HEAD "<devices/></domain>",
        DOMAIN(""),
        DOMAIN("<!-- " PORT(IFACE) " -->"),
        DOMAIN("<![CDATA[" PORT(IFACE) "]]>"),
        HEAD "<metadata><devices>" PORT(IFACE) "</devices></metadata></domain>",
        HEAD "<x:devices xmlns:x='urn:x'>" PORT(IFACE) "</x:devices></domain>",
        DOMAIN("<x:interface xmlns:x='urn:x'>" VIRTUALPORT(IFACE) "</x:interface>"),
        DOMAIN("<interface xmlns='urn:x'>" VIRTUALPORT(IFACE) "</interface>"),
        DOMAIN("<undeclared:interface>" VIRTUALPORT(IFACE) "</undeclared:interface>"),
        DOMAIN("<interface><x>" VIRTUALPORT(IFACE) "</x></interface>"),
        DOMAIN("<interface><virtualport type='openvswitch'><parameters xmlns:x='urn:x' "
               "x:interfaceid='" IFACE "'/></virtualport></interface>"),
        DOMAIN("<devices>" PORT(IFACE) "</devices>"),
    };

    for (gsize i = 0; i < G_N_ELEMENTS(documents); i++) {
        g_autoptr(PfDomain) domain = parse_good(documents[i]);

        g_assert_cmpstr(domain->name, ==, "web");
        g_assert_cmpuint(domain->ports->len, ==, 0);
    }
}

static void test_names(void)
{
    static const struct {
        const char *xml, *name;
    } cases[] = {
        {"my guest", "my guest"},
        {" padded ", " padded "},
        {"a&apos;b&quot;c&lt;d&gt;e&amp;f", "a'b\"c<d>e&f"},
        {"a/../b", "a/../b"},
        {"a\nb", "a\nb"},
        {"a&#10;b&#x9;c", "a\nb\tc"},
        {"虚拟机 🐧 é", "虚拟机 🐧 é"},
        {"&#x1f427;", "🐧"},
        {"<![CDATA[<&>]]>x", "<&>x"},
        {"a<!-- no -->b<?no no?>c", "abc"},
        {"a<b>no</b>c", "ac"},
        {"&amp;#38;", "&#38;"},
        {"%s%n", "%s%n"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *xml = g_strdup_printf("<domain><name>%s</name><uuid>%s</uuid></domain>",
                                               cases[i].xml, UUID);
        g_autoptr(PfDomain) domain = parse_good(xml);

        g_assert_cmpstr(domain->name, ==, cases[i].name);
    }
}

static void test_attribute_values(void)
{
    static const struct {
        const char *xml, *bridge;
    } cases[] = {
        {"'br&amp;int'", "br&int"},
        {"\"br'int\"", "br'int"},
        {"'br&quot;&lt;'", "br\"<"},
        {"'br&#38;x&#x26;y'", "br&x&y"},
        {"'&amp;#38;'", "&#38;"},
        {"'&amp;amp;'", "&amp;"},
        {"'&#38;#38;'", "&#38;"},
        {"'é🐧'", "é🐧"},
        {"'a/b c'", "a/b c"},
        {"''", ""},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *xml = g_strdup_printf(
            HEAD "<devices><interface type='bridge'><source bridge=%s/>" VIRTUALPORT(IFACE)
            "</interface></devices></domain>", cases[i].xml);
        g_autoptr(PfDomain) domain = parse_good(xml);

        g_assert_cmpstr(port(domain, 0)->bridge, ==, cases[i].bridge);
    }
}

static void test_order_and_case(void)
{
    /* Devices before the name, and upper-case UUIDs: not how libvirt writes, but no less clear. */
    g_autoptr(PfDomain) domain =
        parse_good("<?xml version='1.0' encoding=\"UTF-8\"?>\n<!-- c -->\n<domain><devices>"
                   PORT("ABCDEFAB-2222-3333-4444-555555555555") PORT(IFACE)
                   "</devices><uuid>0A1B2C3D-4E5F-6789-ABCD-EF0123456789</uuid>"
                   "<name>late</name></domain>\n\n");

    g_assert_cmpstr(domain->name, ==, "late");
    g_assert_cmpstr(domain->uuid, ==, UUID);
    g_assert_cmpstr(port(domain, 0)->iface_id, ==, "abcdefab-2222-3333-4444-555555555555");
    g_assert_cmpstr(port(domain, 1)->iface_id, ==, IFACE);
}

/* A domain with so many ports. */
static char *many_ports(int n)
{
    GString *xml = g_string_new(HEAD "<devices>");

    for (int i = 0; i < n; i++) {
        g_string_append_printf(xml, "<interface type='bridge'><mac address='52:54:00:00:00:%02x'/>"
                               "<source bridge='br-int'/><virtualport type='openvswitch'>"
                               "<parameters interfaceid='00000000-0000-0000-0000-%012d'/>"
                               "</virtualport><target dev='vnet%d'/></interface>", i % 256, i, i);
    }
    g_string_append(xml, "</devices></domain>");
    return g_string_free(xml, FALSE);
}

static void test_many(void)
{
    g_autofree char *xml = many_ports(200);
    g_autofree char *most = many_ports(PF_DOMAIN_PORTS_MAX);
    g_autofree char *more = many_ports(PF_DOMAIN_PORTS_MAX + 1);
    g_autoptr(PfDomain) domain = parse_good(xml);
    g_autoptr(PfDomain) largest = parse_good(most);

    g_assert_cmpuint(domain->ports->len, ==, 200);
    g_assert_cmpuint(largest->ports->len, ==, PF_DOMAIN_PORTS_MAX);
    assert_bad(more, "interface 1025 (MAC address 52:54:00:00:00:00) is one too many");
    for (guint i = 0; i < domain->ports->len; i++) {
        g_autofree char *target = g_strdup_printf("vnet%u", i);

        g_assert_cmpstr(port(domain, i)->target, ==, target);
    }
}

static void test_bad_interfaces(void)
{
    static const char *const not_uuids[] = {"", "web-port", IFACE "0", " " IFACE, "&#10;" IFACE,
                                            "{" IFACE "}", "11111111222233334444555555555555"};

    for (gsize i = 0; i < G_N_ELEMENTS(not_uuids); i++) {
        g_autofree char *xml = g_strdup_printf(
            HEAD "<devices>" PORT(IFACE2) "<interface><mac address='52:54:00:12:34:56'/>"
            "<virtualport type='openvswitch'><parameters interfaceid='%s'/></virtualport>"
            "</interface></devices></domain>", not_uuids[i]);

        assert_bad(xml, "domain 'web'");
        assert_bad(xml, "interface 2 (MAC address 52:54:00:12:34:56)");
        assert_bad(xml, "is not a UUID");
    }

    assert_bad(DOMAIN(PORT(IFACE) PORT(IFACE2) PORT(IFACE)),
               "interface 3 (MAC address 52:54:00:00:00:01) has the same interfaceid as another "
               "one, " IFACE);
    assert_bad(DOMAIN(PORT("abcdefab-2222-3333-4444-555555555555")
                      PORT("ABCDEFAB-2222-3333-4444-555555555555")), "same interfaceid");
    assert_bad(DOMAIN("<interface>" VIRTUALPORT(IFACE) VIRTUALPORT(IFACE2) "</interface>"),
               "two virtualports");
    assert_bad(DOMAIN("<interface><virtualport><parameters interfaceid='" IFACE "'/>"
                      "<parameters interfaceid='" IFACE2 "'/></virtualport></interface>"),
               "two interfaceids");
    assert_bad(DOMAIN("<interface><mac address='52:54:00:00:00'/>" VIRTUALPORT(IFACE)
                      "</interface>"), "no valid MAC address");
    assert_bad(DOMAIN("<interface><mac address='52:54:00:00:00:0g'/>" VIRTUALPORT(IFACE)
                      "</interface>"), "no valid MAC address");
    assert_bad(DOMAIN("<interface><mac address='52-54-00-00-00-00'/>" VIRTUALPORT(IFACE)
                      "</interface>"), "no valid MAC address");
    assert_bad(DOMAIN("<interface><mac address=''/>" VIRTUALPORT(IFACE) "</interface>"),
               "no valid MAC address");
}

static void test_bad_domains(void)
{
    assert_bad("<domain><uuid>" UUID "</uuid></domain>", "no name");
    assert_bad("<domain><name/><uuid>" UUID "</uuid></domain>", "name is empty");
    assert_bad("<domain><name></name><uuid>" UUID "</uuid></domain>", "name is empty");
    assert_bad("<domain><name>a</name></domain>", "no UUID");
    assert_bad("<domain><name>a</name><uuid/></domain>", "'' is not a UUID");
    assert_bad("<domain><name>a</name><uuid>b\nc</uuid></domain>", "'b\\nc' is not a UUID");
    assert_bad("<domain><name>a</name><uuid>" UUID "\n</uuid></domain>", "is not a UUID");
    assert_bad("<domain><name>a</name><name>b</name><uuid>" UUID "</uuid></domain>", "two names");
    assert_bad(HEAD "<uuid>" UUID "</uuid></domain>", "two UUIDs");
    assert_bad("<domain><metadata><name>a</name></metadata><uuid>" UUID "</uuid></domain>",
               "no name");
    assert_bad("<domain xmlns:x='urn:x'><x:name>a</x:name><uuid>" UUID "</uuid></domain>",
               "no name");

    assert_bad("<network><name>a</name><uuid>" UUID "</uuid></network>",
               "the root is 'network', not a libvirt domain");
    assert_bad("<domains>" HEAD "</domain></domains>", "the root is 'domains'");
    assert_bad("<domain xmlns='urn:other'><name>a</name></domain>", "'domain' in a namespace");
    assert_bad("<x:domain xmlns:x='urn:x'><name>a</name></x:domain>", "'domain' in a namespace");
    assert_bad("<x:domain><name>a</name></x:domain>", "'domain' in a namespace");
    assert_bad("<Domain><name>a</name></Domain>", "the root is 'Domain'");
}

static void test_malformed(void)
{
    static const char *const documents[] = {
        " ", "\n", "x", "<", "<domain", "<domain>", "<domain/", "</domain>", "<domain></devices>",
        "<domain></domain", HEAD, HEAD "</domain>x", HEAD "</domain><domain/>",
        HEAD "<devices></domain></devices>", HEAD "<a b=c/></domain>", HEAD "<a b/></domain>",
        HEAD "<a b='1' b='2'/></domain>", HEAD "<a>&</a></domain>", HEAD "<a>&#0;</a></domain>",
        HEAD "<a>&#x1;</a></domain>", HEAD "<a>\001</a></domain>", HEAD "<a>&#xd800;</a></domain>",
        HEAD "<a b='<'/></domain>", HEAD "<!-- </domain>", HEAD "<![CDATA[ </domain>",
        HEAD "<a>]]></a></domain>", " <?xml version='1.0'?>" HEAD "</domain>",
        HEAD "<?xml version='1.0'?></domain>",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(documents); i++) {
        assert_bad(documents[i], "the domain XML");
    }
    assert_bad_bytes("", 0, "is empty");
    assert_bad("<domain>\n<name>a</name>\n<uuid>" UUID "</uuid>\n<a></b>\n</domain>", "line 4: ");
}

/* Every beginning of a document, short of the last bracket, is an error and nothing worse. */
static void test_truncated(void)
{
    static const char xml[] = "<?xml version='1.0'?>" DOMAIN(PORT(IFACE) "<a>&amp;é</a>");

    for (gsize size = 0; size < sizeof xml - 1; size++) {
        assert_bad_bytes(xml, size, "the domain XML");
    }
}

/* One byte of a good document changed: any result will do, but no crash, and a port only under a
 * UUID. */
static void test_mutated(void)
{
    static const char xml[] = "<?xml version='1.0'?>" DOMAIN(PORT(IFACE) PORT(IFACE2));

    for (int round = 0; round < 20000; round++) {
        g_autofree char *changed = g_strdup(xml);
        g_autoptr(GError) error = NULL;

        for (int i = g_test_rand_int_range(1, 4); i > 0; i--) {
            static const char bytes[] = "<>&;'\"/!?[]- \n\0\377\303aA1";

            changed[g_test_rand_int_range(0, (gint32)(sizeof xml - 1))] =
                bytes[g_test_rand_int_range(0, (gint32)(sizeof bytes - 1))];
        }

        g_autoptr(PfDomain) domain = pf_domain_parse(changed, sizeof xml - 1, &error);

        g_assert_true(!domain == !!error);
        for (guint i = 0; domain && i < domain->ports->len; i++) {
            g_assert_true(pf_uuid_is_canonical(port(domain, i)->iface_id));
        }
    }
}

static void test_doctype(void)
{
    static const char *const types[] = {
        "<!DOCTYPE domain>",
        "<!DOCTYPE domain []>",
        "<!DOCTYPE domain [<!ENTITY x 'web'>]>",
        "<!DOCTYPE domain SYSTEM 'file:///etc/passwd'>",
        "<!DOCTYPE domain PUBLIC '-//X//Y' 'http://192.0.2.1/x.dtd'>",
        "<!DOCTYPE domain [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
        "<!DOCTYPE domain [<!ENTITY % p SYSTEM 'http://192.0.2.1/x.dtd'> %p;]>",
        "<!DOCTYPE domain [<!ATTLIST domain type CDATA 'kvm'>]>",
        "<!DOCTYPE domain [<!ENTITY a 'aaaaaaaaaa'>"
        "<!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'>"
        "<!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;'><!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;'>"
        "<!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;'><!ENTITY g '&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;'>"
        "<!ENTITY h '&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;'><!ENTITY x '&h;&h;&h;&h;&h;&h;&h;&h;&h;&h;'>"
        "]>",
        "<!DOCTYPE domain [<!ENTITY x '&x;'>]>",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree char *xml = g_strdup_printf(
            "%s<domain><name>&x;</name><uuid>" UUID "</uuid></domain>", types[i]);
        g_autofree char *declared = g_strconcat("<?xml version='1.0'?>\n", xml, NULL);
        g_autofree char *bare = g_strconcat(types[i], HEAD "</domain>", NULL);

        assert_bad(xml, "DOCTYPE");
        assert_bad(declared, "DOCTYPE");
        assert_bad(bare, "DOCTYPE");
    }
    assert_bad("<domain><name>&x;</name><uuid>" UUID "</uuid></domain>", "'x' not defined");
    assert_bad(HEAD "<a b='&x;'/></domain>", "'x' not defined");
}

static void test_encodings(void)
{
    static const char utf16[] = "\xff\xfe<\0d\0o\0m\0a\0i\0n\0/\0>\0";
    static const char nul[] = HEAD "\0</domain>";
    static const char nul_last[] = HEAD "</domain>";

    assert_bad_bytes(utf16, sizeof utf16 - 1, "UTF-16");
    assert_bad_bytes(nul, sizeof nul - 1, "NUL byte at offset 91");
    assert_bad_bytes(nul_last, sizeof nul_last, "NUL byte");
    assert_bad_bytes("\0", 1, "NUL byte");
    assert_bad("<domain><name>\xe9</name></domain>", "wrong byte at offset 14");
    assert_bad("<domain><name>\xc0\xaf</name></domain>", "not UTF-8");
    assert_bad("<domain><name>\xed\xa0\x80</name></domain>", "not UTF-8");
    assert_bad("<?xml version='1.0' encoding='ISO-8859-1'?>" HEAD "</domain>",
               "declares an encoding other than UTF-8");
    assert_bad("<?xml version='1.0' encoding=\"UTF-16\"?>" HEAD "</domain>",
               "declares an encoding other than UTF-8");
    assert_bad("<?xml\nversion='1.0'\nencoding = 'UTF-7'\n?>" HEAD "</domain>",
               "declares an encoding other than UTF-8");

    g_autoptr(PfDomain) utf8 =
        parse_good("<?xml version='1.0' encoding='utf-8' standalone='yes'?>" HEAD "</domain>");
    g_autoptr(PfDomain) ascii =
        parse_good("<?xml version='1.0' encoding='US-ASCII'?>" HEAD "</domain>");
    g_autoptr(PfDomain) bom = parse_good("\xef\xbb\xbf" HEAD "</domain>");

    g_assert_cmpstr(utf8->name, ==, "web");
    g_assert_cmpstr(ascii->name, ==, "web");
    g_assert_cmpstr(bom->name, ==, "web");
}

/* Returns a good document of exactly 'size' bytes, filled up by repeating 'filling' (one that does
 * not fit is left out for spaces). */
static char *large_document(gsize size, const char *filling)
{
    static const char head[] = HEAD "<metadata>";
    static const char tail[] = "</metadata><devices>" PORT(IFACE) "</devices></domain>";
    GString *xml = g_string_sized_new(size + 1);

    g_string_append(xml, head);
    while (xml->len + strlen(filling) + strlen(tail) <= size) {
        g_string_append(xml, filling);
    }
    while (xml->len + strlen(tail) < size) {
        g_string_append_c(xml, ' ');
    }
    g_string_append(xml, tail);
    return g_string_free(xml, FALSE);
}

static void test_large(void)
{
    static const char *const fillings[] = {
        "<a/>", "text ", "<a b='c'>d</a>", "<!-- comment -->", "é", "&amp;", "\n",
        "<n:a xmlns:n='urn:n'/>",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(fillings); i++) {
        g_autofree char *largest = large_document(PF_DOMAIN_XML_MAX, fillings[i]);
        g_autofree char *larger = large_document(PF_DOMAIN_XML_MAX + 1, fillings[i]);
        g_autofree char *ten = large_document(10 * 1000 * 1000, fillings[i]);
        g_autoptr(PfDomain) domain = parse_good(largest);

        g_assert_cmpstr(port(domain, 0)->iface_id, ==, IFACE);
        assert_bad(larger, "larger than 1 MiB: 1048577 bytes");
        assert_bad(ten, "larger than 1 MiB: 10000000 bytes");
    }
}

/* Documents that take libxml2 seconds, unless something stops it: as large as is read, and made of
 * one piece over and over again, which has a number in it. */
static void test_slow(void)
{
    static const struct {
        const char *before, *piece[2], *after;
        const char *wanted; /* NULL: it is read */
    } cases[] = {
        {HEAD "<a ", {"b", "='' "}, "/></domain>", "more than 256 attributes"},
        {HEAD "<a ", {"b", "=\"'>\" "}, "/></domain>", "more than 256 attributes"},
        {HEAD "<!-- \" --><?x ' ?><![CDATA[ \" ]]><a ", {"b", "=''\n"}, "/></domain>",
         "more than 256 attributes"},
        {HEAD "<a ", {"xmlns:b", "='u' "}, "/></domain>", "more than 256 attributes"},
        {HEAD "<a>", {"<a xmlns:c='u' xmlns:b", "='u'>"}, "", "256 namespaces are declared"},
        {HEAD, {"<b", "/>"}, "</domain>", "too many different names"},
        {HEAD, {"<a b", "=''/>"}, "</domain>", "too many different names"},
        {HEAD "<metadata>", {"<undeclared:b c='", "'/>"}, "</metadata></domain>", NULL},
        {HEAD "<metadata>", {"<b xmlns='", "'/>"}, "</metadata></domain>", NULL},
        {HEAD "<devices><interface><source bridge='", {"&amp;", ""},
         "'/>" VIRTUALPORT(IFACE) "</interface></devices></domain>", NULL},
        {"<domain><name>", {"&#65;", ""}, "</name><uuid>" UUID "</uuid></domain>", NULL},
        {HEAD "<devices>", {"<interface><source bridge='", "'/></interface>"},
         "</devices></domain>", NULL},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) xml = g_string_sized_new(PF_DOMAIN_XML_MAX + 1);
        g_autoptr(GError) error = NULL;
        gsize longest = strlen(cases[i].piece[0]) + strlen(cases[i].piece[1]) + 8;

        g_string_append(xml, cases[i].before);
        for (guint k = 0; xml->len + longest + strlen(cases[i].after) <= PF_DOMAIN_XML_MAX; k++) {
            g_string_append_printf(xml, "%s%x%s", cases[i].piece[0], k, cases[i].piece[1]);
        }
        g_string_append(xml, cases[i].after);

        /* The time of this process, since the machine may be busy. */
        clock_t began = clock();
        g_autoptr(PfDomain) domain = pf_domain_parse(xml->str, xml->len, &error);
        clock_t took = clock() - began;

        g_test_message("case %zu: %.0f ms", i, (double)took * 1000 / CLOCKS_PER_SEC);
        g_assert_cmpint(took, <, CLOCKS_PER_SEC);
        if (cases[i].wanted) {
            assert_bad_bytes(xml->str, xml->len, cases[i].wanted);
        } else {
            g_assert_no_error(error);
        }
    }
}

/* What stands at the limits is read. */
static void test_limits(void)
{
    g_autoptr(GString) attributes = g_string_new(NULL);
    g_autoptr(GString) namespaces = g_string_new(NULL);

    for (guint i = 0; i < 256; i++) {
        g_string_append_printf(attributes, " a%u='x'", i);
    }
    for (guint i = 0; i < 255; i++) {
        g_string_append_printf(namespaces, " xmlns:a%u='u'", i);
    }

    g_autofree char *most = g_strdup_printf(
        HEAD "<x%s/><y%s><z xmlns='u'/><z xmlns='u'/></y><y%s/></domain>", attributes->str,
        namespaces->str, namespaces->str);
    g_autoptr(PfDomain) domain = parse_good(most);
    g_autofree char *attribute_more =
        g_strdup_printf(HEAD "<x%s b='x'/></domain>", attributes->str);
    g_autofree char *namespace_more = g_strdup_printf(
        HEAD "<y%s><z xmlns='u'><z xmlns:b='u'/></z></y></domain>", namespaces->str);

    assert_bad(attribute_more, "an element with more than 256 attributes");
    assert_bad(namespace_more, "more than 256 namespaces");
}

static char *deep_document(int depth)
{
    GString *xml = g_string_new(HEAD);

    for (int i = 1; i < depth; i++) {
        g_string_append(xml, "<a>");
    }
    for (int i = 1; i < depth; i++) {
        g_string_append(xml, "</a>");
    }
    g_string_append(xml, "<devices>" PORT(IFACE) "</devices></domain>");
    return g_string_free(xml, FALSE);
}

static void test_deep(void)
{
    static const int depths[] = {257, 258, 1000, 100000};
    g_autofree char *deepest = deep_document(256);
    g_autoptr(PfDomain) domain = parse_good(deepest);

    g_assert_cmpuint(domain->ports->len, ==, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(depths); i++) {
        g_autofree char *deeper = deep_document(depths[i]);

        assert_bad(deeper, "nested more than 256 deep");
    }
}

/* Secrets are in this XML (VNC passwords): an error may show what it complains about, no more. */
static void test_no_secrets(void)
{
    static const char *const documents[] = {
        DOMAIN("<graphics passwd='hunter2'/>" PORT("x")),
        DOMAIN("<graphics passwd='hunter2'/><a></b>"),
        HEAD "<devices><graphics passwd='hunter2'/>",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(documents); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(parse(documents[i], &error));
        g_assert_null(strstr(error->message, "hunter2"));
    }
}

/* ---- the domain's own policy ---- */

#define POLICY(attributes) \
    HEAD_WITH("<portferry:policy xmlns:portferry='" PF_DOMAIN_POLICY_URI "' " attributes "/>")
#define HEAD_WITH(metadata) HEAD "<metadata>" metadata "</metadata></domain>"

static void test_policy(void)
{
    static const char *const none[] = {
        HEAD "</domain>",
        HEAD_WITH(""),
        POLICY(""),
        POLICY("off='no'"),
        POLICY("x:later='1' xmlns:x='urn:x'"),
        HEAD_WITH("<policy off='yes'/>"),
        HEAD_WITH("<portferry:policy xmlns:portferry='urn:portferry:domain:2' off='yes'/>"),
        /* Deeper inside, it's somebody else's; and outside of <metadata> libvirt has no such thing. */
        HEAD_WITH("<a:a xmlns:a='urn:a'><policy xmlns='" PF_DOMAIN_POLICY_URI "' of='1'/></a:a>"),
        HEAD "<policy xmlns='" PF_DOMAIN_POLICY_URI "' of='1'/></domain>",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(none); i++) {
        g_autoptr(PfDomain) domain = parse_good(none[i]);

        g_assert_false(domain->policy.off);
        g_assert_cmpint(domain->policy.ready_timeout, ==, 0);
        g_assert_false(domain->policy.has_on_not_ready);
        g_assert_null(domain->policy.activation_strategy);
    }

    g_autoptr(PfDomain) off = parse_good(POLICY("off='yes'"));

    g_assert_true(off->policy.off);

    /* As virsh metadata writes it, and as a person may. */
    static const char *const all[] = {
        POLICY("ready-timeout='2.5' on-not-ready='proceed' activation-strategy='rarp,garp'"),
        HEAD_WITH("<o:o xmlns:o='urn:o'>x</o:o>\n <policy xmlns='" PF_DOMAIN_POLICY_URI "'"
                  " activation-strategy=' rarp,garp ' on-not-ready=\"proceed\""
                  " ready-timeout='&#50;.5'>\n \n</policy>"),
    };

    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autoptr(PfDomain) domain = parse_good(all[i]);
        PfDomainPolicy copy = {.activation_strategy = g_strdup("old")};

        pf_domain_policy_copy(&copy, &domain->policy);
        pf_domain_policy_copy(&copy, &copy);
        g_assert_false(copy.off);
        g_assert_cmpint(copy.ready_timeout, ==, 2500000);
        g_assert_true(copy.has_on_not_ready);
        g_assert_cmpint(copy.on_not_ready, ==, PF_POLICY_PROCEED);
        g_assert_cmpstr(copy.activation_strategy, ==, "rarp,garp");
        pf_domain_policy_clear(&copy);
        g_assert_null(copy.activation_strategy);
    }

    g_autoptr(PfDomain) refuse = parse_good(POLICY("on-not-ready='refuse'"));

    g_assert_true(refuse->policy.has_on_not_ready);
    g_assert_cmpint(refuse->policy.on_not_ready, ==, PF_POLICY_REFUSE);
}

static void test_bad_policy(void)
{
    static const struct {
        const char *xml, *wanted;
    } cases[] = {
        {POLICY("of='yes'"), "the attribute 'of'; there are off, ready-timeout"},
        {POLICY("OFF='yes'"), "the attribute 'OFF'"},
        {POLICY("off=''"), "off=''"},
        {POLICY("off='true'"), "neither 'yes' nor 'no'"},
        {POLICY("ready-timeout=''"), "ready-timeout"},
        {POLICY("ready-timeout='5s'"), "without a unit"},
        {POLICY("ready-timeout='0'"), "not between 0.1 and 300 seconds"},
        {POLICY("ready-timeout='301'"), "not between 0.1 and 300 seconds"},
        {POLICY("on-not-ready='Refuse'"), "neither 'proceed' nor 'refuse'"},
        {POLICY("activation-strategy=''"), "activation-strategy is empty"},
        {POLICY("activation-strategy='none'"), "not a list of rarp"},
        {POLICY("hold-timeout='5'"), "the attribute 'hold-timeout'"},
        {POLICY("libvirt-uri='qemu:///system'"), "the attribute 'libvirt-uri'"},
        {HEAD_WITH("<p:police xmlns:p='" PF_DOMAIN_POLICY_URI "'/>"), "an element 'police'"},
        {HEAD_WITH("<p:policy xmlns:p='" PF_DOMAIN_POLICY_URI "'><p:off/></p:policy>"),
         "an element inside"},
        {HEAD_WITH("<p:policy xmlns:p='" PF_DOMAIN_POLICY_URI "'><off/></p:policy>"),
         "an element inside"},
        {HEAD_WITH("<p:policy xmlns:p='" PF_DOMAIN_POLICY_URI "'> off </p:policy>"), "text inside"},
        {HEAD_WITH("<p:policy xmlns:p='" PF_DOMAIN_POLICY_URI "'><![CDATA[x]]></p:policy>"),
         "text inside"},
        {HEAD_WITH("<p:policy xmlns:p='" PF_DOMAIN_POLICY_URI "'/>"
                   "<p:policy xmlns:p='" PF_DOMAIN_POLICY_URI "'/>"), "two policies"},
        {HEAD "<metadata/><metadata><p:policy xmlns:p='" PF_DOMAIN_POLICY_URI "' x='y'/>"
              "</metadata></domain>", "the attribute 'x'"},
        {POLICY("off='\x1b'"), ""},
        {POLICY("ready-timeout='1&#10;2'"), "ready-timeout: '1\\n2'"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_bad(cases[i].xml, cases[i].wanted);
    }

    /* The first wrong one ends it, however many follow and however long it is. */
    g_autofree char *value = g_strnfill(100000, 'x');
    g_autofree char *xml = g_strdup_printf(POLICY("ready-timeout='%s' off='%s'"), value, value);

    assert_bad(xml, "ready-timeout: 'xxx");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/domain-xml/live", test_live);
    g_test_add_func("/domain-xml/types", test_types);
    g_test_add_func("/domain-xml/no-ports", test_no_ports);
    g_test_add_func("/domain-xml/names", test_names);
    g_test_add_func("/domain-xml/attribute-values", test_attribute_values);
    g_test_add_func("/domain-xml/order-and-case", test_order_and_case);
    g_test_add_func("/domain-xml/many", test_many);
    g_test_add_func("/domain-xml/bad-interfaces", test_bad_interfaces);
    g_test_add_func("/domain-xml/bad-domains", test_bad_domains);
    g_test_add_func("/domain-xml/malformed", test_malformed);
    g_test_add_func("/domain-xml/truncated", test_truncated);
    g_test_add_func("/domain-xml/mutated", test_mutated);
    g_test_add_func("/domain-xml/doctype", test_doctype);
    g_test_add_func("/domain-xml/encodings", test_encodings);
    g_test_add_func("/domain-xml/large", test_large);
    g_test_add_func("/domain-xml/slow", test_slow);
    g_test_add_func("/domain-xml/limits", test_limits);
    g_test_add_func("/domain-xml/deep", test_deep);
    g_test_add_func("/domain-xml/no-secrets", test_no_secrets);
    g_test_add_func("/domain-xml/policy", test_policy);
    g_test_add_func("/domain-xml/bad-policy", test_bad_policy);
    return g_test_run();
}
