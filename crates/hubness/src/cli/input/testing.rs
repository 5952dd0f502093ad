//! Small files for tests.
