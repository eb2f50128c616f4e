/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "domain-xml.h"

#include <libxml/SAX2.h>
#include <libxml/dict.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <stdbool.h>
#include <string.h>

#include "error.h"

/* Theory of operation
 *
 * The document is read as a stream of SAX events, without a tree: a domain's <metadata> may be
 * megabytes of tiny elements, which would become a gigabyte of nodes.  A stack of the elements that
 * are open says where the parser stands; the few elements that matter are recognised by their own
 * and their parent's name, everything else is PLACE_OTHER, and so is all that's inside it.
 *
 * Of libxml2's handlers only those below are set.  No handler declares entities or loads anything,
 * and a DOCTYPE ends the parser before its content is looked at. */

/* As deep as libxml2 goes by default (xmlParserMaxDepth in 2.9), hence as deep as libvirt reads. */
#define MAX_DEPTH 256

/* The daemon's loop stands still while it reads, so no document may take long.  Its size alone does
 * not see to that: libxml2 2.9 compares each attribute of an element with all others, and each
 * prefix with all that are declared around it, and its dictionary of names stops growing at some
 * thousand entries.  What libvirt and its users write is far below. */
#define MAX_ATTRIBUTES 256
#define MAX_NAMESPACES 256
#define MAX_NAMES_SIZE (128 * 1024)

typedef enum {
    PLACE_NOWHERE,
    PLACE_OTHER,
    PLACE_DOMAIN,
    PLACE_NAME,
    PLACE_UUID,
    PLACE_METADATA,
    PLACE_POLICY,
    PLACE_DEVICES,
    PLACE_INTERFACE,
    PLACE_MAC,
    PLACE_SOURCE,
    PLACE_TARGET,
    PLACE_ALIAS,
    PLACE_VIRTUALPORT,
    PLACE_PARAMETERS,
} Place;

static const struct {
    Place parent;
    const char *element;
    Place place;
} places[] = {
    {PLACE_NOWHERE, "domain", PLACE_DOMAIN},
    {PLACE_DOMAIN, "name", PLACE_NAME},
    {PLACE_DOMAIN, "uuid", PLACE_UUID},
    {PLACE_DOMAIN, "metadata", PLACE_METADATA},
    {PLACE_DOMAIN, "devices", PLACE_DEVICES},
    {PLACE_DEVICES, "interface", PLACE_INTERFACE},
    {PLACE_INTERFACE, "mac", PLACE_MAC},
    {PLACE_INTERFACE, "source", PLACE_SOURCE},
    {PLACE_INTERFACE, "target", PLACE_TARGET},
    {PLACE_INTERFACE, "alias", PLACE_ALIAS},
    {PLACE_INTERFACE, "virtualport", PLACE_VIRTUALPORT},
    {PLACE_VIRTUALPORT, "parameters", PLACE_PARAMETERS},
};

typedef struct {
    xmlParserCtxtPtr ctxt;
    GError *error; /* the first thing that was wrong; nothing is looked at after it */

    Place stack[MAX_DEPTH];
    int namespaces[MAX_DEPTH]; /* declared by each */
    int n_namespaces;          /* by all of them */
    guint depth;

    PfDomain *domain;
    GHashTable *seen; /* iface-ids of domain->ports, borrowed from them */
    GString *text;    /* of the name or the UUID, while inside it */
    bool has_policy;

    /* While inside an <interface>: */
    guint n_interfaces; /* so far, to name one in an error */
    PfDomainPort *port;
    char *interface_id; /* as written */
    bool has_virtualport;
    bool is_openvswitch;
} Parser;

static void port_free(PfDomainPort *port)
{
    if (!port) {
        return;
    }
    g_free(port->iface_id);
    g_free(port->mac);
    g_free(port->type);
    g_free(port->bridge);
    g_free(port->network);
    g_free(port->target);
    g_free(port->alias);
    g_free(port);
}

void pf_domain_policy_copy(PfDomainPolicy *to, const PfDomainPolicy *from)
{
    char *strategy = g_strdup(from->activation_strategy);

    g_free(to->activation_strategy);
    *to = *from;
    to->activation_strategy = strategy;
}

