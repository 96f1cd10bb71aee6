"""noiseless: a streaming privacy gateway for smart meters."""
