//! Fuzz targets, each a test beside this folder: `make fuzz` runs them for long, `tools/test` for seconds.