void pf_domain_policy_clear(PfDomainPolicy *policy)
{
    g_free(policy->activation_strategy);
    *policy = (PfDomainPolicy){0};
}

void pf_domain_free(PfDomain *domain)
{
    if (!domain) {
        return;
    }
    g_free(domain->name);
    g_free(domain->uuid);
    g_ptr_array_unref(domain->ports);
    pf_domain_policy_clear(&domain->policy);
    g_free(domain);
}

/* Sets the parser's error, once, and ends the parser. */
static void G_GNUC_PRINTF(2, 3) fail(Parser *parser, const char *format, ...)
{
    va_list args;

    if (!parser->error) {
        va_start(args, format);
        g_autofree char *text = g_strdup_vprintf(format, args);
        va_end(args);

        pf_error_set(&parser->error, PF_ERROR_BAD_XML, parser->domain->name, NULL,
                     "the domain XML, line %d: %s", xmlSAX2GetLineNumber(parser->ctxt), text);
    }
    xmlStopParser(parser->ctxt);
}

static void G_GNUC_PRINTF(2, 3) fail_interface(Parser *parser, const char *format, ...)
{
    g_autofree char *mac = pf_printable(parser->port->mac);
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);

    fail(parser, "interface %u (MAC address %s) %s", parser->n_interfaces, mac, text);
}

static bool has_prefix(const char *p, const char *end, const char *prefix)
{
    gsize length = strlen(prefix);

    return (gsize)(end - p) >= length && memcmp(p, prefix, length) == 0;
}

/* The value of the attribute at 'attr', of which libxml2 hands over five pointers: name, prefix,
 * namespace, and the value's beginning and end. */
static char *attribute_value(const xmlChar **attr)
{
    /* Unless told to replace entities, the parser leaves an ampersand, however it was written,
     * as this character reference for the tree builder to replace.  There may be as many as fit
     * into a document: none may make the others be looked at again. */
    static const char ampersand[] = "&#38;";
    const char *end = (const char *)attr[4];
    GString *value = g_string_sized_new((gsize)(attr[4] - attr[3]));

    for (const char *p = (const char *)attr[3]; p < end; p++) {
        g_string_append_c(value, *p);
        if (has_prefix(p, end, ampersand)) {
            p += strlen(ampersand) - 1;
        }
    }
    return g_string_free(value, FALSE);
}

/* Returns the value of the attribute 'name', or NULL. */
static char *attribute(const char *name, int n_attributes, const xmlChar **attributes)
{
    for (int i = 0; i < n_attributes; i++) {
        const xmlChar **attr = attributes + 5 * i;

        if (!attr[2] && strcmp((const char *)attr[0], name) == 0) {
            return attribute_value(attr);
        }
    }
    return NULL;
}

/* Stores an attribute that was not there before: of several elements, which libvirt never writes,
 * the first counts. */
static void take_attribute(char **field, const char *name, int n_attributes,
                           const xmlChar **attributes)
{
    if (!*field) {
        *field = attribute(name, n_attributes, attributes);
    }
}

static void begin_interface(Parser *parser, int n_attributes, const xmlChar **attributes)
{
    parser->n_interfaces++;
    parser->port = g_new0(PfDomainPort, 1);
    parser->port->type = attribute("type", n_attributes, attributes);
    if (!parser->port->type) {
        parser->port->type = g_strdup("");
    }
    parser->has_virtualport = false;
    parser->is_openvswitch = false;
}

static void begin_virtualport(Parser *parser, int n_attributes, const xmlChar **attributes)
{
    g_autofree char *type = attribute("type", n_attributes, attributes);

    if (parser->has_virtualport) {
        fail_interface(parser, "has two virtualports");
        return;
    }
    parser->has_virtualport = true;
    parser->is_openvswitch = !type || strcmp(type, "openvswitch") == 0;
}

static void take_interface_id(Parser *parser, int n_attributes, const xmlChar **attributes)
{
    g_autofree char *id = attribute("interfaceid", n_attributes, attributes);

    if (id && parser->interface_id) {
        fail_interface(parser, "has two interfaceids");
    } else if (id) {
        parser->interface_id = g_steal_pointer(&id);
    }
}

