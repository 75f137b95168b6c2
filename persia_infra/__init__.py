"""Typed description of a training environment, its plan and its rehearsal."""
