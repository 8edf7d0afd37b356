"""DP-TimeFL as the paper has it."""

from tacit.system.extras import needs

needs("networks", "torch", what="DP-TimeFL as published")
