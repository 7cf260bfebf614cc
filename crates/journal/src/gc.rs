//! Frees the oldest segments: moves what is live in them to the newest end.