/* Brings a MAC address to lower case.  Returns false if it isn't one. */
static bool canonical_mac(char *mac)
{
    if (strlen(mac) != 17) {
        return false;
    }
    for (int i = 0; i < 17; i++) {
        if (i % 3 == 2 ? mac[i] != ':' : !g_ascii_isxdigit(mac[i])) {
            return false;
        }
        mac[i] = g_ascii_tolower(mac[i]);
    }
    return true;
}

static void end_interface(Parser *parser)
{
    PfDomainPort *port = parser->port;

    if (parser->is_openvswitch && parser->interface_id) {
        port->iface_id = pf_uuid_canonical(parser->interface_id);
        if (!port->iface_id) {
            g_autofree char *safe = pf_printable(parser->interface_id);

            fail_interface(parser, "has the interfaceid '%s', which is not a UUID", safe);
        } else if (port->mac && !canonical_mac(port->mac)) {
            fail_interface(parser, "has no valid MAC address");
        } else if (g_hash_table_contains(parser->seen, port->iface_id)) {
            fail_interface(parser, "has the same interfaceid as another one, %s", port->iface_id);
        } else if (parser->domain->ports->len == PF_DOMAIN_PORTS_MAX) {
            fail_interface(parser, "is one too many: a domain may have %d ports",
                           PF_DOMAIN_PORTS_MAX);
        } else {
            g_hash_table_add(parser->seen, port->iface_id);
            g_ptr_array_add(parser->domain->ports, g_steal_pointer(&parser->port));
        }
    }
    g_clear_pointer(&parser->port, port_free);
    g_clear_pointer(&parser->interface_id, g_free);
}

/* A policy's values are checked by the configuration's own rules, which know what is too long. */
static void set_policy(Parser *parser, const char *name, const char *value)
{
    PfDomainPolicy *policy = &parser->domain->policy;
    g_autoptr(PfConfig) config = pf_config_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *safe = pf_printable(value);

    if (strcmp(name, "off") == 0) {
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0) {
            fail(parser, "portferry's policy has off='%s', which is neither 'yes' nor 'no'", safe);
        }
        policy->off = strcmp(value, "yes") == 0;
        return;
    }
    if (strcmp(name, "ready-timeout") != 0 && strcmp(name, "on-not-ready") != 0 &&
        strcmp(name, "activation-strategy") != 0) {
        g_autofree char *safe_name = pf_printable(name);

        fail(parser,
             "portferry's policy has the attribute '%s'; there are off, ready-timeout, "
             "on-not-ready and activation-strategy",
             safe_name);
        return;
    }
    if (!pf_config_set(config, name, value, &error)) {
        fail(parser, "portferry's policy: %s", error->message);
    } else if (strcmp(name, "ready-timeout") == 0) {
        policy->ready_timeout = config->ready_timeout;
    } else if (strcmp(name, "on-not-ready") == 0) {
        policy->has_on_not_ready = TRUE;
        policy->on_not_ready = config->on_not_ready;
    } else {
        policy->activation_strategy = g_strdup(config->activation_strategy);
    }
}

/* An element of our own namespace in <metadata>. */
static void begin_policy(Parser *parser, const char *element, int n_attributes,
                         const xmlChar **attributes)
{
    g_autofree char *safe = pf_printable(element);

    if (strcmp(element, "policy") != 0) {
        fail(parser,
             "the metadata has an element '%s' in the namespace " PF_DOMAIN_POLICY_URI
             ", where there is 'policy' alone",
             safe);
        return;
    }
    if (parser->has_policy) {
        fail(parser, "the metadata has two policies for portferry");
        return;
    }
    parser->has_policy = true;
    for (int i = 0; i < n_attributes && !parser->error; i++) {
        const xmlChar **attr = attributes + 5 * i;
        g_autofree char *value = attribute_value(attr);

        if (!attr[1]) { /* one with a prefix is somebody else's */
            set_policy(parser, (const char *)attr[0], value);
        }
    }
}

