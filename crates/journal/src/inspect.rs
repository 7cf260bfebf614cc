//! Reads a data directory that nobody uses: what is in it, and whether it is sound.
