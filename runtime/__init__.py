"""What people hold: Tensor, tape, decorator, caches, inspection."""