static void end_name(Parser *parser)
{
    if (parser->domain->name) {
        fail(parser, "there are two names");
    } else if (parser->text->len == 0) {
        fail(parser, "the name is empty");
    } else {
        parser->domain->name = g_strdup(parser->text->str);
    }
}

static void end_uuid(Parser *parser)
{
    if (parser->domain->uuid) {
        fail(parser, "there are two UUIDs");
        return;
    }
    parser->domain->uuid = pf_uuid_canonical(parser->text->str);
    if (!parser->domain->uuid) {
        g_autofree char *safe = pf_printable(parser->text->str);

        fail(parser, "'%s' is not a UUID", safe);
    }
}

static Place find_place(Place parent, const char *element)
{
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        if (places[i].parent == parent && strcmp(places[i].element, element) == 0) {
            return places[i].place;
        }
    }
    return PLACE_OTHER;
}

static void on_start_element(void *user_data, const xmlChar *name, const xmlChar *prefix,
                             const xmlChar *uri, int n_namespaces, const xmlChar **namespaces,
                             int n_attributes, int n_defaulted, const xmlChar **attributes)
{
    Parser *parser = user_data;
    Place parent = parser->depth ? parser->stack[parser->depth - 1] : PLACE_NOWHERE;
    /* A prefix that is declared nowhere leaves 'uri' empty, but is foreign all the same. */
    Place place = uri || prefix ? PLACE_OTHER : find_place(parent, (const char *)name);

    if (parser->error) {
        return;
    }
    if (parent == PLACE_METADATA && g_strcmp0((const char *)uri, PF_DOMAIN_POLICY_URI) == 0) {
        place = PLACE_POLICY;
    } else if (parent == PLACE_POLICY) {
        fail(parser, "portferry's policy has an element inside; it has attributes only");
        return;
    }
    if (parser->depth == 0 && place != PLACE_DOMAIN) {
        g_autofree char *safe = pf_printable((const char *)name);

        fail(parser, "the root is '%s'%s, not a libvirt domain", safe,
             uri || prefix ? " in a namespace" : "");
        return;
    }
    if (parser->depth == MAX_DEPTH) {
        fail(parser, "elements are nested more than %d deep", MAX_DEPTH);
        return;
    }
    parser->namespaces[parser->depth] = n_namespaces;
    parser->n_namespaces += n_namespaces;
    parser->stack[parser->depth++] = place;
    if (parser->n_namespaces > MAX_NAMESPACES) {
        fail(parser, "more than %d namespaces are declared at the same time", MAX_NAMESPACES);
        return;
    }

    switch (place) {
    case PLACE_NAME:
    case PLACE_UUID:
        g_string_truncate(parser->text, 0);
        break;
    case PLACE_POLICY:
        begin_policy(parser, (const char *)name, n_attributes, attributes);
        break;
    case PLACE_INTERFACE:
        begin_interface(parser, n_attributes, attributes);
        break;
    case PLACE_MAC:
        take_attribute(&parser->port->mac, "address", n_attributes, attributes);
        break;
    case PLACE_SOURCE:
        take_attribute(&parser->port->bridge, "bridge", n_attributes, attributes);
        take_attribute(&parser->port->network, "network", n_attributes, attributes);
        break;
    case PLACE_TARGET:
        take_attribute(&parser->port->target, "dev", n_attributes, attributes);
        break;
    case PLACE_ALIAS:
        take_attribute(&parser->port->alias, "name", n_attributes, attributes);
        break;
    case PLACE_VIRTUALPORT:
        begin_virtualport(parser, n_attributes, attributes);
        break;
    case PLACE_PARAMETERS:
        take_interface_id(parser, n_attributes, attributes);
        break;
    case PLACE_NOWHERE:
    case PLACE_OTHER:
    case PLACE_DOMAIN:
    case PLACE_METADATA:
    case PLACE_DEVICES:
        break;
    }
}

static void on_end_element(void *user_data, const xmlChar *name, const xmlChar *prefix,
                           const xmlChar *uri)
{
    Parser *parser = user_data;

    if (parser->error) {
        return;
    }

    Place place = parser->stack[--parser->depth];

    parser->n_namespaces -= parser->namespaces[parser->depth];
    if (place == PLACE_NAME) {
        end_name(parser);
    } else if (place == PLACE_UUID) {
        end_uuid(parser);
    } else if (place == PLACE_INTERFACE) {
        end_interface(parser);
    }
}

