/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* polkit's agent for terminals: without one, polkit has nobody to ask for a password. */
typedef struct PfAgent PfAgent;

/* Starts it if there is a terminal, somebody to ask, and the program.  Returns NULL otherwise,
 * which is no error: whoever may do it without a password needs none. */
PfAgent *pf_agent_start(void);
void pf_agent_stop(PfAgent *agent);
