/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

/*
 * MESSAGE_ID of each noteworthy event; data/portferry.catalog explains it to the operator
 * (journalctl --catalog).  An id never changes its meaning and is never used again: monitoring
 * rules match on it.  journalctl MESSAGE_ID=... finds all entries of a kind.
 */

/* The life of a handover.  Fields: DOMAIN, DOMAIN_UUID, HANDOVER, ROLE, SOURCE, DESTINATION. */
#define PF_MESSAGE_HANDOVER_STARTED "095f5aef1fc24574b4ec615028034f77"
#define PF_MESSAGE_HANDOVER_READY "8d4aebb4aaaf49c4b36a80282a828062"
#define PF_MESSAGE_HANDOVER_OPENED "a1a8c6bdf6a243c79da6ec1963629683"
#define PF_MESSAGE_HANDOVER_ACTIVATED "74fd38c111224cb0b30cf03a737a8413"
#define PF_MESSAGE_HANDOVER_FINISHED "7a8426153ea747a2957423a70246a0ef"
#define PF_MESSAGE_HANDOVER_ROLLED_BACK "006a5477c59f4e4c98719c2046a4a4bf"
#define PF_MESSAGE_HANDOVER_UNFINISHED "208d06cbe70e45b3b687eadde82c428b"
#define PF_MESSAGE_HANDOVER_FAILED "0a47be551b294e0eab078466b136d31c"
#define PF_MESSAGE_HANDOVER_RECOVERED "def56bbeecea4b0f8bca3f83b8924a09"
#define PF_MESSAGE_PHASE_CHANGED "cde80cecf65545ada8bd45e89b085538"

/* A migration that portferry stopped, or let go without its care. */
#define PF_MESSAGE_MIGRATION_REFUSED "c6eafe9936aa43f6819230f836b7081a"
#define PF_MESSAGE_NOT_READY_IN_TIME "022b35e033b14f77a5e7616d89add53d"
#define PF_MESSAGE_DAEMON_MISSING "4115ad9f66324597888b5e11a02cfee0"

/* Somebody else had a hand in it. */
#define PF_MESSAGE_OPERATOR_ACTIVATE "279750873e5e41cabd5be883d79dcc5a"
#define PF_MESSAGE_OPERATOR_ROLLBACK "af304dee587345748d36f1ba22e326ae"
#define PF_MESSAGE_OPERATOR_HOLD "32c9b53edc3b41d8a066f2c0cdbdd826"
#define PF_MESSAGE_OPERATOR_RELEASE "3f9b0d6756c64420921168686d9ca7a2"
#define PF_MESSAGE_OPERATOR_FORGET "f9187e49b8824eb48b22dbf7f86b5a02"
#define PF_MESSAGE_OPERATOR_PREPLUG "d4d690879f8b402d9ad1f258fae28f1e"
#define PF_MESSAGE_CMS_IN_CHARGE "a27c0d125c4f489f81b214465de6cb58"
#define PF_MESSAGE_CMS_INTERFERED "d26b31617238446ead09aa3873149ccc"

/* The source did not let go of the port in time. */
#define PF_MESSAGE_PEER_SILENT "d8f242be40594c66a4de43796ae32713"

/* libvirt did not clear away what it had plugged. */
#define PF_MESSAGE_LEFT_BEHIND "2dc0e1c15e284d2d808b6200b8cbb55e"

/* Connections and configuration. */
#define PF_MESSAGE_LIBVIRT_CONNECTED "0344d7b1944244a7b5cda740a5c065f2"
#define PF_MESSAGE_LIBVIRT_LOST "b0dd35be9e6e487c86a0dbf1c4145123"
#define PF_MESSAGE_DATABASE_CONNECTED "3819064c737b4f82b10e0617f7b76df2"
#define PF_MESSAGE_DATABASE_LOST "d4841fbe1988427c8a1db759dc7c3902"
#define PF_MESSAGE_BUS_LOST "1e4ebb527a964eb480ac9e6c40eb7b6f"
#define PF_MESSAGE_ANOTHER_DAEMON "f13a8a0c63a140af8f97261be98e3d6a"
#define PF_MESSAGE_RELOADED "d157acda5923424096618f70cc15b625"
#define PF_MESSAGE_BAD_CONFIGURATION "972382dae66b4935b0bafdb6320a3e01"
