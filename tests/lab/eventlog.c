/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes down what one libvirtd tells about its domains, with the time.
 *
 *   TIME DOMAIN lifecycle EVENT DETAIL
 *   TIME DOMAIN iteration NUMBER
 *   TIME DOMAIN job-completed OPERATION
 *   TIME DOMAIN qemu EVENT QEMU-TIME
 *
 * TIME is CLOCK_REALTIME in nanoseconds, when the event arrived here. The
 * numbers are libvirt's. The lines of QEMU's own STOP and RESUME carry QEMU's
 * time too: between the two lies the pause of the guest itself.
 */
#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static long long now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int on_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail,
                        void *data)
{
    (void)connection;
    (void)data;
    printf("%lld %s lifecycle %d %d\n", now(), virDomainGetName(domain), event, detail);
    return 0;
}

static void on_iteration(virConnectPtr connection, virDomainPtr domain, int iteration, void *data)
{
    (void)connection;
    (void)data;
    printf("%lld %s iteration %d\n", now(), virDomainGetName(domain), iteration);
}

static void on_job_completed(virConnectPtr connection, virDomainPtr domain,
                             virTypedParameterPtr params, int n_params, void *data)
{
    int operation = -1;

    (void)connection;
    (void)data;
    virTypedParamsGetInt(params, n_params, VIR_DOMAIN_JOB_OPERATION, &operation);
    printf("%lld %s job-completed %d\n", now(), virDomainGetName(domain), operation);
}

static void on_qemu(virConnectPtr connection, virDomainPtr domain, const char *event,
                    long long seconds, unsigned int micros, const char *details, void *data)
{
    (void)connection;
    (void)details;
    (void)data;
    printf("%lld %s qemu %s %lld\n", now(), virDomainGetName(domain), event,
           seconds * 1000000000LL + micros * 1000LL);
}

static void register_event(virConnectPtr connection, int id,
                           virConnectDomainEventGenericCallback callback)
{
    if (virConnectDomainEventRegisterAny(connection, NULL, id, callback, NULL, NULL) < 0) {
        fprintf(stderr, "eventlog: %s\n", virGetLastErrorMessage());
        exit(1);
    }
}

static void on_timeout(int timer, void *data)
{
    (void)timer;
    (void)data;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    virConnectPtr connection;

    if (argc != 2) {
        fputs("usage: eventlog URI\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    if (virEventRegisterDefaultImpl() < 0 || !(connection = virConnectOpen(argv[1]))) {
        fprintf(stderr, "eventlog: %s\n", virGetLastErrorMessage());
        return 1;
    }
    register_event(connection, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                   VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle));
    register_event(connection, VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION,
                   VIR_DOMAIN_EVENT_CALLBACK(on_iteration));
    register_event(connection, VIR_DOMAIN_EVENT_ID_JOB_COMPLETED,
                   VIR_DOMAIN_EVENT_CALLBACK(on_job_completed));
    if (virConnectDomainQemuMonitorEventRegister(
            connection, NULL, "^(STOP|RESUME)$", on_qemu, NULL, NULL,
            VIR_CONNECT_DOMAIN_QEMU_MONITOR_EVENT_REGISTER_REGEX) < 0) {
        fprintf(stderr, "eventlog: %s\n", virGetLastErrorMessage());
    }

    /* A signal does not end libvirt's poll; a timer makes it look up. */
    virEventAddTimeout(100, on_timeout, NULL, NULL);
    printf("%lld - ready\n", now());
    while (!stopped && virConnectIsAlive(connection) == 1) {
        if (virEventRunDefaultImpl() < 0) {
            break;
        }
    }
    virConnectClose(connection);
    return 0;
}
