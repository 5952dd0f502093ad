//! Headless Chromium.
