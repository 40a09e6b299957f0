//! Controllers and caches that make several media one device.
