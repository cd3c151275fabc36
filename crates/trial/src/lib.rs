//! Strategies: they set an engine's load, read its counts, and judge the device.