static void on_characters(void *user_data, const xmlChar *text, int size)
{
    Parser *parser = user_data;
    Place place = parser->depth ? parser->stack[parser->depth - 1] : PLACE_NOWHERE;

    if (!parser->error && (place == PLACE_NAME || place == PLACE_UUID)) {
        g_string_append_len(parser->text, (const char *)text, size);
    }
    for (int i = 0; !parser->error && place == PLACE_POLICY && i < size; i++) {
        if (!g_ascii_isspace(text[i])) {
            fail(parser, "portferry's policy has text inside; it has attributes only");
        }
    }
}

static void on_doctype(void *user_data, const xmlChar *name, const xmlChar *external_id,
                       const xmlChar *system_id)
{
    fail(user_data, "there is a DOCTYPE, which libvirt never writes");
}

/* libxml2's own complaint.  One that isn't fatal (a prefix without a namespace, in somebody's
 * metadata) is nobody's business here.  The parser's last error is used rather than 'format', since
 * it knows the level; ctxt->wellFormed is not yet up to date here. */
static void G_GNUC_PRINTF(2, 3) on_error(void *user_data, const char *format, ...)
{
    Parser *parser = user_data;
    const xmlError *last = xmlCtxtGetLastError(parser->ctxt);

    if (parser->error || !last || last->level != XML_ERR_FATAL) {
        return;
    }

    if (last->code == XML_ERR_NO_MEMORY) { /* which would rather have ended this process */
        fail(parser, "its elements and attributes have too many different names");
        return;
    }

    g_autofree char *text = g_strchomp(g_strdup(last->message ? last->message : "not well-formed"));
    g_autofree char *safe = pf_printable(text);

    fail(parser, "%s", safe);
}

/* libxml2 would obey an XML declaration that claims another encoding than what the bytes are in. */
static bool check_declared_encoding(const char *xml, gsize size, GError **error)
{
    const char *end = size > 5 && memcmp(xml, "<?xml", 5) == 0 && g_ascii_isspace(xml[5])
                          ? g_strstr_len(xml, (gssize)size, "?>")
                          : NULL;

    if (!end) {
        return true;
    }

    g_autofree char *declaration = g_strndup(xml, (gsize)(end - xml));
    g_autofree char *folded = g_ascii_strdown(declaration, -1);
    const char *encoding = strstr(folded, "encoding");

    if (!encoding || strstr(encoding, "utf-8") || strstr(encoding, "us-ascii")) {
        return true;
    }

    g_autofree char *safe = pf_printable(declaration);

    pf_error_set(error, PF_ERROR_BAD_XML, NULL, NULL,
                 "the domain XML declares an encoding other than UTF-8: %s", safe);
    return false;
}

/* Returns where the tag at 'tag' ends, and counts its attributes by their values' quotes; NULL if
 * it doesn't end, or is not well-formed. */
static const char *skip_tag(const char *tag, const char *end, guint *n_attributes)
{
    const char *p = tag + 1;

    while (p < end && *p != '>' && *p != '<') {
        if (*p == '"' || *p == '\'') {
            ++*n_attributes;
            p = memchr(p + 1, *p, (gsize)(end - p - 1));
            if (!p) {
                return NULL;
            }
        }
        p++;
    }
    return p < end && *p == '>' ? p + 1 : NULL;
}

/* Whether no element has too many attributes.  libxml2 has no limit, and tells of attributes only
 * when it is done with all.  What is not well-formed ends the search: it ends the parser too. */
