# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what the ways of migrating a port do to the guest's network: see tests/bench."""
