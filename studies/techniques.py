"""What the studies of videos compare with CRAFT, by name. Nothing heavy is imported here: `--help` reads it."""

from __future__ import annotations

__all__ = ["RATES", "RIVALS"]

RIVALS = {
    "ac-state": "AC-State, with actions",
    "paired": "agent classifier, two frames",
    "single": "agent classifier, one frame",
    "autoencoder": "autoencoder",
    "contrastive": "temporal contrastive",
    "forward": "forward prediction",
    "latent-action": "latent actions (LAPO)",
}
RATES = (3e-4, 1e-3, 3e-3)  # learning rates that each rival is trained with; the best by its own held-out loss counts
