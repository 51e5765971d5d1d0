"""Elements at positions that indices, masks or index tensors tell: read and written."""