static bool check_attributes(const char *xml, gsize size, GError **error)
{
    static const struct {
        const char *start, *end;
    } others[] = {{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}};
    const char *end = xml + size;

    for (const char *p = xml; p && (p = memchr(p, '<', (gsize)(end - p)));) {
        guint n = 0;
        gsize i = 0;

        while (i < G_N_ELEMENTS(others) && !has_prefix(p, end, others[i].start)) {
            i++;
        }
        if (i < G_N_ELEMENTS(others)) {
            p += strlen(others[i].start);
            p = memmem(p, (gsize)(end - p), others[i].end, strlen(others[i].end));
            continue;
        }
        p = skip_tag(p, end, &n);
        if (n > MAX_ATTRIBUTES) {
            pf_error_set(error, PF_ERROR_BAD_XML, NULL, NULL,
                         "the domain XML has an element with more than %d attributes",
                         MAX_ATTRIBUTES);
            return false;
        }
    }
    return true;
}

/* Everything that can be said of the bytes before they're parsed. */
static bool check_bytes(const char *xml, gsize size, GError **error)
{
    const char *invalid = NULL;

    if (size == 0) {
        pf_error_set(error, PF_ERROR_BAD_XML, NULL, NULL, "the domain XML is empty");
        return false;
    }
    if (size > PF_DOMAIN_XML_MAX) {
        pf_error_set(error, PF_ERROR_BAD_XML, NULL, NULL,
                     "the domain XML is larger than %u MiB: %" G_GSIZE_FORMAT " bytes",
                     PF_DOMAIN_XML_MAX / 1024 / 1024, size);
        return false;
    }
    if (size >= 2 && (memcmp(xml, "\xff\xfe", 2) == 0 || memcmp(xml, "\xfe\xff", 2) == 0)) {
        pf_error_set(error, PF_ERROR_BAD_XML, NULL, NULL,
                     "the domain XML is not UTF-8: it looks like UTF-16");
        return false;
    }
    invalid = memchr(xml, '\0', size);
    if (invalid) {
        pf_error_set(error, PF_ERROR_BAD_XML, NULL, NULL,
                     "the domain XML has a NUL byte at offset %td", invalid - xml);
        return false;
    }
    if (!g_utf8_validate(xml, (gssize)size, &invalid)) {
        pf_error_set(error, PF_ERROR_BAD_XML, NULL, NULL,
                     "the domain XML is not UTF-8: there is a wrong byte at offset %td",
                     invalid - xml);
        return false;
    }
    return check_declared_encoding(xml, size, error) && check_attributes(xml, size, error);
}

PfDomain *pf_domain_parse(const void *xml, gsize size, GError **error)
{
    static const xmlSAXHandler handlers = {
        .initialized = XML_SAX2_MAGIC,
        .internalSubset = on_doctype,
        .startElementNs = on_start_element,
        .endElementNs = on_end_element,
        .characters = on_characters,
        .cdataBlock = on_characters,
        .error = on_error,
        .fatalError = on_error,
    };

    if (!check_bytes(xml, size, error)) {
        return NULL;
    }

    xmlParserCtxtPtr ctxt = xmlCreateMemoryParserCtxt(xml, (int)size);

    if (!ctxt) {
        pf_error_set(error, PF_ERROR_FAILED, NULL, NULL, "libxml2 gives no parser");
        return NULL;
    }

    g_autofree Parser *parser = g_new0(Parser, 1);
    g_autoptr(PfDomain) domain = g_new0(PfDomain, 1);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GString) text = g_string_new(NULL);

    domain->ports = g_ptr_array_new_with_free_func((GDestroyNotify)port_free);
    parser->ctxt = ctxt;
    parser->domain = domain;
    parser->seen = seen;
    parser->text = text;

    xmlCtxtUseOptions(ctxt, XML_PARSE_NONET);
    xmlDictSetLimit(ctxt->dict, MAX_NAMES_SIZE);
    *ctxt->sax = handlers;
    ctxt->userData = parser;

    int status = xmlParseDocument(ctxt);

    if (!parser->error && (status != 0 || !ctxt->wellFormed)) {
        fail(parser, "it is not well-formed");
    }
    if (!parser->error && !domain->name) {
        fail(parser, "there is no name");
    }
    if (!parser->error && !domain->uuid) {
        fail(parser, "there is no UUID");
    }

    xmlFreeParserCtxt(ctxt);
    port_free(parser->port);
    g_free(parser->interface_id);

    if (parser->error) {
        g_propagate_error(error, parser->error);
        return NULL;
    }
    return g_steal_pointer(&domain);
}
